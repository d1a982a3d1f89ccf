/** The part of the tree that is on screen: loaded piece by piece, kept current node by node. */
import { type Signal, signal } from "@preact/signals";
import { get, type JsonObject } from "../../lib/json";
import { ToolError } from "../client";
import { list, objectOr, text } from "../facts";
import { type Crumb, type Item, merged, nameOf, type Read, ROOT, readOf } from "./node";

const PAGE = 200;
/** A node this many pages down is shown without those before it. */
const MOST_PAGES = 10;
/** More open nodes than these are closed rather than read again. */
const MOST_RENEWED = 60;

export interface Tools {
  call(tool: string, args: Record<string, unknown>): Promise<JsonObject>;
}

export interface Row {
  id: string;
  depth: number;
  /** Place among its siblings, and how many they are. */
  place: number;
  of: number;
  /** The parent whose next children this row loads; null for a row that is a node. */
  more: string | null;
}

export class Forest {
  readonly rows: Signal<Row[]> = signal([]);
  private readonly items = new Map<string, Item>();
  /** Names of nodes that are not loaded. */
  private readonly heard = new Map<string, string>();

  constructor(private readonly tools: Tools) {}

  get(id: string): Item | undefined {
    return this.items.get(id);
  }

  name(id: string): string {
    const item = this.items.get(id);
    return item ? nameOf(item) : (this.heard.get(id) ?? id);
  }

  /** Remembers the name of a node that is not loaded. */
  hearName(id: string, name: string): void {
    this.heard.set(id, name);
  }

  /** A node changed, and may be called otherwise. */
  forgetName(id: string): void {
    this.heard.delete(id);
  }

  knowsName(id: string): boolean {
    return this.items.has(id) || this.heard.has(id);
  }

  /** The way from the root to a node, if all of it is loaded. */
  way(id: string): Crumb[] | null {
    const way: Crumb[] = [];
    for (let at: string | null = id; at !== null; ) {
      const item: Item | undefined = this.items.get(at);
      if (!item) return null;
      way.unshift({ id: at, name: nameOf(item) });
      at = item.parentId;
    }
    return way;
  }

  /** Reads the root and its first children. */
  async load(): Promise<void> {
    await Promise.all([this.read(ROOT), this.fetchChildren(ROOT, 1)]);
    this.change(ROOT, { open: true });
    this.show();
    const [only, ...others] = this.items.get(ROOT)?.children ?? [];
    if (only !== undefined && others.length === 0) await this.open(only);
  }

  /** Reads a node; null if there is none any more. */
  async read(id: string): Promise<Item | null> {
    try {
      const answer = await this.tools.call("get_node", { nodeId: id });
      return this.take(readOf(answer, text(answer, "version")));
    } catch (error) {
      if (!(error instanceof ToolError) || error.code !== "not_found") throw error;
      this.drop(id);
      return null;
    }
  }

  async open(id: string): Promise<void> {
    const item = this.items.get(id);
    if (!item || item.count === 0) return;
    this.change(id, { open: true });
    this.show();
    if (item.children === null) await this.fetchChildren(id, 1);
    this.show();
  }

  close(id: string): void {
    this.change(id, { open: false });
    this.show();
  }

  /** Loads the next children of a node. */
  async more(id: string): Promise<void> {
    const item = this.items.get(id);
    if (!item?.next || item.busy) return;
    this.change(id, { busy: true });
    this.show();
    try {
      const page = await this.page(id, item.next);
      const known = this.items.get(id)?.children ?? [];
      const fresh = new Set(page.ids);
      this.change(id, { children: [...known.filter((one) => !fresh.has(one)), ...page.ids], next: page.next });
    } finally {
      this.change(id, { busy: false });
      this.show();
    }
  }

  /** Opens the way to a node, given from the root down; false if it is not there. */
  async reveal(way: readonly string[]): Promise<boolean> {
    for (const [index, id] of way.slice(0, -1).entries()) {
      const child = way[index + 1] as string;
      if (!this.items.has(id) && !(await this.read(id))) return false;
      await this.open(id);
      for (
        let page = 1;
        page < MOST_PAGES && this.items.get(id)?.next && !this.items.get(id)?.children?.includes(child);
        page += 1
      )
        await this.more(id);
      const children = this.items.get(id)?.children ?? [];
      if (!children.includes(child)) {
        if (!(await this.read(child))) return false;
        this.change(id, { children: [...children, child] });
      }
    }
    this.show();
    return true;
  }

