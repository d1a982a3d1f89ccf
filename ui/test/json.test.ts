import { expect, test } from "vitest";
import { get, isObject, type Json, JsonNumber, sameJson, toJson, withKey, withRenamed } from "../src/lib/json";
import { JsonError, parseJson } from "../src/lib/json-parse";
import { printJson, printPython } from "../src/lib/json-print";

function nested(levels: number): string {
  return `${'{"a":['.repeat(levels)}1${"]}".repeat(levels)}`;
}

test("parsing then printing gives the text back", () => {
  for (const text of [
    '{"a":[1,2.5,-3e+10,"x\\n\\u0001",true,false,null,{}],"b":[]}',
    '""',
    "0",
    "-0",
    "[[],{}]",
    '"\\\\"',
    '"a\\"b"',
    '"\\u0001"',
  ]) {
    expect(printJson(parseJson(text))).toBe(text);
  }
});

test("numbers a double would change keep their text", () => {
  expect(printJson(parseJson("[12345678901234567890, 1.10, 1e400]"))).toBe("[12345678901234567890,1.10,1e400]");
  expect(parseJson("42")).toBe(42);
});

test("5,000 levels neither overflow the stack nor fill memory with blanks", () => {
  const value = parseJson(nested(5_000));
  expect(printJson(value)).toBe(nested(5_000));
  expect(printJson(value, 2).length).toBeLessThan(200_000);
  expect(sameJson(value, parseJson(nested(5_000)))).toBe(true);
});

test("a __proto__ key is data", () => {
  const value = parseJson('{"__proto__":{"polluted":true},"constructor":1}');
  expect(isObject(value) && Object.keys(value)).toEqual(["__proto__", "constructor"]);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect((value as unknown as Record<string, unknown>).polluted).toBeUndefined();
  expect(printJson(withKey(value as { [key: string]: Json }, "__proto__", 1))).toBe('{"__proto__":1,"constructor":1}');
});

test("inherited names are not found", () => {
  expect(get(parseJson("{}") as { [key: string]: Json }, "constructor")).toBeUndefined();
  expect(get(toJson({}) as { [key: string]: Json }, "toString")).toBeUndefined();
});

test("a JSON object is never taken for a VNode", () => {
  expect((parseJson('{"type":"div","props":{}}') as { constructor?: unknown }).constructor).not.toBeUndefined();
});

test("what is not JSON is refused with its place", () => {
  const place = (text: string): string => {
    try {
      parseJson(text);
    } catch (error) {
      if (error instanceof JsonError) return `${error.line}:${error.column}`;
    }
    return "accepted";
  };
  expect(place('{"a": 1,\n "b" 2}')).toBe("2:6");
  expect(place("")).toBe("1:1");
  for (const text of [
    "{a:1}",
    "[1,]",
    "01",
    "1 2",
    '"\n"',
    '"a',
    "NaN",
    "{'a':1}",
    '{"a":1,}',
    "nul",
    "+1",
    ".5",
    "[",
    '{"a"',
  ])
    expect(place(text), text).not.toBe("accepted");
});

test("equality is by value: 1 is 1.0, key order does not count, big integers differ in their last digit", () => {
  expect(sameJson(1, new JsonNumber("1.0"))).toBe(true);
  expect(sameJson(parseJson('{"a":1,"b":2}'), parseJson('{"b":2,"a":1}'))).toBe(true);
  expect(sameJson(new JsonNumber("12345678901234567890"), new JsonNumber("12345678901234567891"))).toBe(false);
  expect(sameJson([1], [1, 2])).toBe(false);
  expect(sameJson(null, 0)).toBe(false);
});

test("renaming a key keeps its place", () => {
  expect(printJson(withRenamed(parseJson('{"a":1,"b":2,"c":3}') as { [key: string]: Json }, "b", "z"))).toBe(
    '{"a":1,"z":2,"c":3}',
  );
});

test("a Python literal spells its words in Python", () => {
  expect(printPython(parseJson('{"a":[true,false,null,1.50,"x"]}'), 0)).toBe('{"a":[True,False,None,1.50,"x"]}');
});

test("a deep value handed on as Json is not walked again", () => {
  const deep = parseJson(nested(5_000));
  expect(printJson(toJson({ args: deep }))).toBe(`{"args":${nested(5_000)}}`);
});
