import { useState } from "preact/hooks";
import type { Json } from "../../lib/json";
import { itemSchemaAt, numberAt } from "../../lib/schema";
import { newItem } from "../../lib/seed";
import { pointer } from "../../lib/validate";
import { Icon } from "../Icon";
import { IconButton } from "../IconButton";
import { focusSoon } from "./ObjectControl";
import { type ControlProps, idOf } from "./slot";

const PAGE = 50;

/** A list whose rows can be added, removed and moved; focus follows the row. */
export function ArrayControl({ slot, field }: ControlProps) {
  const [limit, setLimit] = useState(PAGE);
  const items = Array.isArray(slot.value) ? slot.value : [];
  const most = numberAt(field.schema, "maxItems") ?? Number.POSITIVE_INFINITY;
  const addId = idOf(slot, "-add");
  const replace = (index: number, value: Json | undefined): void => {
    const schema = itemSchemaAt(field.schema, index);
    slot.onChange(
      items.map((item, at) =>
        at === index ? (value === undefined ? newItem(schema, slot.draft.schema) : value) : item,
      ),
    );
  };
  const move = (from: number, to: number, button: string): void => {
    const next = [...items];
    next.splice(to, 0, ...next.splice(from, 1));
    slot.onChange(next);
    const wanted = to === 0 && button === "up" ? "down" : to === next.length - 1 && button === "down" ? "up" : button;
    focusSoon(() => document.getElementById(idOf(slot, `-${wanted}-${to}`)));
  };
  const remove = (index: number): void => {
    slot.onChange(items.filter((_item, at) => at !== index));
    focusSoon(
      () =>
        document.getElementById(idOf(slot, `-remove-${Math.min(index, items.length - 2)}`)) ??
        document.getElementById(addId),
    );
  };
  return (
    <div class="list">
      {items.length > 0 && (
        <ol class="rows">
          {items.slice(0, limit).map((item, index) => (
            <li key={index} class="row">
              <div class="row-field">
                <slot.Field
                  slot={{
                    ...slot,
                    path: pointer(slot.path, index),
                    name: `${slot.name} ${index + 1}`,
                    schema: itemSchemaAt(field.schema, index),
                    required: true,
                    row: true,
                    depth: slot.depth + 1,
                    value: item,
                    onChange: (value) => replace(index, value),
                  }}
                />
              </div>
              <div class="row-tools">
                <IconButton
                  id={idOf(slot, `-up-${index}`)}
                  icon="up"
                  label={`Move ${slot.name} ${index + 1} up`}
                  disabled={index === 0}
                  onClick={() => move(index, index - 1, "up")}
                />
                <IconButton
                  id={idOf(slot, `-down-${index}`)}
                  icon="down"
                  label={`Move ${slot.name} ${index + 1} down`}
                  disabled={index === items.length - 1}
                  onClick={() => move(index, index + 1, "down")}
                />
                <IconButton
                  id={idOf(slot, `-remove-${index}`)}
                  icon="trash"
                  label={`Remove ${slot.name} ${index + 1}`}
                  onClick={() => remove(index)}
                />
              </div>
            </li>
          ))}
        </ol>
      )}
      {items.length > limit && (
        <button type="button" class="button small" onClick={() => setLimit(limit + PAGE)}>
          Show more items ({items.length - limit} left)
        </button>
      )}
      <div class="list-foot">
        <button
          type="button"
          class="button small"
          id={addId}
          disabled={items.length >= most}
          onClick={() => {
            slot.onChange([...items, newItem(itemSchemaAt(field.schema, items.length), slot.draft.schema)]);
            setLimit(Math.max(limit, items.length + 1));
            const path = pointer(slot.path, items.length);
            focusSoon(() => document.getElementById(idOf({ ...slot, path })));
          }}
        >
          <Icon name="plus" />
          Add to {slot.name}
        </button>
        {!slot.required && slot.value !== undefined && (
          <button type="button" class="button small ghost" onClick={() => slot.onChange(undefined)}>
            Unset {slot.name}
          </button>
        )}
      </div>
    </div>
  );
}
