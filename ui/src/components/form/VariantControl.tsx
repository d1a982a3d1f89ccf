import type { Json, JsonObject } from "../../lib/json";
import { fieldOf, variantLabel } from "../../lib/schema";
import { switchVariant } from "../../lib/seed";
import { validate } from "../../lib/validate";
import { ObjectFields } from "./ObjectFields";
import { type ControlProps, idOf } from "./slot";

/** One of several shapes: a picker, then the fields of the shape picked. */
export function VariantControl({ slot, field, aria }: ControlProps) {
  const root = slot.draft.schema;
  const picked = slot.draft.picks.value.get(slot.path) ?? guess(field.variants, slot.value, root);
  const variant = field.variants[picked];
  const pick = (index: number): void => {
    slot.draft.pick(slot.path, index);
    slot.onChange(index < 0 ? undefined : switchVariant(field.variants[index] as JsonObject, slot.value, root));
  };
  return (
    <div class="nest">
      <select
        class="input select"
        id={idOf(slot, "-variant")}
        aria-label={`Form of ${slot.name}`}
        value={String(picked)}
        onChange={(event) => pick(Number(event.currentTarget.value))}
        {...aria}
      >
        {(!slot.required || picked < 0) && <option value="-1">{slot.required ? "Choose…" : "Not set"}</option>}
        {field.variants.map((each, index) => (
          <option key={index} value={String(index)}>
            {variantLabel(each, index, root)}
          </option>
        ))}
      </select>
      {variant &&
        (fieldOf(variant, root).kind === "object" ? (
          <ObjectFields slot={{ ...slot, schema: variant }} />
        ) : (
          <Plain slot={slot} variant={variant} index={picked} />
        ))}
    </div>
  );
}

function Plain({ slot, variant, index }: { slot: ControlProps["slot"]; variant: JsonObject; index: number }) {
  const name = `${slot.name} (${variantLabel(variant, index, slot.draft.schema)})`;
  return (
    <slot.Field
      slot={{
        ...slot,
        schema: variant,
        name,
        required: true,
        row: true,
        scope: `${slot.scope}v`,
        depth: slot.depth + 1,
      }}
    />
  );
}

/** The first alternative the value fits, or the one it misses by least. */
function guess(variants: JsonObject[], value: Json | undefined, root: JsonObject): number {
  if (value === undefined) return -1;
  const misses = variants.map((variant) => validate(variant, value, root).length);
  return misses.indexOf(Math.min(...misses));
}
