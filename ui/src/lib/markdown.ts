/** Markdown to a tree of plain data. There is no HTML in or out: a tag in the source is text. */
import { type Inline, parseInline } from "./markdown-inline";

export type Block =
  | { type: "heading"; level: number; text: Inline[] }
  | { type: "paragraph"; text: Inline[] }
  | { type: "code"; language: string; text: string }
  | { type: "list"; ordered: boolean; start: number; items: Block[][] }
  | { type: "quote"; blocks: Block[] }
  | { type: "table"; head: Inline[][]; rows: Inline[][][] }
  | { type: "rule" };

const DEEPEST = 6;
const LONGEST = 200_000;

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/;
const QUOTE = /^ {0,3}>\s?/;
const DELIMITER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

export function parseMarkdown(source: string): Block[] {
  return parseBlocks(source.slice(0, LONGEST).replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n"), 0);
}

function parseBlocks(lines: string[], depth: number): Block[] {
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] as string;
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    const [block, next] = depth < DEEPEST ? readBlock(lines, at, depth) : readParagraph(lines, at);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

function readBlock(lines: string[], at: number, depth: number): [Block, number] {
  const line = lines[at] as string;
  const heading = HEADING.exec(line);
  if (heading)
    return [{ type: "heading", level: (heading[1] as string).length, text: parseInline(heading[2] as string) }, at + 1];
  if (FENCE.test(line)) return readFence(lines, at);
  if (RULE.test(line)) return [{ type: "rule" }, at + 1];
  if (QUOTE.test(line)) return readQuote(lines, at, depth);
  if (ITEM.test(line)) return readList(lines, at, depth);
  if (line.includes("|") && DELIMITER.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-"))
    return readTable(lines, at);
  if (/^ {4}/.test(line)) return readIndented(lines, at);
  return readParagraph(lines, at);
}

function readFence(lines: string[], at: number): [Block, number] {
  const [, fence, language] = FENCE.exec(lines[at] as string) as RegExpExecArray;
  const text: string[] = [];
  let next = at + 1;
  while (next < lines.length && !(lines[next] as string).trim().startsWith(fence as string)) {
    text.push(lines[next] as string);
    next += 1;
  }
  return [{ type: "code", language: language as string, text: text.join("\n") }, next + 1];
}

function readIndented(lines: string[], at: number): [Block, number] {
  let next = at;
  while (next < lines.length && (/^ {4}/.test(lines[next] as string) || (lines[next] as string).trim() === ""))
    next += 1;
  const text = lines
    .slice(at, next)
    .map((line) => line.slice(4))
    .join("\n");
  return [{ type: "code", language: "", text: text.trimEnd() }, next];
}

function readQuote(lines: string[], at: number, depth: number): [Block, number] {
  let next = at;
  while (next < lines.length && QUOTE.test(lines[next] as string)) next += 1;
  const inner = lines.slice(at, next).map((line) => line.replace(QUOTE, ""));
  return [{ type: "quote", blocks: parseBlocks(inner, depth + 1) }, next];
}

function readList(lines: string[], at: number, depth: number): [Block, number] {
  const first = ITEM.exec(lines[at] as string) as RegExpExecArray;
  const ordered = /\d/.test(first[2] as string);
  const items: Block[][] = [];
  let next = at;
  while (next < lines.length) {
    const mark = ITEM.exec(lines[next] as string);
    if (!mark || /\d/.test(mark[2] as string) !== ordered || RULE.test(lines[next] as string)) break;
    const width =
      (mark[1] as string).length + (mark[2] as string).length + Math.min(Math.max((mark[3] as string).length, 1), 4);
    const inner = [mark[4] as string];
    next += 1;
    while (next < lines.length && belongsToItem(lines, next, width)) {
      inner.push((lines[next] as string).replace(new RegExp(`^ {0,${width}}`), ""));
      next += 1;
    }
    items.push(parseBlocks(inner, depth + 1));
  }
  return [{ type: "list", ordered, start: ordered ? Number.parseInt(first[2] as string, 10) : 1, items }, next];
}

function belongsToItem(lines: string[], at: number, width: number): boolean {
  const line = lines[at] as string;
  const indent = line.length - line.trimStart().length;
  if (line.trim() === "") {
    const after = lines[at + 1];
    return after !== undefined && after.trim() !== "" && after.length - after.trimStart().length >= Math.min(width, 2);
  }
  if (indent >= Math.min(width, 2)) return true;
  return (lines[at - 1] as string).trim() !== "" && !startsBlock(line);
}

function readTable(lines: string[], at: number): [Block, number] {
  const head = cells(lines[at] as string);
  const rows: Inline[][][] = [];
  let next = at + 2;
  while (next < lines.length && (lines[next] as string).includes("|")) {
    const row = cells(lines[next] as string);
    rows.push(head.map((_cell, index) => parseInline(row[index] ?? "")));
    next += 1;
  }
  return [{ type: "table", head: head.map(parseInline), rows }, next];
}

function cells(line: string): string[] {
  const inner = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(^|[^\\])\|$/, "$1");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function readParagraph(lines: string[], at: number): [Block, number] {
  let next = at + 1;
  while (next < lines.length && (lines[next] as string).trim() !== "" && !startsBlock(lines[next] as string)) next += 1;
  return [
    {
      type: "paragraph",
      text: parseInline(
        lines
          .slice(at, next)
          .map((line) => line.trimStart())
          .join("\n")
          .trimEnd(),
      ),
    },
    next,
  ];
}

function startsBlock(line: string): boolean {
  return HEADING.test(line) || FENCE.test(line) || QUOTE.test(line) || RULE.test(line) || ITEM.test(line);
}
