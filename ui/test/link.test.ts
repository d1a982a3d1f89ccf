import { expect, test } from "vitest";
import { type JsonObject, toJson } from "../src/lib/json";
import { printJson } from "../src/lib/json-print";
import { fromBase64Url, parseHash, toBase64Url, toolHash } from "../src/lib/link";

test("a link brings back its tool and arguments", () => {
  for (const name of ["image.resize", "a/b?c#d e%", "ünï🌳", '<img src=x onerror="1">']) {
    const args = toJson({ q: 'ä"<>&?+/=', n: [1, null] }) as JsonObject;
    const route = parseHash(toolHash(name, args));
    expect(route.tool).toBe(name);
    expect(route.args && printJson(route.args)).toBe(printJson(args));
  }
});

test("no arguments make no parameter", () => {
  expect(toolHash("a", toJson({}) as JsonObject)).toBe("#/tool/a");
});

test("broken links open the tool without arguments, or nothing", () => {
  expect(parseHash("#/tool/a?args=%%%")).toEqual({ tool: "a", args: null });
  expect(parseHash("#/tool/a?args=bm90IGpzb24")).toEqual({ tool: "a", args: null });
  expect(parseHash(`#/tool/a?args=${toBase64Url("[1]")}`)).toEqual({ tool: "a", args: null });
  expect(parseHash("#/tool/%E0%A4%A")).toEqual({ tool: "%E0%A4%A", args: null });
  expect(parseHash("#main")).toEqual({ tool: null, args: null });
  expect(parseHash("")).toEqual({ tool: null, args: null });
});

test("a lone surrogate in a name does not break the page", () => {
  expect(toolHash("a\uD800")).toBe("#/tool/a%EF%BF%BD");
});

test("base64url has only safe characters", () => {
  expect(toBase64Url("~~~???>>>")).toMatch(/^[\w-]+$/);
  expect(fromBase64Url(toBase64Url("🌳"))).toBe("🌳");
});
