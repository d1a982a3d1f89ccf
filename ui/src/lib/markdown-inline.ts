export type Inline =
  | { type: "text"; text: string }
  | { type: "code"; text: string }
  | { type: "strong" | "emphasis" | "strike"; children: Inline[] }
  | { type: "link"; href: string; children: Inline[] }
  | { type: "break" };

const DEEPEST = 8;
const MARKS: [string, "strong" | "emphasis" | "strike"][] = [
  ["**", "strong"],
  ["__", "strong"],
  ["~~", "strike"],
  ["*", "emphasis"],
  ["_", "emphasis"],
];

/** The address if it is one a page may point at, or a page of the documentation; a script or data address is not. */
export function safeHref(address: string): string | null {
  return /^((https?:\/\/|mailto:)[^\s<>"]+|#\/docs\/[\w/-]+)$/i.test(address) ? address : null;
}

export function parseInline(source: string, depth = 0): Inline[] {
  const out: Inline[] = [];
  let plain = "";
  const flush = (): void => {
    if (plain !== "") out.push({ type: "text", text: plain });
    plain = "";
  };
  let at = 0;
  while (at < source.length) {
    const found = depth < DEEPEST ? readInline(source, at, depth) : null;
    if (found) {
      flush();
      out.push(found.node);
      at = found.next;
    } else if (source[at] === "\\" && /[!-/:-@[-`{-~]/.test(source[at + 1] ?? "")) {
      plain += source[at + 1];
      at += 2;
    } else {
      plain += source[at];
      at += 1;
    }
  }
  flush();
  return out;
}

interface Found {
  node: Inline;
  next: number;
}

function readInline(source: string, at: number, depth: number): Found | null {
  switch (source[at]) {
    case "`":
      return readCode(source, at);
    case "[":
    case "!":
      return readLink(source, at, depth);
    case "<":
      return readAutolink(source, at);
    case "h":
      return readBareAddress(source, at);
    case "\n":
      return {
        node: / {2}$/.test(source.slice(Math.max(0, at - 2), at)) ? { type: "break" } : { type: "text", text: " " },
        next: at + 1,
      };
    case "*":
    case "_":
    case "~":
      return readMarked(source, at, depth);
    default:
      return null;
  }
}

function readCode(source: string, at: number): Found | null {
  const ticks = (/^`+/.exec(source.slice(at, at + 16)) as RegExpExecArray)[0];
  const end = source.indexOf(ticks, at + ticks.length);
  if (end < 0) return null;
  return { node: { type: "code", text: source.slice(at + ticks.length, end).trim() }, next: end + ticks.length };
}

/** A link, or an image as a link to it: the page loads nothing from elsewhere. */
function readLink(source: string, at: number, depth: number): Found | null {
  const start = source[at] === "!" ? at + 1 : at;
  if (source[start] !== "[") return null;
  const match = /^\[([^\]\n]{0,500})\]\(\s*<?([^\s()<>]{1,2000})>?(?:\s+"[^"\n]{0,200}")?\s*\)/.exec(
    source.slice(start, start + 3_000),
  );
  const href = match ? safeHref(match[2] as string) : null;
  if (!match || href === null) return null;
  return {
    node: { type: "link", href, children: parseInline(match[1] as string, depth + 1) },
    next: start + match[0].length,
  };
}

function readAutolink(source: string, at: number): Found | null {
  const match = /^<((?:https?:\/\/|mailto:)[^\s<>"]{1,2000})>/i.exec(source.slice(at, at + 2_100));
  return match ? { node: link(match[1] as string), next: at + match[0].length } : null;
}

function readBareAddress(source: string, at: number): Found | null {
  if (at > 0 && /\w/.test(source[at - 1] as string)) return null;
  const match = /^https?:\/\/[^\s<>"')\]]+[^\s<>"')\].,;:!?]/i.exec(source.slice(at, at + 2_000));
  return match ? { node: link(match[0]), next: at + match[0].length } : null;
}

function link(href: string): Inline {
  return { type: "link", href, children: [{ type: "text", text: href }] };
}

function readMarked(source: string, at: number, depth: number): Found | null {
  for (const [mark, type] of MARKS) {
    if (!source.startsWith(mark, at) || /\s/.test(source[at + mark.length] ?? " ")) continue;
    if (mark.startsWith("_") && at > 0 && /\w/.test(source[at - 1] as string)) continue;
    const end = closing(source, mark, at + mark.length);
    if (end > 0) {
      return {
        node: { type, children: parseInline(source.slice(at + mark.length, end), depth + 1) },
        next: end + mark.length,
      };
    }
  }
  return null;
}

function closing(source: string, mark: string, from: number): number {
  for (let end = source.indexOf(mark, from); end > from; end = source.indexOf(mark, end + 1)) {
    const longer = mark.length === 1 && (source[end + 1] === mark || source[end - 1] === mark);
    const inWord = mark.startsWith("_") && /\w/.test(source[end + mark.length] ?? "");
    if (!longer && !inWord && !/[\s\\]/.test(source[end - 1] as string)) return end;
  }
  return -1;
}
