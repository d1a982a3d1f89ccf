/** Reads a JSON Schema as a form does: references followed, allOf merged, the kind of field decided. */
import { get, isNumber, isObject, type Json, type JsonObject, numberOf, objectOf, printable, withKey } from "./json";

export type Kind =
  | "const"
  | "enum"
  | "boolean"
  | "integer"
  | "number"
  | "string"
  | "object"
  | "array"
  | "variants"
  | "null"
  | "any";

export interface Field {
  kind: Kind;
  /** The schema with references followed and a null branch taken away. */
  schema: JsonObject;
  nullable: boolean;
  /** The allowed values when the kind is "enum". */
  choices: Choice[];
  /** The alternatives when the kind is "variants". */
  variants: JsonObject[];
}

export interface Choice {
  value: Json;
  label: string;
}

const SCALARS = new Set(["boolean", "integer", "number", "string", "null", "object", "array"]);
const LONGEST_CHAIN = 32;

export function textOf(schema: JsonObject, key: string): string | undefined {
  const value = get(schema, key);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** What a schema says of a field in words. A title counts only if it says more than the name; classes lend theirs to objects. */
export function aboutOf({ kind, schema }: Field, name: string): string | undefined {
  const title = textOf(schema, "title");
  const letters = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
  const tells =
    title !== undefined && !["object", "array", "variants"].includes(kind) && letters(title) !== letters(name);
  return textOf(schema, "description") ?? (tells ? title : undefined);
}

export function numberAt(schema: JsonObject, key: string): number | undefined {
  const value = get(schema, key);
  return isNumber(value) ? numberOf(value) : undefined;
}

export function listAt(schema: JsonObject, key: string): Json[] {
  const value = get(schema, key);
  return Array.isArray(value) ? value : [];
}

export function propertiesOf(schema: JsonObject): JsonObject {
  const value = get(schema, "properties");
  return isObject(value) ? value : objectOf([]);
}

export function requiredOf(schema: JsonObject): Set<string> {
  return new Set(listAt(schema, "required").filter((name) => typeof name === "string"));
}

/** The schema of the keys that are not listed: undefined when they are free or forbidden. */
export function extraSchemaOf(schema: JsonObject): JsonObject | undefined {
  const extra = get(schema, "additionalProperties");
  return isObject(extra) ? extra : undefined;
}

export function itemSchemaAt(schema: JsonObject, index: number): Json {
  const prefix = listAt(schema, "prefixItems");
  const items = get(schema, "items");
  if (Array.isArray(items)) return items[index] ?? true;
  return prefix[index] ?? items ?? true;
}

/** Follows local references and merges allOf. An unknown reference leaves the rest of the schema. */
export function resolve(schema: Json | undefined, root: JsonObject, depth = 0): JsonObject {
  if (!isObject(schema)) return schema === false ? objectOf([["not", objectOf([])]]) : objectOf([]);
  let flat = schema;
  for (let hop = 0; hop < LONGEST_CHAIN; hop += 1) {
    const target = get(flat, "$ref");
    if (typeof target !== "string") break;
    const found = lookUp(target, root);
    const rest = withKey(flat, "$ref", undefined);
    flat = isObject(found) ? overlay(found, rest) : rest;
  }
  const parts = get(flat, "allOf");
  if (!Array.isArray(parts) || depth > LONGEST_CHAIN) return flat;
  const merged = parts.reduce<JsonObject>((sum, part) => overlay(sum, resolve(part, root, depth + 1)), objectOf([]));
  return overlay(merged, withKey(flat, "allOf", undefined));
}

function lookUp(reference: string, root: JsonObject): Json | undefined {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let node: Json | undefined = root;
  for (const step of reference.slice(2).split("/")) {
    const key = decode(step).replace(/~1/g, "/").replace(/~0/g, "~");
    if (Array.isArray(node)) node = node[Number(key)];
    else node = isObject(node) ? get(node, key) : undefined;
  }
  return node;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** One schema that asks for both; on a plain conflict the second wins. */
function overlay(base: JsonObject, top: JsonObject): JsonObject {
  let merged = objectOf([...Object.entries(base), ...Object.entries(top)]);
  if (isObject(get(base, "properties")) && isObject(get(top, "properties"))) {
    merged = withKey(
      merged,
      "properties",
      objectOf([...Object.entries(propertiesOf(base)), ...Object.entries(propertiesOf(top))]),
    );
  }
  const required = new Set([...requiredOf(base), ...requiredOf(top)]);
  return required.size > 0 ? withKey(merged, "required", [...required]) : merged;
}

export function fieldOf(schema: Json | undefined, root: JsonObject, depth = 0): Field {
  const flat = resolve(schema, root);
  if (depth > LONGEST_CHAIN) return field("any", flat);
  if (Object.hasOwn(flat, "const")) return field("const", flat);
  if (Array.isArray(get(flat, "enum"))) return enumField(flat);
  for (const keyword of ["oneOf", "anyOf"]) {
    const branches = listAt(flat, keyword).map((branch) => resolve(branch, root));
    if (branches.length > 0 && branches.some(saysWhatItIs)) return branchField(flat, keyword, branches, root, depth);
  }
  return typedField(flat);
}

function field(kind: Kind, schema: JsonObject, rest: Partial<Field> = {}): Field {
  return { kind, schema, nullable: false, choices: [], variants: [], ...rest };
}

function enumField(flat: JsonObject): Field {
  const values = listAt(flat, "enum");
  const named = values.filter((value) => value !== null);
  return field("enum", flat, {
    nullable: named.length < values.length,
    choices: named.map((value) => ({ value, label: printable(value) })),
  });
}

function saysWhatItIs(branch: JsonObject): boolean {
  return ["type", "properties", "const", "enum", "items", "oneOf", "anyOf"].some((key) => Object.hasOwn(branch, key));
}

function branchField(
  flat: JsonObject,
  keyword: string,
  branches: JsonObject[],
  root: JsonObject,
  depth: number,
): Field {
  const base = withKey(flat, keyword, undefined);
  const real = branches.filter((branch) => get(branch, "type") !== "null" && get(branch, "const") !== null);
  const nullable = real.length < branches.length;
  const variants = real.map((branch) => overlay(base, branch));
  if (variants.length === 0) return field("null", base, { nullable: true });
  if (real.every((branch) => Object.hasOwn(branch, "const"))) {
    const choices = real.map((branch) => ({
      value: branch.const as Json,
      label: textOf(branch, "title") ?? printable(branch.const as Json),
    }));
    return field("enum", base, { nullable, choices });
  }
  if (variants.length > 1) return field("variants", base, { nullable, variants });
  const only = fieldOf(describedBy(base, variants[0] as JsonObject), root, depth + 1);
  return { ...only, nullable: nullable || only.nullable };
}

/** What stands beside the alternatives names the field; what stands inside only names the alternative. */
function describedBy(base: JsonObject, variant: JsonObject): JsonObject {
  return ["title", "description", "default"].reduce((schema, key) => {
    const value = get(base, key);
    return value === undefined ? schema : withKey(schema, key, value);
  }, variant);
}

function typedField(flat: JsonObject): Field {
  const given = get(flat, "type");
  const types = (Array.isArray(given) ? given : [given]).filter(
    (type) => typeof type === "string" && SCALARS.has(type),
  ) as string[];
  const real = types.filter((type) => type !== "null");
  const nullable = real.length < types.length;
  if (real.length > 1) {
    return field("variants", flat, {
      nullable,
      variants: real.map((type) => withKey(withKey(flat, "type", type), "title", undefined)),
    });
  }
  const [type] = real;
  if (type !== undefined) return field(type as Kind, withKey(flat, "type", type), { nullable });
  if (nullable) return field("null", flat, { nullable });
  return field(impliedKind(flat), flat);
}

function impliedKind(flat: JsonObject): Kind {
  const has = (...keys: string[]): boolean => keys.some((key) => Object.hasOwn(flat, key));
  if (has("properties")) return "object";
  if (has("items", "prefixItems")) return "array";
  if (has("pattern", "minLength", "maxLength")) return "string";
  if (has("minimum", "maximum", "multipleOf")) return "number";
  return "any";
}

/** What to call one of several alternatives. */
export function variantLabel(variant: JsonObject, index: number, root: JsonObject): string {
  const title = textOf(variant, "title");
  if (title !== undefined) return title;
  const flat = resolve(variant, root);
  for (const property of Object.values(propertiesOf(flat))) {
    const constant = isObject(property) ? get(property, "const") : undefined;
    if (typeof constant === "string") return constant;
  }
  const { kind, schema } = fieldOf(variant, root);
  if (kind === "object") {
    const names = Object.keys(propertiesOf(schema));
    return names.length > 0 && names.length <= 3 ? names.join(" + ") : `object ${index + 1}`;
  }
  if (kind === "array") return `list of ${fieldOf(itemSchemaAt(schema, 0), root).kind}`;
  if (kind === "const") return printable(get(schema, "const") as Json);
  return kind === "any" || kind === "variants" ? `option ${index + 1}` : kind;
}

/** Whether a value should be shown masked and left out of links and history. */
export function isSecret(schema: JsonObject): boolean {
  return (
    textOf(schema, "format") === "password" || get(schema, "writeOnly") === true || get(schema, "x-sensitive") === true
  );
}
