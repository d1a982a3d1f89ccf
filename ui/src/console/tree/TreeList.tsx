import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ContextMenu, type MenuItem } from "../../components/ContextMenu";
import { Icon } from "../../components/Icon";
import { plural } from "../../lib/format";
import { MoveDialog, RemoveDialog } from "./dialogs";
import type { Row } from "./forest";
import type { TreeModel } from "./model";
import { canDrop, type Direction, moveTo, nudge, rename, topmost, type Zone } from "./moves";
import { nameOf, ROOT } from "./node";

const HEIGHT = 30;
const BEYOND = 12;

const NUDGES: Record<string, Direction> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "out", ArrowRight: "in" };

interface Menu {
  x: number;
  y: number;
  id: string;
}

/** Where what is dragged would go. */
interface Drop {
  id: string;
  zone: Zone;
}

/**
 * The tree as rows, of which only those in sight are in the page. Arrow keys walk it as the pattern asks; with Shift and
 * Ctrl several nodes are chosen, which are dragged, moved and removed together.
 */
export function TreeList({
  model,
  onChoose,
  onAdd,
}: {
  model: TreeModel;
  onChoose: (id: string) => void;
  onAdd: (id: string) => void;
}) {
  const [renaming, setRenaming] = useState<string | null>(null);
  const [menu, setMenu] = useState<Menu | null>(null);
  const [open, setOpen] = useState<"move" | "remove" | null>(null);
  const [drop, setDrop] = useState<Drop | null>(null);
  const dragged = useRef<string[]>([]);
  const anchor = useRef<string | null>(null);
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
  // A node that was looked up comes into sight by itself, before a key can walk on from it.
  useLayoutEffect(() => {
    setActive(null);
    bringInSight(rows.findIndex((row) => row.id === selected));
  }, [selected]);
  const mayMove = model.has("move_node") && model.has("move_before") && model.has("move_after");
  const mayRename = model.has("update_payload_property");
  const mayRemove = model.has("remove_node");
  /** The nodes that an action is about: all that are chosen if this one is among them. */
  const subjects = (id: string): string[] => {
    const chosen = model.chosen.peek();
    return topmost(model, chosen.has(id) && chosen.size > 1 ? [...chosen] : [id]);
  };
  const begin = (what: "move" | "remove", id: string): void => {
    if (subjects(id).length === 0) return;
    if (!model.chosen.peek().has(id)) model.chosen.value = new Set([id]);
    setOpen(what);
  };
  /** Chooses everything from the anchor to this row. */
  const stretch = (to: string): void => {
    const ids = rows.filter((row) => row.more === null).map((row) => row.id);
    const from = ids.indexOf(anchor.current ?? model.selected.peek() ?? to);
    const [a, b] = [from < 0 ? ids.indexOf(to) : from, ids.indexOf(to)].sort((x, y) => x - y);
    model.chosen.value = new Set(ids.slice(a, (b ?? 0) + 1));
  };
  const toggle = (id: string): void => {
    const chosen = new Set(model.chosen.peek());
    if (!chosen.delete(id)) chosen.add(id);
    model.chosen.value = chosen;
    anchor.current = id;
  };
  /** Keys of an editor; false if it is none of them. */
  const edit = (event: KeyboardEvent, id: string): boolean => {
    const item = model.forest.get(id);
    const direction = event.altKey ? NUDGES[event.key] : undefined;
    const letter = event.ctrlKey || event.metaKey ? event.key.toLowerCase() : "";
    if (direction && mayMove && item) void nudge(model, item, direction).then(() => setActive(id));
    else if (letter === "z" && !event.shiftKey && model.has("undo")) void model.undo();
    else if ((letter === "y" || (letter === "z" && event.shiftKey)) && model.has("redo")) void model.redo();
    else if (event.key === "F2" && mayRename && id !== ROOT) setRenaming(id);
    else if (event.key === "Delete" && mayRemove) begin("remove", id);
    else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) {
      const box = document.getElementById(domId(id))?.getBoundingClientRect();
      setMenu({ x: (box?.left ?? 0) + 40, y: box?.bottom ?? 0, id });
    } else if (event.key === " " && event.ctrlKey) toggle(id);
    else return false;
    event.preventDefault();
    return true;
  };
  const menuOf = (id: string): MenuItem[] => {
    const many = subjects(id).length > 1;
    const item = model.forest.get(id);
    if (!item) return [];
    const own = id !== ROOT;
    const items: (MenuItem | false)[] = [
      !many && { label: "Open", keys: "Enter", run: () => onChoose(id) },
      !many && model.has("add_child") && { label: "Add a child…", run: () => onAdd(id) },
      !many && own && mayRename && { label: "Rename", keys: "F2", run: () => setRenaming(id) },
      !many && own && mayMove && { label: "Move up", keys: "Alt+↑", run: () => void nudge(model, item, "up") },
      !many && own && mayMove && { label: "Move down", keys: "Alt+↓", run: () => void nudge(model, item, "down") },
      own && mayMove && { label: many ? "Move all…" : "Move…", run: () => begin("move", id) },
      own &&
        mayRemove && {
          label: many ? "Remove all…" : "Remove…",
          keys: "Del",
          tone: "danger",
          run: () => begin("remove", id),
        },
      !many && { label: "Copy the id", run: () => void navigator.clipboard.writeText(id) },
    ];
    return items.filter((one) => one !== false);
  };
  const walk = (event: KeyboardEvent): void => {
    const row = rows[at];
    if (!row || renaming !== null) return;
    if (row.more === null && edit(event, row.id)) return;
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
    if (!event.shiftKey && row.more === null) anchor.current = row.id;
    const next = Math.min(Math.max(moves[event.key]?.() ?? at, 0), rows.length - 1);
    const reached = rows[next];
    if (event.shiftKey && reached?.more === null) {
      anchor.current ??= row.id;
      stretch(reached.id);
    }
    setActive(reached?.id ?? null);
    bringInSight(next);
  };
  const choose = (row: Row, index: number): number => {
    if (row.more !== null) void model.forest.more(row.more);
    else onChoose(row.id);
    return index;
  };
  const first = Math.max(0, Math.floor(top / HEIGHT) - BEYOND);
  const last = Math.min(rows.length, Math.ceil((top + room) / HEIGHT) + BEYOND);
  const zoneOf = (event: DragEvent, id: string): Zone => {
    const { top: edge, height } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const share = (event.clientY - edge) / height;
    return id === ROOT || (share > 0.28 && share < 0.72) ? "inside" : share <= 0.28 ? "before" : "after";
  };
  const several = model.chosen.value.size > 1 ? [...model.chosen.value] : [];
  return (
    <>
      {several.length > 0 && (
        <div class="chosen-bar" role="group" aria-label="Chosen nodes" data-testid="chosen-bar">
          <span role="status">{plural(several.length, "node")} chosen</span>
          {mayMove && (
            <button type="button" class="button small" onClick={() => setOpen("move")}>
              <Icon name="move" /> Move…
            </button>
          )}
          {mayRemove && (
            <button type="button" class="button small" onClick={() => setOpen("remove")}>
              <Icon name="trash" /> Remove…
            </button>
          )}
          <button
            type="button"
            class="button small ghost"
            onClick={() => (model.chosen.value = new Set(selected === null ? [] : [selected]))}
          >
            Clear
          </button>
        </div>
      )}
      <div
        ref={box}
        class="tree-list"
        role="tree"
        aria-multiselectable="true"
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
              renaming={renaming === row.id}
              drop={drop?.id === row.id ? drop.zone : null}
              onRenamed={(name) => {
                const item = model.forest.get(row.id);
                setRenaming(null);
                if (item && name !== null) void rename(model, item, name);
                box.current?.focus();
              }}
              onMenu={(event) => {
                event.preventDefault();
                setActive(row.id);
                setMenu({ x: event.clientX, y: event.clientY, id: row.id });
              }}
              drag={{
                may: mayMove && row.id !== ROOT && renaming === null,
                begin: () => {
                  dragged.current = subjects(row.id);
                },
                over: (event) => {
                  const zone = zoneOf(event, row.id);
                  if (!canDrop(model, dragged.current, row.id, zone)) return setDrop(null);
                  event.preventDefault();
                  if (drop?.id !== row.id || drop.zone !== zone) setDrop({ id: row.id, zone });
                },
                end: () => {
                  dragged.current = [];
                  setDrop(null);
                },
                drop: (event) => {
                  event.preventDefault();
                  const ids = dragged.current;
                  setDrop(null);
                  void moveTo(model, ids, row.id, zoneOf(event, row.id));
                },
              }}
              onChoose={(event) => {
                setActive(row.id);
                if (row.more === null && event.shiftKey) return stretch(row.id);
                if (row.more === null && (event.ctrlKey || event.metaKey)) return toggle(row.id);
                anchor.current = row.id;
                if (row.more === null) model.chosen.value = new Set([row.id]);
                choose(row, at);
              }}
            />
          ))}
        </div>
      </div>
      {menu && (
        <ContextMenu
          at={menu}
          label={`Actions for ${model.forest.name(menu.id)}`}
          items={menuOf(menu.id)}
          onClose={() => {
            setMenu(null);
            box.current?.focus();
          }}
        />
      )}
      {open === "move" && (
        <MoveDialog model={model} ids={topmost(model, [...model.chosen.peek()])} onClose={() => setOpen(null)} />
      )}
      {open === "remove" && (
        <RemoveDialog
          model={model}
          ids={topmost(model, [...model.chosen.peek()])}
          onClose={() => setOpen(null)}
          onRemoved={() => void model.select(null)}
        />
      )}
    </>
  );
}

