import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Badge, badgesOf } from "../components/Badge";
import { Icon } from "../components/Icon";
import { Empty } from "../components/Notice";
import { plural } from "../lib/format";
import { toolHash } from "../lib/link";
import { find, group, type Hit, type Span } from "../lib/search";
import type { ToolSummary } from "../lib/tool";
import { NARROW } from "./layout";
import { useExplorer } from "./model";
import { TagFilter } from "./TagFilter";

const PAGE = 200;
/** The list only carries the badges that should make one stop. */
const LISTED = new Set(["destructive", "needs approval", "streams"]);

/** The searchable list of tools. */
export function ToolList() {
  const explorer = useExplorer();
  const { tools, failure, loading } = explorer.catalog;
  const query = explorer.query.value;
  const tags = explorer.tags.value;
  const hits = useMemo(() => find(tools.value ?? [], query, tags), [tools.value, query, tags]);
  const list = useRef<HTMLDivElement>(null);
  const links = (): HTMLElement[] => [...(list.current?.querySelectorAll<HTMLElement>("a.tool") ?? [])];
  const [limit, setLimit] = useState(PAGE);
  useEffect(() => setLimit(PAGE), [query, tags]);

  // Back from a tool on a phone, focus returns to where it left.
  const current = explorer.route.value.tool;
  const last = useRef(current);
  useEffect(() => {
    if (current === null && last.current !== null && matchMedia(NARROW).matches)
      links()
        .find((link) => link.dataset.tool === last.current)
        ?.focus();
    last.current = current;
  }, [current]);

  const fromSearch = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") links()[0]?.focus();
    else if (event.key === "Enter") links()[0]?.click();
    else if (event.key === "Escape" && query !== "") explorer.query.value = "";
    else return;
    event.preventDefault();
  };
  const fromList = (event: KeyboardEvent): void => {
    const all = links();
    const here = all.indexOf(document.activeElement as HTMLElement);
    if (here < 0) return;
    const targets: Record<string, HTMLElement | null | undefined> = {
      ArrowDown: all[here + 1],
      ArrowUp: all[here - 1] ?? document.querySelector<HTMLElement>("#search"),
      Home: all[0],
      End: all.at(-1),
    };
    if (!Object.hasOwn(targets, event.key)) return;
    event.preventDefault();
    targets[event.key]?.focus();
  };

  return (
    <nav class="side" aria-label="Tools">
      <div class="search">
        <Icon name="search" />
        <input
          id="search"
          type="search"
          class="input"
          aria-label="Search tools"
          placeholder="Search tools"
          data-testid="search"
          autocomplete="off"
          spellcheck={false}
          value={query}
          onInput={(event) => (explorer.query.value = event.currentTarget.value)}
          onKeyDown={fromSearch}
        />
        {explorer.settings.singleKeys.value && query === "" && <kbd aria-hidden="true">/</kbd>}
      </div>
      <TagFilter />
      <p class="side-count" role="status" data-testid="tool-count">
        {tools.value === null
          ? ""
          : query !== "" || tags.size > 0
            ? `${hits.length} of ${plural(tools.value.length, "tool")}`
            : plural(tools.value.length, "tool")}
      </p>
      <div class="tools" ref={list} onKeyDown={fromList} data-testid="tool-list">
        {tools.value === null && failure.value === null && <Skeleton />}
        {tools.value === null && failure.value !== null && (
          <Empty icon="plug" title="No answer from the server" testId="load-error">
            <p role="alert">{failure.value.message}</p>
            <button type="button" class="button" disabled={loading.value} onClick={() => void explorer.retry()}>
              Retry
            </button>
          </Empty>
        )}
        {tools.value?.length === 0 && (
          <Empty icon="leaf" title="No tools yet" testId="no-tools">
            <p>This server has no tools registered. They appear here as soon as it does; there is no need to reload.</p>
          </Empty>
        )}
        {tools.value !== null && tools.value.length > 0 && hits.length === 0 && (
          <Empty icon="search" title="Nothing matches" testId="no-hits">
            <p>No tool has that in its name, description or tags.</p>
            <button
              type="button"
              class="button small"
              onClick={() => {
                explorer.query.value = "";
                explorer.tags.value = new Set();
                document.getElementById("search")?.focus();
              }}
            >
              Clear the search
            </button>
          </Empty>
        )}
        <Groups hits={hits.slice(0, limit)} />
        {hits.length > limit && (
          <button type="button" class="more" onClick={() => setLimit(limit + PAGE)}>
            Show more ({hits.length - limit} left)
          </button>
        )}
      </div>
    </nav>
  );
}

