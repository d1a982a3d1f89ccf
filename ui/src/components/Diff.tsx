import { useState } from "preact/hooks";

const FIRST = 400;

/** A unified diff, line by line; the signs stay, so colour is never alone. */
export function Diff({ text, label }: { text: string; label: string }) {
  const [limit, setLimit] = useState(FIRST);
  const lines = text.split("\n");
  return (
    <>
      <pre class="code diff" tabIndex={0} role="region" aria-label={label} data-testid="diff">
        {lines.slice(0, limit).map((line, index) => (
          <span key={index} class={`diff-line ${kindOf(line)}`}>
            {`${placed(line)}\n`}
          </span>
        ))}
      </pre>
      {lines.length > limit && (
        <button type="button" class="more" onClick={() => setLimit(limit * 4)}>
          Show more ({lines.length - limit} lines left)
        </button>
      )}
    </>
  );
}

/** Where a part begins, in words; all else as it is. */
function placed(line: string): string {
  const [, at] = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line) ?? [];
  return at === undefined ? line : `from line ${at}`;
}

function kindOf(line: string): string {
  if (line.startsWith("+++") || line.startsWith("---") || line.startsWith("@@")) return "place";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "";
}
