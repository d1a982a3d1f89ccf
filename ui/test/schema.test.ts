import { expect, test } from "vitest";
import { type JsonObject, objectOf, toJson } from "../src/lib/json";
import { parseJson } from "../src/lib/json-parse";
import { printJson } from "../src/lib/json-print";
import { aboutOf, fieldOf, resolve, variantLabel } from "../src/lib/schema";
import { withoutSecrets } from "../src/lib/secrets";
import { newItem, seedArguments, switchVariant } from "../src/lib/seed";

const schema = (value: unknown): JsonObject => toJson(value) as JsonObject;
const kind = (value: unknown, root: unknown = {}): string => fieldOf(toJson(value), schema(root)).kind;

test("every schema has one kind of field", () => {
  expect(kind({ type: "string" })).toBe("string");
  expect(kind({ type: "integer" })).toBe("integer");
  expect(kind({ enum: [1, 2] })).toBe("enum");
  expect(kind({ const: 1 })).toBe("const");
  expect(kind({ properties: {} })).toBe("object");
  expect(kind({ items: {} })).toBe("array");
  expect(kind({ oneOf: [{ type: "string" }, { type: "integer" }] })).toBe("variants");
  expect(kind({ oneOf: [{ const: "a" }, { const: "b", title: "Bee" }] })).toBe("enum");
  expect(kind({ type: ["string", "integer"] })).toBe("variants");
  expect(kind({})).toBe("any");
  expect(kind(true)).toBe("any");
  expect(
    kind({ type: "object", properties: { a: {}, b: {} }, anyOf: [{ required: ["a"] }, { required: ["b"] }] }),
  ).toBe("object");
});

test("a null branch makes a field nullable instead of an alternative", () => {
  const field = fieldOf(
    toJson({ anyOf: [{ type: "integer", minimum: 3 }, { type: "null" }], description: "About", default: null }),
    schema({}),
  );
  expect(field).toMatchObject({ kind: "integer", nullable: true });
  expect(field.schema.description).toBe("About");
  expect(fieldOf(toJson({ type: ["string", "null"] }), schema({}))).toMatchObject({ kind: "string", nullable: true });
  expect(fieldOf(toJson({ enum: ["a", null] }), schema({})).choices.length).toBe(1);
});

test("references are followed and what stands beside them wins", () => {
  const root = schema({ $defs: { "a/b": { type: "string", title: "Inner" }, chain: { $ref: "#/$defs/a~1b" } } });
  expect(resolve(toJson({ $ref: "#/$defs/chain", title: "Outer" }), root)).toMatchObject({
    type: "string",
    title: "Outer",
  });
  expect(resolve(toJson({ $ref: "#/nowhere", title: "x" }), root)).toMatchObject({ title: "x" });
});

test("reference circles end", () => {
  const root = schema({
    $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" }, c: { allOf: [{ $ref: "#/$defs/c" }] } },
  });
  expect(fieldOf(root.$defs ? toJson({ $ref: "#/$defs/a" }) : null, root).kind).toBe("any");
  expect(fieldOf(toJson({ $ref: "#/$defs/c" }), root).kind).toBe("any");
});

test("allOf is merged into one object", () => {
  const merged = resolve(
    toJson({
      allOf: [
        { properties: { a: {} }, required: ["a"] },
        { properties: { b: {} }, required: ["b"] },
      ],
    }),
    schema({}),
  );
  expect(Object.keys(merged.properties as object)).toEqual(["a", "b"]);
  expect((merged.required as string[]).sort()).toEqual(["a", "b"]);
});

test("a form starts with defaults, constants and open required containers", () => {
  const value = seedArguments(
    schema({
      type: "object",
      required: ["flag", "who", "tags", "kind", "name"],
      properties: {
        flag: { type: "boolean" },
        who: { type: "object", required: ["x"], properties: { x: { default: 4 }, y: { type: "string" } } },
        tags: { type: "array", minItems: 2, items: { type: "string" } },
        kind: { const: "k" },
        name: { type: "string" },
        limit: { type: "integer", default: 5 },
        nothing: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
        closed: { type: "object", properties: { z: { default: 1 } } },
      },
    }),
  );
  expect(printJson(value)).toBe('{"flag":false,"who":{"x":4},"tags":["",""],"kind":"k","limit":5}');
});

