import type { ComponentType } from "preact";
import { get, type Json, type JsonObject, printable } from "../../lib/json";
import { printJson } from "../../lib/json-print";
import {
  aboutOf,
  type Field,
  fieldOf,
  isSecret,
  itemSchemaAt,
  type Kind,
  numberAt,
  propertiesOf,
  textOf,
} from "../../lib/schema";
import { seed } from "../../lib/seed";
import { Icon } from "../Icon";
import { ArrayControl } from "./ArrayControl";
import { JsonControl } from "./JsonControl";
import { ObjectControl } from "./ObjectControl";
import { BooleanControl, ConstControl, EnumControl, NumberControl } from "./ScalarControls";
import { type ControlProps, idOf, type Slot } from "./slot";
import { TextControl } from "./TextControl";
import { VariantControl } from "./VariantControl";

const DEEPEST = 7;

const CONTROLS: Record<Kind, ComponentType<ControlProps>> = {
  const: ConstControl,
  enum: EnumControl,
  boolean: BooleanControl,
  integer: NumberControl,
  number: NumberControl,
  string: TextControl,
  object: ObjectControl,
  array: ArrayControl,
  variants: VariantControl,
  null: ConstControl,
  any: JsonControl,
};

/** Controls that hold several inputs and so are named as a group. */
const GROUPS = new Set<Kind>(["object", "array", "variants", "boolean"]);

/** One field: its name, what is known about it, its control and its problems. */
export function FieldView({ slot }: { slot: Slot }) {
  const field = fieldOf(slot.schema, slot.draft.schema);
  const asJson = slot.depth > DEEPEST || isFreeObject(field);
  const Control = asJson ? JsonControl : CONTROLS[field.kind];
  const grouped = !asJson && GROUPS.has(field.kind) && !(field.nullable && slot.value === null);
  const id = idOf(slot);
  const problems = slot.draft.shown.value.get(slot.path) ?? [];
  const description = slot.row ? textOf(field.schema, "description") : aboutOf(field, slot.name);
  const described = [description && `${id}-about`, problems.length > 0 && `${id}-problem`].filter(Boolean).join(" ");
  const aria = {
    "aria-describedby": described || undefined,
    "aria-invalid": problems.length > 0 ? ("true" as const) : undefined,
    "aria-required": slot.required && !grouped ? ("true" as const) : undefined,
  };
  const Name = grouped ? "span" : "label";
  return (
    <div
      class={`field ${problems.length > 0 ? "wrong" : ""}`}
      role={grouped ? "group" : undefined}
      aria-labelledby={grouped ? `${id}-name` : undefined}
      aria-describedby={grouped ? aria["aria-describedby"] : undefined}
      data-path={slot.path}
      onFocusOut={() => {
        if (slot.value !== undefined) slot.draft.touch(slot.path);
      }}
    >
      <div class="field-head">
        <Name class="field-name" id={`${id}-name`} {...(grouped ? {} : { for: id })}>
          {slot.name}
        </Name>
        {slot.required && !slot.row && (
          <span class="field-required" title="Required">
            required
          </span>
        )}
        <span class="field-type">{hint(field, slot.draft.schema)}</span>
        <NullToggle slot={slot} field={field} />
      </div>
      {description && (
        <p class="field-about" id={`${id}-about`}>
          {description}
        </p>
      )}
      {field.nullable && slot.value === null ? (
        <input class="input null" id={id} value="null" readOnly {...aria} />
      ) : (
        <Control slot={slot} field={field} id={id} aria={aria} />
      )}
      {problems.length > 0 && (
        <div class="field-problem" id={`${id}-problem`} data-testid="field-problem">
          <Icon name="warning" size={14} />
          <span>{problems.join(". ")}</span>
          {slot.required &&
            slot.value === undefined &&
            field.kind === "string" &&
            numberAt(field.schema, "minLength") === undefined && (
              <button type="button" class="link-button" onClick={() => slot.onChange("")}>
                Send an empty text
              </button>
            )}
        </div>
      )}
    </div>
  );
}

/** An object that says nothing about its keys is best written as JSON. */
function isFreeObject(field: Field): boolean {
  const extra = get(field.schema, "additionalProperties");
  return (
    field.kind === "object" &&
    Object.keys(propertiesOf(field.schema)).length === 0 &&
    (extra === undefined || extra === true)
  );
}

function NullToggle({ slot, field }: { slot: Slot; field: Field }) {
  if (!field.nullable || field.kind === "null") return null;
  const isNull = slot.value === null;
  return (
    <button
      type="button"
      class="chip small"
      aria-pressed={isNull}
      aria-label={`Send null for ${slot.name}`}
      onClick={() => slot.onChange(isNull ? (slot.required ? seedOther(field, slot.draft.schema) : undefined) : null)}
    >
      null
    </button>
  );
}

function seedOther(field: Field, root: JsonObject): Json | undefined {
  const value = seed(field.schema, root);
  return value === null ? undefined : value;
}

/** The type and limits of a field in a few words. */
function hint(field: Field, root: JsonObject): string {
  const { schema, kind } = field;
  const words: string[] = [typeWord(field, root)];
  const format = textOf(schema, "format");
  if (format && kind === "string") words[0] = format;
  const [low, high] = [
    get(schema, "minimum") ?? get(schema, "exclusiveMinimum"),
    get(schema, "maximum") ?? get(schema, "exclusiveMaximum"),
  ];
  if (low !== undefined && high !== undefined) words.push(`${printable(low)} – ${printable(high)}`);
  else if (low !== undefined) words.push(`${Object.hasOwn(schema, "minimum") ? "≥" : ">"} ${printable(low)}`);
  else if (high !== undefined) words.push(`${Object.hasOwn(schema, "maximum") ? "≤" : "<"} ${printable(high)}`);
  const longest = numberAt(schema, "maxLength");
  if (longest !== undefined && kind === "string") words.push(`at most ${longest} characters`);
  const preset = get(schema, "default");
  if (preset !== undefined && preset !== null && typeof preset !== "object")
    words.push(`default ${cut(printJson(preset))}`);
  if (isSecret(schema)) words.push("kept out of links and history");
  return words.filter(Boolean).join(" · ");
}

function typeWord({ kind, schema, variants, choices }: Field, root: JsonObject): string {
  if (kind === "enum") return `one of ${choices.length}`;
  if (kind === "variants") return `one of ${variants.length} forms`;
  if (kind === "array") return `list of ${fieldOf(itemSchemaAt(schema, 0), root).kind}`;
  return kind === "any" ? "any JSON" : kind === "const" ? "fixed" : kind;
}

function cut(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
