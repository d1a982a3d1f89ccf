import { Fragment } from "preact";
import { useMemo, useState } from "preact/hooks";
import { size } from "../lib/format";
import type { Json } from "../lib/json";
import { printJson } from "../lib/json-print";

const FIRST = 40_000;
const TOKEN =
  /("(?:[^"\\]|\\.)*")(\s*:)?|((?<=^|[\s[,])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?=[\s,\]}]|$))|\b(true|false|null|True|False|None)\b/g;

/** JSON as coloured text, the first part of it when it is long. */
export function JsonText({ value, label }: { value: Json; label: string }) {
  const text = useMemo(() => printJson(value, 2), [value]);
  const [limit, setLimit] = useState(FIRST);
  const shown = text.slice(0, limit);
  return (
    <>
      <pre class="code json" tabIndex={0} role="region" aria-label={label}>
        <code>
          <Coloured text={shown} />
        </code>
      </pre>
      {text.length > limit && (
        <button type="button" class="button small" onClick={() => setLimit(limit * 4)}>
          Show more ({size(text.length - limit)} left)
        </button>
      )}
    </>
  );
}

export function Coloured({ text }: { text: string }) {
  const parts = useMemo(() => tokens(text), [text]);
  return (
    <>
      {parts.map(([kind, part], index) =>
        kind === "" ? (
          <Fragment key={index}>{part}</Fragment>
        ) : (
          <span key={index} class={`j-${kind}`}>
            {part}
          </span>
        ),
      )}
    </>
  );
}

function tokens(text: string): [string, string][] {
  const out: [string, string][] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > end) out.push(["", text.slice(end, match.index)]);
    const [whole, string, colon, number] = match;
    if (string !== undefined && colon !== undefined) out.push(["key", string], ["", colon]);
    else out.push([string !== undefined ? "string" : number !== undefined ? "number" : "word", whole]);
    end = match.index + whole.length;
  }
  if (end < text.length) out.push(["", text.slice(end)]);
  return out;
}
