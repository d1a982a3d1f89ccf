/** A JSON Schema interpreter for messages beside fields; the server's word is final. */
import {
  get,
  isNumber,
  isObject,
  type Json,
  type JsonNumber,
  type JsonObject,
  numberOf,
  numberText,
  printable,
  sameJson,
  typeOf,
} from "./json";
import { checkPattern } from "./pattern";
import { itemSchemaAt, listAt, numberAt, propertiesOf, requiredOf, resolve, textOf } from "./schema";
import { formatProblem } from "./string-format";

export interface Problem {
  /** A JSON Pointer into the arguments. */
  path: string;
  message: string;
}

const DEEPEST = 80;
const MOST_STEPS = 20_000;

export function pointer(path: string, step: string | number): string {
  return `${path}/${String(step).replace(/~/g, "~0").replace(/\//g, "~1")}`;
}

export function validate(schema: Json, value: Json | undefined, root: JsonObject): Problem[] {
  const check = new Check(root);
  return value === undefined ? [{ path: "", message: "Required" }] : check.value(schema, value, "", 0);
}

class Check {
  private steps = 0;
  constructor(private readonly root: JsonObject) {}

  value(given: Json, value: Json, path: string, depth: number): Problem[] {
    this.steps += 1;
    // A hostile schema can branch without end; what is left unchecked here the server still checks.
    if (depth > DEEPEST || this.steps > MOST_STEPS) return [];
    if (given === false) return [{ path, message: "Not allowed here" }];
    const schema = resolve(given, this.root);
    const wrongType = typeProblem(schema, value);
    if (wrongType !== null) return [{ path, message: wrongType }];
    const messages = [...choiceProblems(schema, value)];
    if (isNumber(value)) messages.push(...numberProblems(schema, value));
    if (typeof value === "string") messages.push(...stringProblems(schema, value));
    const problems = messages.map((message) => ({ path, message }));
    if (Array.isArray(value)) problems.push(...this.array(schema, value, path, depth));
    if (isObject(value)) problems.push(...this.object(schema, value, path, depth));
    return [...problems, ...this.branches(schema, value, path, depth)];
  }

  private array(schema: JsonObject, value: Json[], path: string, depth: number): Problem[] {
    const problems: Problem[] = [];
    const fewest = numberAt(schema, "minItems") ?? 0;
    const most = numberAt(schema, "maxItems") ?? Number.POSITIVE_INFINITY;
    if (value.length < fewest) problems.push({ path, message: `Needs at least ${count(fewest, "item")}` });
    if (value.length > most) problems.push({ path, message: `Takes at most ${count(most, "item")}` });
    if (get(schema, "uniqueItems") === true && hasTwins(value))
      problems.push({ path, message: "Items must all be different" });
    for (const [index, item] of value.entries())
      problems.push(...this.value(itemSchemaAt(schema, index), item, pointer(path, index), depth + 1));
    return problems;
  }

  private object(schema: JsonObject, value: JsonObject, path: string, depth: number): Problem[] {
    const problems: Problem[] = [];
    const properties = propertiesOf(schema);
    for (const name of requiredOf(schema)) {
      if (!Object.hasOwn(value, name)) problems.push({ path: pointer(path, name), message: "Required" });
    }
    const fewest = numberAt(schema, "minProperties") ?? 0;
    const most = numberAt(schema, "maxProperties") ?? Number.POSITIVE_INFINITY;
    const size = Object.keys(value).length;
    if (size < fewest) problems.push({ path, message: `Needs at least ${count(fewest, "entry", "entries")}` });
    if (size > most) problems.push({ path, message: `Takes at most ${count(most, "entry", "entries")}` });
    for (const [name, item] of Object.entries(value)) {
      const property = get(properties, name) ?? this.unlisted(schema, name);
      if (property === false)
        problems.push({ path: pointer(path, name), message: `“${name}” is not a field of this tool` });
      else if (property !== undefined) problems.push(...this.value(property, item, pointer(path, name), depth + 1));
    }
    return problems;
  }

  private unlisted(schema: JsonObject, name: string): Json | undefined {
    const patterns = get(schema, "patternProperties");
    if (isObject(patterns)) {
      for (const [pattern, property] of Object.entries(patterns)) if (checkPattern(pattern, name)) return property;
    }
    return get(schema, "additionalProperties");
  }

