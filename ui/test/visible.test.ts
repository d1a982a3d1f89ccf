import { expect, test } from "vitest";
import { visible } from "../src/lib/visible";

test.each([
  ["direction", "safe\u202etxt.exe", "safe\\u202etxt.exe"],
  ["isolates", "\u2066a\u2069", "\\u2066a\\u2069"],
  ["no width", "pass\u200bword\ufeff", "pass\\u200bword\\ufeff"],
  ["soft hyphen and fillers", "a\u00adb\u3164c\u115f", "a\\u00adb\\u3164c\\u115f"],
  ["control characters", "a\u0000b\u001b[31mc\u007f\u0085", "a\\u0000b\\u001b[31mc\\u007f\\u0085"],
  ["line separators", "a\u2028b", "a\\u2028b"],
  ["a line end that only goes back", "good\rbad", "good\\u000dbad"],
  ["tags", "hi\u{e0041}", "hi\\udb40\\udc41"],
  ["variation selectors", "a\ufe01\u{e0100}\ufe0f", "a\\ufe01\\udb40\\udd00\\ufe0f"],
  ["joiners between letters", "ab\u200dcd", "ab\\u200dcd"],
  ["private use", "\ue000", "\\ue000"],
])("what hides is escaped: %s", (_, text, shown) => {
  expect(visible(text)).toBe(shown);
});

test.each([
  ["plain words", "Herbs & <b>spices</b>"],
  ["layout", "a\tb\nc\r\nd"],
  ["other scripts", "שלום עולם, مرحبا, नमस्ते, 你好, é e\u0301"],
  ["emoji", "👩‍🌾 👨‍👩‍👧‍👦 ❤️‍🔥 🏳️‍🌈 👍🏽 1️⃣ ☎︎"],
  ["a farmer with a skin tone", "👩🏽‍🌾"],
  ["what is an escape already", "\\u202e"],
])("what shows stays as it is: %s", (_, text) => {
  expect(visible(text)).toBe(text);
});
