import { useState } from "preact/hooks";
import { isObject, type JsonObject, objectOf, withKey, withRenamed } from "../../lib/json";
import { newItem } from "../../lib/seed";
import { pointer } from "../../lib/validate";
import { Icon } from "../Icon";
import { IconButton } from "../IconButton";
import { focusSoon } from "./ObjectControl";
import { idOf, type Slot } from "./slot";

const PAGE = 50;

interface Props {
  slot: Slot;
  /** What further entries look like; undefined when none are asked for. */
  schema: JsonObject | undefined;
  known: ReadonlySet<string>;
}

/** The entries of an object that its schema does not name. */
export function ExtraEntries({ slot, schema, known }: Props) {
  const object = isObject(slot.value) ? slot.value : objectOf([]);
  const extras = Object.entries(object).filter(([key]) => !known.has(key));
  const [limit, setLimit] = useState(PAGE);
  const add = (): void => {
    let index = extras.length + 1;
    while (Object.hasOwn(object, `key${index}`)) index += 1;
    slot.onChange(withKey(object, `key${index}`, newItem(schema ?? true, slot.draft.schema)));
    focusSoon(() => document.getElementById(idOf(slot, `-key-${extras.length}`)));
  };
  return (
    <div class="list">
      {extras.length > 0 && (
        <ul class="rows">
          {extras.slice(0, limit).map(([key, value], index) => (
            <li key={index} class="row entry">
              <KeyInput
                id={idOf(slot, `-key-${index}`)}
                name={key}
                taken={(next) => Object.hasOwn(object, next)}
                onRename={(next) => slot.onChange(withRenamed(object, key, next))}
              />
              <div class="row-field">
                <slot.Field
                  slot={{
                    ...slot,
                    path: pointer(slot.path, key),
                    name: key,
                    schema: schema ?? true,
                    required: true,
                    row: true,
                    depth: slot.depth + 1,
                    value,
                    onChange: (next) =>
                      slot.onChange(withKey(object, key, next ?? newItem(schema ?? true, slot.draft.schema))),
                  }}
                />
              </div>
              <div class="row-tools">
                <IconButton
                  icon="trash"
                  label={`Remove ${key}`}
                  onClick={() => slot.onChange(withKey(object, key, undefined))}
                />
              </div>
            </li>
          ))}
        </ul>
      )}
      {extras.length > limit && (
        <button type="button" class="button small" onClick={() => setLimit(limit + PAGE)}>
          Show more entries ({extras.length - limit} left)
        </button>
      )}
      {schema !== undefined && (
        <div class="list-foot">
          <button type="button" class="button small" onClick={add}>
            <Icon name="plus" />
            Add an entry{slot.depth > 0 ? ` to ${slot.name}` : ""}
          </button>
        </div>
      )}
    </div>
  );
}

interface KeyProps {
  id: string;
  name: string;
  taken: (name: string) => boolean;
  onRename: (name: string) => void;
}

/** Renames on leaving, so that a half-typed key never swallows another entry. */
function KeyInput({ id, name, taken, onRename }: KeyProps) {
  const [text, setText] = useState<string | null>(null);
  const next = text ?? name;
  const clash = next !== name && taken(next);
  const commit = (): void => {
    if (!clash && next !== name) onRename(next);
    if (!clash) setText(null);
  };
  return (
    <div class="row-key">
      <input
        class="input mono"
        id={id}
        aria-label={`Key of entry ${name}`}
        aria-invalid={clash ? "true" : undefined}
        aria-describedby={clash ? `${id}-clash` : undefined}
        autocomplete="off"
        spellcheck={false}
        value={next}
        onInput={(event) => setText(event.currentTarget.value)}
        onBlur={commit}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          commit();
        }}
      />
      {clash && (
        <p class="field-problem" id={`${id}-clash`}>
          There is already an entry with this key
        </p>
      )}
    </div>
  );
}