  private branches(schema: JsonObject, value: Json, path: string, depth: number): Problem[] {
    const problems: Problem[] = [];
    for (const keyword of ["oneOf", "anyOf"] as const) {
      const branches = listAt(schema, keyword);
      if (branches.length === 0) continue;
      const tries = branches.map((branch) => this.value(branch, value, path, depth + 1));
      const fits = tries.filter((found) => found.length === 0).length;
      if (fits === 0) problems.push(...(this.nearest(branches, tries, value, path) ?? []));
      if (keyword === "oneOf" && fits > 1)
        problems.push({ path, message: `Fits ${fits} of the alternatives; exactly one is allowed` });
    }
    const not = get(schema, "not");
    if (not !== undefined && this.value(not, value, path, depth + 1).length === 0)
      problems.push({ path, message: "This value is not allowed" });
    return problems;
  }

  /** The problems of the alternative the user most likely means: the one of the same kind with the fewest. */
  private nearest(branches: Json[], tries: Problem[][], value: Json, path: string): Problem[] {
    const same = tries.filter((_found, index) => typeProblem(resolve(branches[index], this.root), value) === null);
    const tagged = same.filter((found) => !found.some((problem) => problem.message.startsWith("Must be exactly")));
    const pool = tagged.length > 0 ? tagged : same;
    if (pool.length === 0) return [{ path, message: "Fits none of the allowed alternatives" }];
    return pool.reduce((best, found) => (found.length < best.length ? found : best));
  }
}

const NAMES: Record<string, string> = {
  string: "text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  null: "null",
};

function typeProblem(schema: JsonObject, value: Json): string | null {
  const given = get(schema, "type");
  const types = (Array.isArray(given) ? given : [given]).filter((type) => typeof type === "string");
  if (types.length === 0 || types.some((type) => hasType(value, type))) return null;
  return `Must be ${types.map((type) => (Object.hasOwn(NAMES, type) ? NAMES[type] : type)).join(" or ")}`;
}

function hasType(value: Json, type: string): boolean {
  if (type === "integer") return isNumber(value) && isWhole(value);
  return typeOf(value) === type;
}

function isWhole(value: number | JsonNumber): boolean {
  if (typeof value === "number") return Number.isInteger(value);
  return /^-?\d+$/.test(value.text) || Number.isInteger(Number(value.text));
}

function choiceProblems(schema: JsonObject, value: Json): string[] {
  const constant = get(schema, "const");
  if (constant !== undefined && !sameJson(constant, value)) return [`Must be exactly ${quoted(constant)}`];
  const choices = get(schema, "enum");
  if (!Array.isArray(choices) || choices.some((choice) => sameJson(choice, value))) return [];
  const shown = choices.slice(0, 6).map(quoted).join(", ");
  return [`Must be one of ${shown}${choices.length > 6 ? ", …" : ""}`];
}

function quoted(value: Json): string {
  return typeof value === "string" ? `“${value}”` : printable(value);
}

function numberProblems(schema: JsonObject, value: number | JsonNumber): string[] {
  const amount = numberOf(value);
  const bounds: [string, (limit: number) => boolean, string][] = [
    ["minimum", (limit) => amount >= limit, "Must be at least"],
    ["maximum", (limit) => amount <= limit, "Must be at most"],
    ["exclusiveMinimum", (limit) => amount > limit, "Must be more than"],
    ["exclusiveMaximum", (limit) => amount < limit, "Must be less than"],
    ["multipleOf", (step) => isMultiple(amount, step), "Must be a multiple of"],
  ];
  return bounds.flatMap(([keyword, holds, words]) => {
    const limit = get(schema, keyword);
    return isNumber(limit) && !holds(numberOf(limit)) ? [`${words} ${numberText(limit)}`] : [];
  });
}

/** 0.3 is a multiple of 0.1, though not in doubles. */
function isMultiple(amount: number, step: number): boolean {
  if (step <= 0) return true;
  const ratio = amount / step;
  return Math.abs(ratio - Math.round(ratio)) <= 1e-9 * Math.max(1, Math.abs(ratio));
}

function stringProblems(schema: JsonObject, value: string): string[] {
  const problems: string[] = [];
  const length = [...value].length;
  const shortest = numberAt(schema, "minLength") ?? 0;
  const longest = numberAt(schema, "maxLength") ?? Number.POSITIVE_INFINITY;
  if (length < shortest) problems.push(`Needs at least ${count(shortest, "character")}`);
  if (length > longest) problems.push(`Takes at most ${count(longest, "character")}, has ${length}`);
  const pattern = textOf(schema, "pattern");
  if (pattern !== undefined && !checkPattern(pattern, value)) problems.push(`Must match the pattern ${pattern}`);
  const format = formatProblem(textOf(schema, "format"), value);
  if (format !== null) problems.push(format);
  return problems;
}

function hasTwins(items: Json[]): boolean {
  const few = items.slice(0, 200);
  return few.some((item, index) => few.slice(index + 1).some((other) => sameJson(item, other)));
}

function count(amount: number, noun: string, plural = `${noun}s`): string {
  return `${amount} ${amount === 1 ? noun : plural}`;
}