test("a schema that requires itself seeds to a finite value", () => {
  const root = schema({
    $ref: "#/$defs/n",
    $defs: { n: { type: "object", required: ["next"], properties: { next: { $ref: "#/$defs/n" } } } },
  });
  expect(printJson(seedArguments(root)).length).toBeLessThan(200);
});

test("a schema with a __proto__ property seeds that property and nothing else", () => {
  const root = toJson(
    JSON.parse('{"type":"object","required":["__proto__"],"properties":{"__proto__":{"type":"boolean"}}}'),
  ) as JsonObject;
  expect(printJson(seedArguments(root))).toBe('{"__proto__":false}');
});

test("switching the alternative keeps what both have", () => {
  const variant = schema({
    type: "object",
    required: ["kind"],
    properties: { kind: { const: "b" }, name: { type: "string" } },
  });
  expect(printJson(switchVariant(variant, toJson({ kind: "a", name: "n", other: 1 }), schema({})) ?? null)).toBe(
    '{"kind":"b","name":"n"}',
  );
});

test("alternatives are named by title, by their constant, or by what they hold", () => {
  const label = (value: unknown): string => variantLabel(schema(value), 0, schema({}));
  expect(label({ title: "Card" })).toBe("Card");
  expect(label({ properties: { method: { const: "invoice" } } })).toBe("invoice");
  expect(label({ type: "string" })).toBe("string");
  expect(label({ type: "array", items: { type: "integer" } })).toBe("list of integer");
});

test("a new row holds something the user can edit", () => {
  expect(newItem(toJson({ type: "string" }), schema({}))).toBe("");
  expect(newItem(toJson({ enum: ["a", "b"] }), schema({}))).toBe("a");
  expect(newItem(toJson({ type: "boolean" }), schema({}))).toBe(false);
});

test("a title is shown where it says more than the name", () => {
  const about = (value: unknown): string | undefined => aboutOf(fieldOf(toJson(value), schema({})), "older_than_days");
  expect(about({ type: "integer", title: "Older Than Days" })).toBeUndefined();
  expect(about({ type: "integer", title: "Keep the rest?" })).toBe("Keep the rest?");
  expect(about({ type: "integer", title: "Keep the rest?", description: "In days." })).toBe("In days.");
  expect(about({ type: "object", title: "SomeClass", properties: {} })).toBeUndefined();
});

test("secrets are left out wherever they stand", () => {
  const root = schema({
    type: "object",
    properties: {
      key: { type: "string", format: "password" },
      list: {
        type: "array",
        items: { type: "object", properties: { token: { type: "string", writeOnly: true }, id: { type: "integer" } } },
      },
      pay: {
        oneOf: [
          { type: "object", properties: { pin: { type: "string", "x-sensitive": true } } },
          { type: "object", properties: { other: {} } },
        ],
      },
    },
  });
  const args = schema({ key: "s3cret", list: [{ token: "t", id: 1 }], pay: { pin: "1234", n: 1 } });
  expect(printJson(withoutSecrets(root, args))).toBe('{"list":[{"id":1}],"pay":{"n":1}}');
});

test("5,000 nested alternatives or objects end in a plain field", () => {
  let deep = "{}";
  for (let level = 0; level < 5_000; level += 1) deep = `{"anyOf":[${deep}]}`;
  expect(fieldOf(parseJson(deep), objectOf([])).kind).toBe("any");
  deep = '{"type":"string"}';
  for (let level = 0; level < 5_000; level += 1) deep = `{"type":"object","required":["a"],"properties":{"a":${deep}}}`;
  expect(printJson(seedArguments(parseJson(deep) as JsonObject)).length).toBeLessThan(200);
});
