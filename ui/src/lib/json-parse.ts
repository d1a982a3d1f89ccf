import { emptyObject, type Json, JsonNumber, type JsonObject } from "./json";

/**
 * JsonError
 *   the text is not JSON; `line` and `column` (from 1) say where
 */
export class JsonError extends Error {
  constructor(
    readonly reason: string,
    readonly line: number,
    readonly column: number,
  ) {
    super(`${reason} (line ${line}, column ${column})`);
  }
}

type Frame = { items: Json[] } | { object: JsonObject; key: string };

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const BLANK = /[ \t\n\r]*/y;

/** Parses JSON without recursion and keeps the text of numbers a double would change. */
export function parseJson(text: string): Json {
  const source = new Source(text);
  const stack: Frame[] = [];
  for (;;) {
    let value = openOrScalar(source, stack);
    while (value !== undefined) {
      const top = stack.at(-1);
      if (!top) {
        source.blank();
        if (!source.done) source.fail("Unexpected text after the value");
        return value;
      }
      value = close(source, stack, top, value);
    }
  }
}

/** Reads a scalar or an empty container; for any other container pushes a frame and gives nothing. */
function openOrScalar(source: Source, stack: Frame[]): Json | undefined {
  source.blank();
  if (source.take("[")) {
    source.blank();
    if (source.take("]")) return [];
    stack.push({ items: [] });
    return undefined;
  }
  if (source.take("{")) {
    source.blank();
    if (source.take("}")) return emptyObject();
    stack.push({ object: emptyObject(), key: source.key() });
    return undefined;
  }
  return source.scalar();
}

/** Puts a finished value into its container; gives the container when it ends here. */
function close(source: Source, stack: Frame[], top: Frame, value: Json): Json | undefined {
  source.blank();
  if ("items" in top) {
    top.items.push(value);
    if (source.take(",")) return undefined;
    if (!source.take("]")) source.fail("Expected “,” or “]”");
    stack.pop();
    return top.items;
  }
  top.object[top.key] = value;
  if (source.take(",")) {
    source.blank();
    top.key = source.key();
    return undefined;
  }
  if (!source.take("}")) source.fail("Expected “,” or “}”");
  stack.pop();
  return top.object;
}

class Source {
  private at = 0;
  constructor(private readonly text: string) {}

  get done(): boolean {
    return this.at >= this.text.length;
  }

  blank(): void {
    BLANK.lastIndex = this.at;
    BLANK.test(this.text);
    this.at = BLANK.lastIndex;
  }

  take(character: string): boolean {
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  key(): string {
    if (this.text[this.at] !== '"') this.fail("Expected a key in double quotes");
    const key = this.string();
    this.blank();
    if (!this.take(":")) this.fail("Expected “:” after the key");
    return key;
  }

  scalar(): Json {
    if (this.text[this.at] === '"') return this.string();
    for (const [word, value] of [
      ["true", true],
      ["false", false],
      ["null", null],
    ] as const) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    NUMBER.lastIndex = this.at;
    const number = NUMBER.exec(this.text)?.[0];
    if (number === undefined) this.fail(this.done ? "Unexpected end: a value is missing" : "Expected a JSON value");
    this.at += number.length;
    return String(Number(number)) === number ? Number(number) : new JsonNumber(number);
  }

  private string(): string {
    let end = this.text.indexOf('"', this.at + 1);
    while (end > 0 && this.escaped(end)) end = this.text.indexOf('"', end + 1);
    if (end < 0) this.fail("This text has no closing quote");
    try {
      const value = JSON.parse(this.text.slice(this.at, end + 1)) as string;
      this.at = end + 1;
      return value;
    } catch {
      this.fail("Line breaks and backslashes inside a text need escaping");
    }
  }

  private escaped(quote: number): boolean {
    let slashes = 0;
    while (this.text[quote - 1 - slashes] === "\\") slashes += 1;
    return slashes % 2 === 1;
  }

  fail(reason: string): never {
    const before = this.text.slice(0, this.at);
    throw new JsonError(reason, before.split("\n").length, this.at - before.lastIndexOf("\n"));
  }
}
