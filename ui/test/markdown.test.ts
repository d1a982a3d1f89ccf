import { expect, test } from "vitest";
import { parseMarkdown } from "../src/lib/markdown";
import { type Inline, parseInline, safeHref } from "../src/lib/markdown-inline";

const flat = (nodes: Inline[]): string =>
  nodes
    .map((node) =>
      "children" in node
        ? `<${node.type}>${flat(node.children)}</>`
        : node.type === "break"
          ? "<br>"
          : node.type === "code"
            ? `<code>${node.text}</>`
            : node.text,
    )
    .join("");

test("blocks are told apart", () => {
  const blocks = parseMarkdown(
    "# Title\n\nText\nmore\n\n- a\n- b\n  - c\n\n1. x\n2. y\n\n> quote\n\n```py\ncode()\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n",
  );
  expect(blocks.map((block) => block.type)).toEqual([
    "heading",
    "paragraph",
    "list",
    "list",
    "quote",
    "code",
    "table",
    "rule",
  ]);
});

test("a nested list stays in its item", () => {
  const [list] = parseMarkdown("- a\n  - b\n- c");
  expect(list).toMatchObject({
    type: "list",
    items: [[{ type: "paragraph" }, { type: "list" }], [{ type: "paragraph" }]],
  });
});

test("a fence that never closes runs to the end", () => {
  expect(parseMarkdown("```\n# not a heading")).toMatchObject([{ type: "code", text: "# not a heading" }]);
});

test("a table row may be short or long", () => {
  const [table] = parseMarkdown("| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |");
  expect(table?.type === "table" && table.rows.map((row) => row.length)).toEqual([2, 2]);
});

test("marks nest and close", () => {
  expect(flat(parseInline("**bold *both*** and `co*de` and snake_case_name"))).toContain("<strong>bold ");
  expect(flat(parseInline("*a* **b** ~~c~~ _d_"))).toBe("<emphasis>a</> <strong>b</> <strike>c</> <emphasis>d</>");
  expect(flat(parseInline("snake_case_name 2 * 3 * 4"))).toBe("snake_case_name 2 * 3 * 4");
  expect(flat(parseInline("\\*plain\\*"))).toBe("*plain*");
});

test("only web and mail addresses become links", () => {
  for (const address of [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "//host",
    "/path",
    "file:///etc",
    " https://x",
    "https://x\ny",
  ]) {
    expect(safeHref(address), address).toBeNull();
  }
  expect(safeHref("https://example.org/a?b=c")).toBe("https://example.org/a?b=c");
  expect(safeHref("mailto:a@example.org")).toBe("mailto:a@example.org");
});

test("a dangerous link and HTML are text", () => {
  const source = '[x](javascript:alert(1)) <img src=x onerror="a"> <script>b</script> <javascript:1>';
  expect(parseInline(source).every((node) => node.type === "text")).toBe(true);
  expect(flat(parseInline(source))).toBe(source);
});

test("an image becomes a link, since the page loads nothing", () => {
  expect(parseInline("![alt](https://example.org/a.png)")).toMatchObject([
    { type: "link", href: "https://example.org/a.png" },
  ]);
});

test("hostile input takes bounded time", () => {
  const started = performance.now();
  for (const source of [
    "*".repeat(5_000),
    "[".repeat(5_000),
    "> ".repeat(2_000),
    "`".repeat(5_000),
    "_a".repeat(5_000),
    `${"- ".repeat(500)}x`,
    "|".repeat(5_000),
  ])
    parseMarkdown(source);
  expect(performance.now() - started).toBeLessThan(4_000);
});
