import { useMemo, useState } from "preact/hooks";
import { countTags } from "../lib/search";
import { useExplorer } from "./model";

const FIRST = 6;

/** Chips that narrow the list to the tools carrying every chosen tag. */
export function TagFilter() {
  const explorer = useExplorer();
  const tools = explorer.catalog.tools.value;
  const counts = useMemo(() => countTags(tools ?? []), [tools]);
  const [all, setAll] = useState(false);
  const chosen = explorer.tags.value;
  if (counts.length === 0) return null;
  const shown = all ? counts.slice(0, 200) : counts.filter(([tag], index) => index < FIRST || chosen.has(tag));
  const toggle = (tag: string): void => {
    explorer.tags.value = chosen.has(tag)
      ? new Set([...chosen].filter((each) => each !== tag))
      : new Set([...chosen, tag]);
  };
  return (
    <div class="tags" role="group" aria-label="Filter by tag">
      {shown.map(([tag, count]) => (
        <button
          key={tag}
          type="button"
          class="chip"
          aria-pressed={chosen.has(tag)}
          data-testid="tag"
          onClick={() => toggle(tag)}
        >
          <span class="chip-text">{tag}</span> <span class="chip-count">{count}</span>
        </button>
      ))}
      {counts.length > FIRST && (
        <button type="button" class="chip plain" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Fewer" : `${counts.length - FIRST} more`}
        </button>
      )}
    </div>
  );
}
