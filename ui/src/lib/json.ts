/** JSON values as the page holds them: own keys only, and every number as it was written. */

export type Json = null | boolean | number | string | JsonNumber | Json[] | JsonObject;

export interface JsonObject {
  [key: string]: Json;
}

/** A number whose text a double would not give back, such as 12345678901234567890 or 1.0. */
export class JsonNumber {
  constructor(readonly text: string) {}
}

// No `__proto__` accessor, so that key is data; `constructor` keeps Preact from taking JSON for a VNode.
const bare: object = Object.create(null, { constructor: { value: Object, writable: true } });

export function emptyObject(): JsonObject {
  return Object.create(bare) as JsonObject;
}

export function objectOf(entries: Iterable<readonly [string, Json]>): JsonObject {
  const object = emptyObject();
  for (const [key, value] of entries) object[key] = value;
  return object;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber);
}

export function isNumber(value: unknown): value is number | JsonNumber {
  return typeof value === "number" || value instanceof JsonNumber;
}

export function numberOf(value: number | JsonNumber): number {
  return typeof value === "number" ? value : Number(value.text);
}

export function numberText(value: number | JsonNumber): string {
  return typeof value === "number" ? String(value) : value.text;
}

/** The value under a key of the object's own; never an inherited one. */
export function get(object: JsonObject | undefined, key: string): Json | undefined {
  return object !== undefined && Object.hasOwn(object, key) ? object[key] : undefined;
}

export function withKey(object: JsonObject, key: string, value: Json | undefined): JsonObject {
  const copy = objectOf(Object.entries(object));
  if (value === undefined) delete copy[key];
  else copy[key] = value;
  return copy;
}

/** The same entries with one key renamed in place. */
export function withRenamed(object: JsonObject, from: string, to: string): JsonObject {
  return objectOf(Object.entries(object).map(([key, value]) => [key === from ? to : key, value] as const));
}

export type JsonType = "null" | "boolean" | "number" | "string" | "array" | "object";

export function typeOf(value: Json): JsonType {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (isNumber(value)) return "number";
  return typeof value as "boolean" | "string" | "object";
}

/** Whether two values are equal as JSON Schema means it: 1 and 1.0 are, key order does not count. */
export function sameJson(left: Json, right: Json): boolean {
  const pairs: [Json, Json][] = [[left, right]];
  for (let pair = pairs.pop(); pair; pair = pairs.pop()) {
    const [a, b] = pair;
    if (a === b) continue;
    if (isNumber(a) && isNumber(b)) {
      if (numberText(a) !== numberText(b) && !sameQuantity(a, b)) return false;
    } else if (Array.isArray(a) && Array.isArray(b)) {
      if (a.length !== b.length) return false;
      for (const [index, item] of a.entries()) pairs.push([item, b[index] as Json]);
    } else if (isObject(a) && isObject(b)) {
      const keys = Object.keys(a);
      if (keys.length !== Object.keys(b).length) return false;
      for (const key of keys) {
        const other = get(b, key);
        if (other === undefined) return false;
        pairs.push([a[key] as Json, other]);
      }
    } else {
      return false;
    }
  }
  return true;
}

function sameQuantity(a: number | JsonNumber, b: number | JsonNumber): boolean {
  const big = /^-?\d+$/;
  if (big.test(numberText(a)) && big.test(numberText(b))) return BigInt(numberText(a)) === BigInt(numberText(b));
  return numberOf(a) === numberOf(b);
}

/** An object of this module's making is Json already, all the way down. */
function isParsed(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === bare;
}

/** Turns a plain JavaScript value into Json; for constants written in code. */
export function toJson(value: unknown): Json {
  if (value === null || typeof value === "boolean" || typeof value === "number" || typeof value === "string")
    return value;
  if (value instanceof JsonNumber || isParsed(value)) return value;
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value === "object") {
    return objectOf(
      Object.entries(value as object)
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => [key, toJson(item)]),
    );
  }
  throw new TypeError(`${typeof value} is not JSON`);
}

/** A short text for a value in a label or message: a string without its quotes, a container cut short. */
export function printable(value: Json): string {
  if (typeof value === "string") return value;
  if (isNumber(value)) return numberText(value);
  if (Array.isArray(value)) return value.length === 0 ? "[]" : `[${value.length} items]`;
  if (isObject(value)) return `{${Object.keys(value).slice(0, 4).join(", ")}}`;
  return String(value);
}
