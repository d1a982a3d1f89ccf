import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../../components/Icon";
import type { Row } from "./forest";
import type { TreeModel } from "./model";
import { nameOf } from "./node";

const HEIGHT = 30;
const BEYOND = 12;

/** The tree as rows, of which only those in sight are in the page. Arrow keys walk it as the pattern asks. */
export function TreeList({ model, onChoose }: { model: TreeModel; onChoose: (id: string) => void }) {
  const rows = model.forest.rows.value;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [room, setRoom] = useState(600);
  const [active, setActive] = useState<string | null>(null);
  const selected = model.selected.value;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setRoom(element.clientHeight));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const activeId = active ?? selected ?? rows[0]?.id ?? null;
  const at = Math.max(
    0,
    rows.findIndex((row) => row.id === activeId),
  );
  const bringInSight = (index: number): void => {
    const element = box.current;
    if (!element || index < 0) return;
    const [from, to] = [index * HEIGHT, (index + 1) * HEIGHT];
    if (from < element.scrollTop) element.scrollTop = from;
    else if (to > element.scrollTop + element.clientHeight) element.scrollTop = to - element.clientHeight;
  };
  // A node that was looked up comes into sight by itself.
  useEffect(() => {
    setActive(null);
    bringInSight(rows.findIndex((row) => row.id === selected));
  }, [selected]);
  const walk = (event: KeyboardEvent): void => {
    const row = rows[at];
    if (!row) return;
    const item = model.forest.get(row.id);
    const page = Math.max(1, Math.floor(room / HEIGHT) - 1);
    const moves: Record<string, () => number> = {
      ArrowDown: () => at + 1,
      ArrowUp: () => at - 1,
      PageDown: () => at + page,
      PageUp: () => at - page,
      Home: () => 0,
      End: () => rows.length - 1,
      ArrowRight: () => {
        if (item && item.count > 0 && !item.open) void model.forest.open(row.id);
        return item?.open ? at + 1 : at;
      },
      ArrowLeft: () => {
        if (item?.open) model.forest.close(row.id);
        return item?.open ? at : rows.findLastIndex((one, index) => index < at && one.depth < row.depth);
      },
      Enter: () => choose(row, at),
      " ": () => choose(row, at),
    };
    if (!Object.hasOwn(moves, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = Math.min(Math.max(moves[event.key]?.() ?? at, 0), rows.length - 1);
    setActive(rows[next]?.id ?? null);
    bringInSight(next);
  };
  const choose = (row: Row, index: number): number => {
    if (row.more !== null) void model.forest.more(row.more);
    else onChoose(row.id);
    return index;
  };
  const first = Math.max(0, Math.floor(top / HEIGHT) - BEYOND);
  const last = Math.min(rows.length, Math.ceil((top + room) / HEIGHT) + BEYOND);
  return (
    <div
      ref={box}
      class="tree-list"
      role="tree"
      aria-label="Workspace"
      tabIndex={0}
      aria-activedescendant={rows[at] && at >= first && at < last ? domId(rows[at].id) : undefined}
      data-testid="tree"
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={walk}
    >
      {rows.length === 0 && <p class="loading">Loading…</p>}
      <div
        role="presentation"
        ref={(element) => void element?.style.setProperty("height", `${rows.length * HEIGHT}px`)}
        class="tree-rows"
      >
        {rows.slice(first, last).map((row, offset) => (
          <RowView
            key={row.id}
            row={row}
            at={first + offset}
            model={model}
            active={row.id === rows[at]?.id}
            onChoose={() => {
              setActive(row.id);
              choose(row, at);
            }}
          />
        ))}
      </div>
    </div>
  );
}

function RowView({
  row,
  at,
  model,
  active,
  onChoose,
}: {
  row: Row;
  at: number;
  model: TreeModel;
  active: boolean;
  onChoose: () => void;
}) {
  const place = (element: HTMLElement | null): void => {
    element?.style.setProperty("top", `${at * HEIGHT}px`);
    element?.style.setProperty("--depth", String(row.depth));
  };
  const item = model.forest.get(row.id);
  if (row.more !== null) {
    const parent = model.forest.get(row.more);
    return (
      <div
        ref={place}
        id={domId(row.id)}
        class={`tree-row more-row ${active ? "active" : ""}`}
        role="treeitem"
        aria-level={row.depth + 1}
        aria-setsize={row.of}
        aria-posinset={row.place}
        aria-selected="false"
        onClick={onChoose}
        data-testid="load-more"
      >
        {parent?.busy ? "Loading…" : `Show more of ${(parent?.count ?? 0).toLocaleString("en")}`}
      </div>
    );
  }
  if (!item) return null;
  const mark = model.marks.value.get(row.id);
  const selected = model.selected.value === row.id;
  const name = nameOf(item);
  return (
    <div
      ref={place}
      id={domId(row.id)}
      class={`tree-row ${active ? "active" : ""} ${mark ? "marked" : ""}`}
      role="treeitem"
      aria-level={row.depth + 1}
      aria-setsize={row.of}
      aria-posinset={row.place}
      aria-expanded={item.count > 0 ? item.open : undefined}
      aria-selected={selected}
      data-testid="tree-row"
      data-node={row.id}
      onClick={onChoose}
    >
      <span
        class={`twist ${item.open ? "open" : ""} ${item.count === 0 ? "none" : ""}`}
        aria-hidden="true"
        data-testid="twist"
        onClick={(event) => {
          event.stopPropagation();
          if (item.open) model.forest.close(row.id);
          else void model.forest.open(row.id);
        }}
      >
        <Icon name="chevron" size={12} />
      </span>
      <span class="tree-name">{name}</span>
      <span class="tree-type">{item.type}</span>
      {item.count > 0 && <span class="tree-count">{item.count.toLocaleString("en")}</span>}
      {mark && (
        <span class="tree-mark" data-testid="tree-mark">
          {mark.agent} · {mark.tool}
        </span>
      )}
    </div>
  );
}

function domId(id: string): string {
  return `row-${encodeURIComponent(id.toWellFormed())}`;
}