function Groups({ hits }: { hits: Hit<ToolSummary>[] }) {
  const explorer = useExplorer();
  const groups = useMemo(() => group(hits), [hits]);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const current = explorer.route.value.tool;
  // One link is in the tab order; arrow keys reach the others.
  const entry = hits.some((hit) => hit.item.name === current) ? current : hits[0]?.item.name;
  return (
    <>
      {groups.map(({ name, hits: members }) => {
        const label = name === "" ? "Other" : name;
        const open = !closed.has(name);
        const toggle = (): void =>
          setClosed(open ? new Set([...closed, name]) : new Set([...closed].filter((each) => each !== name)));
        return (
          <section key={name} class="group" aria-label={label}>
            {(groups.length > 1 || name !== "") && (
              <button type="button" class="group-head" aria-expanded={open} onClick={toggle}>
                <span class={`twist ${open ? "open" : ""}`}>
                  <Icon name="chevron" size={12} />
                </span>
                <span class="group-name">{label}</span>
                <span class="group-count">{members.length}</span>
              </button>
            )}
            {open && (
              <ul>
                {members.map((hit) => (
                  <li key={hit.item.name}>
                    <ToolLink
                      hit={hit}
                      prefix={name}
                      current={hit.item.name === current}
                      tabbable={hit.item.name === entry}
                      fresh={explorer.catalog.added.value.has(hit.item.name)}
                    />
                  </li>
                ))}
              </ul>
            )}
          </section>
        );
      })}
    </>
  );
}

interface LinkProps {
  hit: Hit<ToolSummary>;
  prefix: string;
  current: boolean;
  tabbable: boolean;
  fresh: boolean;
}

function ToolLink({ hit, current, tabbable, fresh }: LinkProps) {
  const { item, spans } = hit;
  return (
    <a
      class={`tool ${fresh ? "fresh" : ""}`}
      href={toolHash(item.name)}
      aria-current={current ? "page" : undefined}
      tabIndex={tabbable ? 0 : -1}
      data-testid="tool-link"
      data-tool={item.name}
    >
      <span class="tool-name">
        <Marked text={item.name} spans={spans} />
        {fresh && <span class="new">new</span>}
      </span>
      {item.description && <span class="tool-about">{item.description.slice(0, 200)}</span>}
      <span class="tool-badges">
        {badgesOf(item)
          .filter((badge) => LISTED.has(badge.text))
          .map((badge) => (
            <Badge key={badge.text} {...badge} />
          ))}
      </span>
    </a>
  );
}

function Marked({ text, spans }: { text: string; spans: Span[] }) {
  const parts: (string | { hit: string })[] = [];
  let end = 0;
  for (const [from, to] of spans) {
    parts.push(text.slice(end, from), { hit: text.slice(from, to) });
    end = to;
  }
  parts.push(text.slice(end));
  return <>{parts.map((part, index) => (typeof part === "string" ? part : <mark key={index}>{part.hit}</mark>))}</>;
}

function Skeleton() {
  return (
    <div class="skeleton" aria-hidden="true">
      {[0, 1, 2, 3, 4].map((row) => (
        <div key={row} class="bone" />
      ))}
    </div>
  );
}
