import { expect, test } from "vitest";
import { JsonNumber, type JsonObject, toJson } from "../src/lib/json";
import { parseJson } from "../src/lib/json-parse";
import { checkPattern, worstSteps } from "../src/lib/pattern";
import { validate } from "../src/lib/validate";

const problems = (schema: unknown, value: unknown): string[] => {
  const root = toJson(schema) as JsonObject;
  return validate(root, toJson(value), root).map(({ path, message }) => `${path} ${message}`.trim());
};

test("a fitting value has no problems", () => {
  const schema = {
    type: "object",
    required: ["a"],
    properties: { a: { type: "integer", minimum: 1 }, b: { type: "array", items: { type: "string" } } },
    additionalProperties: false,
  };
  expect(problems(schema, { a: 1, b: ["x"] })).toEqual([]);
});

test.each([
  [{ type: "string" }, 1, "Must be text"],
  [{ type: "integer" }, 1.5, "Must be a whole number"],
  [{ type: "integer" }, "abc", "Must be a whole number"],
  [{ type: ["string", "null"] }, 1, "Must be text or null"],
  [{ const: "a" }, "b", "Must be exactly “a”"],
  [{ enum: ["a", 1] }, "b", "Must be one of “a”, 1"],
  [{ minimum: 3 }, 2, "Must be at least 3"],
  [{ exclusiveMaximum: 3 }, 3, "Must be less than 3"],
  [{ multipleOf: 0.1 }, 0.35, "Must be a multiple of 0.1"],
  [{ minLength: 2 }, "a", "Needs at least 2 characters"],
  [{ maxLength: 1 }, "ab", "Takes at most 1 character, has 2"],
  [{ pattern: "^a+$" }, "b", "Must match the pattern ^a+$"],
  [{ format: "email" }, "nobody", "Must be an e-mail address"],
  [{ format: "date" }, "2026-13-01", "Must be a date like 2026-01-31"],
  [{ minItems: 1 }, [], "Needs at least 1 item"],
  [{ maxItems: 1 }, [1, 2], "Takes at most 1 item"],
  [{ uniqueItems: true }, [1, 1], "Items must all be different"],
  [{ minProperties: 1 }, {}, "Needs at least 1 entry"],
  [{ not: { type: "string" } }, "x", "This value is not allowed"],
  [{ items: { type: "string" } }, ["a", 2], "/1 Must be text"],
  [{ properties: { a: { type: "string" } } }, { a: 1 }, "/a Must be text"],
  [{ required: ["a/b"] }, {}, "/a~1b Required"],
  [{ properties: {}, additionalProperties: false }, { x: 1 }, "/x “x” is not a field of this tool"],
  [{ additionalProperties: { type: "integer" } }, { x: "1" }, "/x Must be a whole number"],
  [
    { patternProperties: { "^x": { type: "integer" } }, additionalProperties: false },
    { x1: "1" },
    "/x1 Must be a whole number",
  ],
  [{ oneOf: [{ type: "integer" }, { minimum: 0 }] }, 1, "Fits 2 of the alternatives; exactly one is allowed"],
  [{ anyOf: [{ type: "integer" }, { type: "boolean" }] }, "x", "Fits none of the allowed alternatives"],
  [{ allOf: [{ type: "integer" }, { minimum: 5 }] }, 1, "Must be at least 5"],
])("%j refuses %j", (schema, value, message) => {
  expect(problems(schema, value)).toEqual([message]);
});

test("of several alternatives the one meant is reported", () => {
  const schema = {
    oneOf: [
      {
        type: "object",
        required: ["kind", "number"],
        properties: { kind: { const: "card" }, number: { type: "string" } },
      },
      {
        type: "object",
        required: ["kind", "days"],
        properties: { kind: { const: "invoice" }, days: { type: "integer" } },
      },
    ],
  };
  expect(problems(schema, { kind: "invoice", days: "x" })).toEqual(["/days Must be a whole number"]);
});

test("huge integers are whole and keep within bounds", () => {
  const root = toJson({ type: "integer", minimum: 1 }) as JsonObject;
  expect(validate(root, new JsonNumber("123456789012345678901234567890"), root)).toEqual([]);
});

test("a length counts characters, not code units", () => {
  expect(problems({ maxLength: 1 }, "🌳")).toEqual([]);
});

test("a schema that branches without end is given up, not followed", () => {
  const schema = {
    $ref: "#/$defs/n",
    $defs: {
      n: {
        anyOf: [
          { type: "object", properties: { a: { $ref: "#/$defs/n" } }, required: ["z"] },
          { type: "object", properties: { a: { $ref: "#/$defs/n" } }, required: ["y"] },
        ],
      },
    },
  };
  const root = toJson(schema) as JsonObject;
  const started = performance.now();
  validate(root, parseJson(`${'{"a":'.repeat(70)}1${"}".repeat(70)}`), root);
  expect(performance.now() - started).toBeLessThan(3_000);
});

test.each([
  "^(a+)+$",
  "^(a|a)*$",
  "^((a*)b?)*$",
  "^(a?){40}a{40}$",
  "^(?:x(a+))+$",
  "^(a)\\1+$",
  "^a*a*a*a*a*a*$",
  `^${"a?".repeat(40)}${"a".repeat(40)}$`,
])("the pattern %s is never run on a long text", (pattern) => {
  expect(worstSteps(pattern, 50)).toBeGreaterThan(10_000_000);
  expect(checkPattern(pattern, `${"a".repeat(50)}!`)).toBe(true);
});

test("a pattern that does not compile is left to the server", () => {
  expect(checkPattern("([", "x")).toBe(true);
  expect(checkPattern("(?P<name>x)", "y")).toBe(true);
});

test("ordinary patterns are checked", () => {
  expect(checkPattern("^[A-Z]{3}-\\d+$", "abc")).toBe(false);
  expect(checkPattern("^(foo|bar)$", "baz")).toBe(false);
  expect(checkPattern("^#[0-9a-fA-F]{6}$", "#12")).toBe(false);
  expect(checkPattern("^[^@]+@[^@]+\\.[a-z]{2,}$", "nobody@nowhere")).toBe(false);
  expect(checkPattern("^([a-z]{3}){2}$", "abc")).toBe(false);
  expect(checkPattern("^[\\]()*+]$", "a")).toBe(false);
  expect(checkPattern("^\\p{L}+$", "é")).toBe(true);
});
