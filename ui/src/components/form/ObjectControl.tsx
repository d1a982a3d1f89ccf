import { emptyObject } from "../../lib/json";
import { propertiesOf } from "../../lib/schema";
import { seed } from "../../lib/seed";
import { Icon } from "../Icon";
import { ObjectFields } from "./ObjectFields";
import { type ControlProps, idOf } from "./slot";

/** A nested object; an optional one is opened and closed as a whole. */
export function ObjectControl({ slot, field }: ControlProps) {
  const isMap = Object.keys(propertiesOf(field.schema)).length === 0;
  const open = slot.value !== undefined || isMap;
  if (!open) {
    return (
      <button
        type="button"
        class="button small"
        onClick={() => {
          slot.onChange(seed(field.schema, slot.draft.schema) ?? emptyObject());
          focusSoon(() =>
            document.getElementById(idOf(slot, "-box"))?.querySelector("input, select, textarea, button"),
          );
        }}
      >
        <Icon name="plus" />
        Add {slot.name}
      </button>
    );
  }
  return (
    <div class="nest" id={idOf(slot, "-box")}>
      <ObjectFields slot={slot} />
      {!slot.required && slot.value !== undefined && (
        <button type="button" class="button small ghost" onClick={() => slot.onChange(undefined)}>
          <Icon name="close" />
          Remove {slot.name}
        </button>
      )}
    </div>
  );
}

/** Moves focus after the next paint, when the element it should go to exists. */
export function focusSoon(target: () => Element | null | undefined): void {
  requestAnimationFrame(() => {
    const element = target();
    if (element instanceof HTMLElement) element.focus();
  });
}
