import { useState } from "preact/hooks";

const PREVIEW = 280;
const PREVIEW_LINES = 8;
const STEP = 50_000;

/** A text that shows its beginning and, on request, the rest. */
export function LongText({ text, quoted = false }: { text: string; quoted?: boolean }) {
  const [limit, setLimit] = useState(0);
  const start = preview(text);
  const long = start.length < text.length;
  const shown = !long ? text : limit === 0 ? start : text.slice(0, limit);
  const mark = quoted ? '"' : "";
  return (
    <>
      <span class="j-string long">
        {mark}
        {shown}
        {shown.length < text.length ? "…" : mark}
      </span>
      {long && (
        <button
          type="button"
          class="more"
          aria-expanded={limit > 0}
          onClick={() => setLimit(limit >= text.length ? 0 : limit + STEP)}
        >
          {limit === 0
            ? `Show all ${text.length.toLocaleString("en")} characters`
            : limit < text.length
              ? "Show more"
              : "Show less"}
        </button>
      )}
    </>
  );
}

function preview(text: string): string {
  const lines = text.slice(0, PREVIEW).split("\n");
  return lines.length > PREVIEW_LINES ? lines.slice(0, PREVIEW_LINES).join("\n") : text.slice(0, PREVIEW);
}
