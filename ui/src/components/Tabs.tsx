import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

export interface Tab<Name extends string> {
  name: Name;
  label: string;
  note?: string;
}

interface Props<Name extends string> {
  label: string;
  tabs: readonly Tab<Name>[];
  current: Name;
  onSelect: (name: Name) => void;
  look?: "line" | "pill";
  /** What stands at the end of the row, after the tabs. */
  end?: ComponentChildren;
  children: ComponentChildren;
}

/** Tabs with one panel; arrow keys move between tabs as the pattern asks. */
export function Tabs<Name extends string>({
  label,
  tabs,
  current,
  onSelect,
  look = "line",
  end,
  children,
}: Props<Name>) {
  const id = useId();
  const row = useRef<HTMLDivElement>(null);
  const step = (event: KeyboardEvent): void => {
    const moves: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };
    const here = tabs.findIndex((tab) => tab.name === current);
    const move = moves[event.key];
    const next =
      event.key === "Home"
        ? 0
        : event.key === "End"
          ? tabs.length - 1
          : move === undefined
            ? null
            : (here + move + tabs.length) % tabs.length;
    if (next === null) return;
    event.preventDefault();
    onSelect((tabs[next] as Tab<Name>).name);
    row.current?.querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
  };
  return (
    <>
      <div class={`tabs ${look}`}>
        <div class="tab-row" role="tablist" aria-label={label} ref={row} onKeyDown={step}>
          {tabs.map((tab) => (
            <button
              key={tab.name}
              type="button"
              role="tab"
              id={`${id}-${tab.name}`}
              aria-selected={tab.name === current}
              aria-controls={`${id}-panel`}
              tabIndex={tab.name === current ? 0 : -1}
              onClick={() => onSelect(tab.name)}
            >
              {tab.label}
              {tab.note && <span class="tab-note">{tab.note}</span>}
            </button>
          ))}
        </div>
        {end && <div class="tab-end">{end}</div>}
      </div>
      <div class="tab-panel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${current}`}>
        {children}
      </div>
    </>
  );
}
