import { useEffect, useRef, useState } from "preact/hooks";
import { Markdown } from "../components/Markdown";
import { Callout } from "../components/Notice";
import { Select } from "../components/Select";
import { type ManualEntry, useContents } from "./contents";
import { linked, slug } from "./manual-text";
import { useConsole } from "./model";
import { hashOf } from "./route";

const FIRST = "concepts";

/** The documentation of this very version. */
export function Manual() {
  const console = useConsole();
  const { subject, detail } = console.route.value;
  const wanted = subject ?? FIRST;
  const contents = useContents();
  const [page, setPage] = useState<{ name: string; text: string } | null>(null);
  const [problem, setProblem] = useState("");
  const prose = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let here = true;
    console.api
      .manualPage(wanted)
      .then((next) => {
        if (!here) return;
        setPage({ name: wanted, text: next });
        setProblem("");
      })
      .catch((error: Error) => here && setProblem(error.message));
    return () => {
      here = false;
    };
  }, [wanted]);
  // The place within the page, by the words of its heading.
  useEffect(() => {
    const headings = [...(prose.current?.querySelectorAll<HTMLElement>("h1, h2, h3, h4") ?? [])];
    const place = headings.find((heading) => slug(heading.textContent ?? "") === detail);
    if (place) place.scrollIntoView({ block: "start" });
    else document.getElementById("main")?.scrollTo(0, 0);
  }, [page, detail]);
  const known = new Set(contents.map((entry) => entry.name));
  return (
    <div class="view manual" data-testid="manual" data-page={page?.name}>
      <nav class="manual-contents" aria-label="Documentation">
        {partsOf(contents).map(([part, entries]) => (
          <section key={part} aria-label={part}>
            <p class="eyebrow">{part}</p>
            <ul>
              {entries.map((entry) => (
                <li key={entry.name}>
                  <a href={hashOf("docs", entry.name)} aria-current={entry.name === wanted ? "page" : undefined}>
                    {entry.title}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </nav>
      <div class="manual-picker">
        <Select
          label="Page"
          value={wanted}
          options={contents.map((entry) => [entry.name, entry.title] as const)}
          onChange={(name) => console.go(hashOf("docs", name))}
        />
      </div>
      <div class="card manual-page">
        {problem !== "" && <Callout tone="danger" title={problem} />}
        {page === null && problem === "" && <p class="loading">Loading…</p>}
        {page && problem === "" && (
          <div ref={prose}>
            <Markdown source={linked(page.text, page.name, known)} top={1} />
          </div>
        )}
      </div>
    </div>
  );
}

function partsOf(contents: ManualEntry[]): [string, ManualEntry[]][] {
  const parts = new Map<string, ManualEntry[]>();
  for (const entry of contents) parts.set(entry.part, [...(parts.get(entry.part) ?? []), entry]);
  return [...parts];
}