  /** Reads again what changed; `order` tells that siblings may have changed places. */
  async settle(ids: Iterable<string>, order: boolean): Promise<void> {
    const parents = new Set<string>();
    await Promise.all(
      [...ids].map(async (id) => {
        const before = this.items.get(id);
        const now = await this.read(id);
        const moved = before?.parentId !== now?.parentId;
        for (const parent of [before?.parentId, now?.parentId])
          if (parent && (order || moved || !now)) parents.add(parent);
      }),
    );
    await Promise.all([...parents].filter((id) => this.items.has(id)).map((id) => this.renew(id)));
    this.show();
  }

  /** Reads again what is open; what is loaded behind closed nodes is forgotten. */
  async renewAll(): Promise<void> {
    const open = new Set(
      this.rows
        .peek()
        .filter((row) => row.more === null && this.items.get(row.id)?.open)
        .slice(0, MOST_RENEWED)
        .map((row) => row.id),
    );
    for (const item of this.items.values())
      if (item.children !== null && !open.has(item.id))
        this.change(item.id, { children: null, next: null, open: false });
    await this.read(ROOT);
    for (const id of open) if (this.items.has(id)) await this.renew(id);
    this.show();
  }

  /** Reads a node and as many of its children as are loaded. */
  private async renew(id: string): Promise<void> {
    const item = await this.read(id);
    if (!item || item.children === null) {
      if (item?.open && item.count > 0) await this.fetchChildren(id, 1);
      return;
    }
    await this.fetchChildren(id, Math.min(Math.max(1, Math.ceil(item.children.length / PAGE)), MOST_PAGES));
  }

  private async fetchChildren(id: string, pages: number): Promise<void> {
    this.change(id, { busy: true });
    this.show();
    try {
      const ids: string[] = [];
      let next: string | null = null;
      for (let page = 0; page < pages; page += 1) {
        const part: { ids: string[]; next: string | null } = await this.page(id, next);
        ids.push(...part.ids);
        next = part.next;
        if (next === null) break;
      }
      if (!this.items.has(id))
        this.items.set(
          id,
          merged(undefined, {
            id,
            parentId: null,
            type: "",
            payload: objectOr(undefined),
            count: ids.length,
            version: "",
          }),
        );
      this.change(id, { children: ids, next });
    } finally {
      this.change(id, { busy: false });
    }
  }

  private async page(id: string, token: string | null): Promise<{ ids: string[]; next: string | null }> {
    const answer = await this.tools.call("list_children", {
      nodeId: id,
      limit: PAGE,
      ...(token !== null && { pageToken: token }),
    });
    const version = text(answer, "version");
    const reads = list(answer, "items").map((one) => readOf(one, version));
    for (const read of reads) this.take(read);
    const next = get(answer, "nextPageToken");
    return { ids: reads.map((read) => read.id), next: typeof next === "string" ? next : null };
  }

  private take(read: Read): Item {
    const item = merged(this.items.get(read.id), read);
    this.items.set(read.id, item);
    return item;
  }

  private drop(id: string): void {
    const item = this.items.get(id);
    if (!item) return;
    const gone = [id];
    for (let one = gone.pop(); one !== undefined; one = gone.pop()) {
      gone.push(...(this.items.get(one)?.children ?? []));
      this.items.delete(one);
    }
    const parent = item.parentId === null ? undefined : this.items.get(item.parentId);
    if (parent?.children)
      this.change(parent.id, {
        children: parent.children.filter((one) => one !== id),
        count: Math.max(0, parent.count - 1),
      });
  }

  private change(id: string, change: Partial<Item>): void {
    const item = this.items.get(id);
    if (item) this.items.set(id, { ...item, ...change });
  }

  private show(): void {
    const rows: Row[] = [];
    const stack: Row[] = this.items.has(ROOT) ? [{ id: ROOT, depth: 0, place: 1, of: 1, more: null }] : [];
    for (let row = stack.pop(); row; row = stack.pop()) {
      rows.push(row);
      const item = row.more === null ? this.items.get(row.id) : undefined;
      if (!item?.open || item.children === null) continue;
      const children = item.children.filter((id) => this.items.has(id));
      const of = Math.max(item.count, children.length);
      if (item.next !== null) stack.push({ id: `more:${row.id}`, depth: row.depth + 1, place: of, of, more: row.id });
      for (let index = children.length - 1; index >= 0; index -= 1)
        stack.push({ id: children[index] as string, depth: row.depth + 1, place: index + 1, of, more: null });
    }
    this.rows.value = rows;
  }
}