interface Drag {
  may: boolean;
  begin: () => void;
  over: (event: DragEvent) => void;
  end: () => void;
  drop: (event: DragEvent) => void;
}

function RowView({
  row,
  at,
  model,
  active,
  renaming,
  drop,
  drag,
  onRenamed,
  onMenu,
  onChoose,
}: {
  row: Row;
  at: number;
  model: TreeModel;
  active: boolean;
  renaming: boolean;
  drop: Zone | null;
  drag: Drag;
  /** Null if it stays as it is. */
  onRenamed: (name: string | null) => void;
  onMenu: (event: MouseEvent) => void;
  onChoose: (event: MouseEvent) => void;
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
  const chosen = model.chosen.value;
  const selected = model.selected.value === row.id || chosen.has(row.id);
  const name = nameOf(item);
  return (
    <div
      ref={place}
      id={domId(row.id)}
      class={`tree-row ${active ? "active" : ""} ${mark ? "marked" : ""} ${drop ? `drop-${drop}` : ""}`}
      draggable={drag.may}
      onDragStart={drag.begin}
      onDragOver={drag.over}
      onDragEnd={drag.end}
      onDrop={drag.drop}
      onContextMenu={onMenu}
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
      {renaming ? <NameField name={name} onDone={onRenamed} /> : <span class="tree-name">{name}</span>}
      <span class="tree-type">{item.type}</span>
      {item.count > 0 && <span class="tree-count">{item.count.toLocaleString("en")}</span>}
      {mark && (
        <span class="tree-mark" data-testid="tree-mark">
          {mark.by} · {mark.tool}
        </span>
      )}
    </div>
  );
}

/** The name of a node while it is being written. */
function NameField({ name, onDone }: { name: string; onDone: (name: string | null) => void }) {
  const field = useRef<HTMLInputElement>(null);
  const done = useRef(false);
  // Set once and not again: the row is drawn anew whenever the tree changes, also while one types.
  useLayoutEffect(() => {
    if (field.current) field.current.value = name;
    field.current?.focus();
    field.current?.select();
  }, []);
  const end = (next: string | null): void => {
    if (done.current) return;
    done.current = true;
    onDone(next);
  };
  return (
    <input
      ref={field}
      class="input name-field"
      aria-label={`New name of ${name}`}
      data-testid="name-field"
      onClick={(event) => event.stopPropagation()}
      onBlur={(event) => end(event.currentTarget.value)}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === "Enter") end(event.currentTarget.value);
        else if (event.key === "Escape") end(null);
        else return;
        event.preventDefault();
      }}
    />
  );
}

function domId(id: string): string {
  return `row-${encodeURIComponent(id.toWellFormed())}`;
}
