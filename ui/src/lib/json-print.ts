import { isNumber, type Json, JsonNumber, numberText } from "./json";

interface Style {
  indent: string;
  /** Nesting beyond this is printed on one line: indenting 5,000 levels would take megabytes of blanks. */
  deepest: number;
  scalar: (value: null | boolean | number | string | JsonNumber) => string;
}

interface Frame {
  entries: [string | null, Json][];
  next: number;
  end: string;
}

/** JSON text of a value, without recursion; `indent` 0 gives one line. */
export function printJson(value: Json, indent = 0): string {
  return print(value, { indent: " ".repeat(indent), deepest: indent ? 60 : 0, scalar: jsonScalar });
}

/** The value as a Python literal. */
export function printPython(value: Json, indent = 4): string {
  return print(value, { indent: " ".repeat(indent), deepest: indent ? 20 : 0, scalar: pythonScalar });
}

function jsonScalar(value: null | boolean | number | string | JsonNumber): string {
  return isNumber(value) ? numberText(value) : JSON.stringify(value);
}

function pythonScalar(value: null | boolean | number | string | JsonNumber): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return jsonScalar(value);
}

function print(root: Json, style: Style): string {
  const out: string[] = [];
  const stack: Frame[] = [];
  const open = (value: Json): void => {
    if (value === null || typeof value !== "object" || value instanceof JsonNumber) {
      out.push(style.scalar(value));
      return;
    }
    const list = Array.isArray(value);
    const entries: [string | null, Json][] = list ? value.map((item) => [null, item]) : Object.entries(value);
    if (entries.length === 0) {
      out.push(list ? "[]" : "{}");
      return;
    }
    out.push(list ? "[" : "{");
    stack.push({ entries, next: 0, end: list ? "]" : "}" });
  };
  open(root);
  for (let frame = stack.at(-1); frame; frame = stack.at(-1)) {
    const lines = style.indent !== "" && stack.length <= style.deepest;
    const entry = frame.entries[frame.next];
    if (!entry) {
      stack.pop();
      out.push(lines ? `\n${style.indent.repeat(stack.length)}${frame.end}` : frame.end);
      continue;
    }
    if (frame.next > 0) out.push(lines || style.indent === "" ? "," : ", ");
    if (lines) out.push(`\n${style.indent.repeat(stack.length)}`);
    frame.next += 1;
    const [key, value] = entry;
    if (key !== null) out.push(JSON.stringify(key), style.indent === "" ? ":" : ": ");
    open(value);
  }
  return out.join("");
}
