import { expect, test } from "vitest";
import { FormDraft, serverProblems } from "../src/lib/draft";
import { type JsonObject, toJson } from "../src/lib/json";
import { printJson } from "../src/lib/json-print";

const schema = toJson({
  type: "object",
  required: ["width"],
  properties: { width: { type: "integer" }, name: { type: "string", default: "n" } },
}) as JsonObject;
const args = (value: unknown): JsonObject => toJson(value) as JsonObject;

test("fields and raw text edit the same value", () => {
  const draft = new FormDraft(schema);
  expect(draft.raw.value).toBe('{\n  "name": "n"\n}');
  draft.edit(args({ width: 3 }));
  expect(draft.raw.value).toBe('{\n  "width": 3\n}');
  draft.editRaw('{"width": 4}');
  expect(printJson(draft.value.value)).toBe('{"width":4}');
  expect(draft.raw.value).toBe('{"width": 4}');
});

test("raw text that is no object keeps the last good value and blocks sending", () => {
  const draft = new FormDraft(schema, args({ width: 1 }));
  for (const text of ["{", "[1]", "1", ""]) {
    draft.editRaw(text);
    expect(draft.rawError.value).not.toBeNull();
    expect(draft.submit()).toBe(false);
    expect(draft.sendable).toBe(false);
    expect(printJson(draft.value.value)).toBe('{"width":1}');
  }
  draft.editRaw('{"width":2}');
  expect(draft.rawError.value).toBeNull();
  expect(draft.submit()).toBe(true);
});

test("problems show for fields that were left, and all of them after a try to run", () => {
  const draft = new FormDraft(schema, args({ width: "x", name: 1 }));
  expect(draft.shown.value.size).toBe(0);
  draft.touch("/width");
  expect([...draft.shown.value.keys()]).toEqual(["/width"]);
  expect(draft.submit()).toBe(false);
  expect(draft.shown.value.size).toBe(2);
  draft.reset();
  expect(draft.shown.value.size).toBe(0);
});

test("text that is not JSON yet blocks sending even against the user's will", () => {
  const draft = new FormDraft(schema, args({ width: 1 }));
  draft.setUnparsed("/x", "Not JSON");
  expect(draft.submit()).toBe(false);
  expect(draft.sendable).toBe(false);
  draft.setUnparsed("/x", null);
  expect(draft.submit()).toBe(true);
});

test("the server's validation lines land beside their fields until the next edit", () => {
  const draft = new FormDraft(schema, args({ width: 1, list: [{}] }));
  const found = serverProblems(
    "Input validation failed:\n- width: too small (min)\n- list.0.id: missing (required)\nother",
    draft.value.value,
  );
  expect(found).toEqual([
    { path: "/width", message: "too small (min)" },
    { path: "/list/0/id", message: "missing (required)" },
  ]);
  draft.setServerProblems(found);
  expect(draft.shown.value.get("/width")).toEqual(["too small (min)"]);
  draft.edit(args({ width: 2 }));
  expect(draft.shown.value.size).toBe(0);
});
