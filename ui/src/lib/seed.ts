/** The value a form starts with: defaults filled in, required containers opened, all else unset. */
import { emptyObject, get, isObject, type Json, type JsonObject } from "./json";
import { fieldOf, itemSchemaAt, numberAt, propertiesOf, requiredOf } from "./schema";

const DEEPEST = 8;
const MOST_ITEMS = 10;

/** A value for a field that must have one, or undefined where only the user can know. */
export function seed(schema: Json | undefined, root: JsonObject, depth = 0): Json | undefined {
  const field = fieldOf(schema, root);
  const preset = get(field.schema, "default");
  if (preset !== undefined) return preset;
  if (field.nullable) return null;
  switch (field.kind) {
    case "const":
      return get(field.schema, "const");
    case "enum":
      return field.choices.length === 1 ? field.choices[0]?.value : undefined;
    case "boolean":
      return false;
    case "null":
      return null;
    case "object":
      return depth < DEEPEST ? seedObject(field.schema, root, depth) : emptyObject();
    case "array":
      return depth < DEEPEST ? seedArray(field.schema, root, depth) : [];
    case "variants":
      return depth < DEEPEST ? seed(field.variants[0], root, depth + 1) : undefined;
    default:
      return undefined;
  }
}

function seedObject(schema: JsonObject, root: JsonObject, depth: number): JsonObject {
  const required = requiredOf(schema);
  const object = emptyObject();
  for (const [name, property] of Object.entries(propertiesOf(schema))) {
    const value = required.has(name) ? seed(property, root, depth + 1) : get(fieldOf(property, root).schema, "default");
    // An optional null is what the tool assumes anyway.
    if (value !== undefined && (value !== null || required.has(name))) object[name] = value;
  }
  return object;
}

function seedArray(schema: JsonObject, root: JsonObject, depth: number): Json[] {
  const count = Math.min(numberAt(schema, "minItems") ?? 0, MOST_ITEMS);
  return Array.from({ length: count }, (_item, index) => newItem(itemSchemaAt(schema, index), root, depth + 1));
}

/** What a new row of a list holds. */
export function newItem(schema: Json, root: JsonObject, depth = 0): Json {
  const value = seed(schema, root, depth);
  if (value !== undefined) return value;
  const { kind, choices } = fieldOf(schema, root);
  if (kind === "enum") return choices[0]?.value ?? null;
  return kind === "any" ? null : "";
}

/** The arguments a tool's form opens with. */
export function seedArguments(schema: JsonObject): JsonObject {
  const value = seed(schema, schema);
  return isObject(value) ? value : emptyObject();
}

/** The value after another alternative was picked: its own seed, with the entries both have kept. */
export function switchVariant(variant: JsonObject, old: Json | undefined, root: JsonObject): Json | undefined {
  const fresh = seed(variant, root) ?? newItem(variant, root);
  if (!isObject(fresh) || !isObject(old)) return fresh;
  for (const [name, property] of Object.entries(propertiesOf(fieldOf(variant, root).schema))) {
    const kept = get(old, name);
    if (kept !== undefined && fieldOf(property, root).kind !== "const") fresh[name] = kept;
  }
  return fresh;
}
