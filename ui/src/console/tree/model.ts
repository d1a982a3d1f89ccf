/** The workspace as one agent sees and changes it. */
import { type Signal, signal } from "@preact/signals";
import { ApiError, tryParse } from "../../lib/http";
import { get, isObject, type Json, type JsonObject, sameJson } from "../../lib/json";
import { throttled } from "../../lib/throttle";
import { ToolError } from "../client";
import { list, objectOr, text, texts } from "../facts";
import type { News, TreeNews } from "../news";
import { Forest, type Tools } from "./forest";
import { type Crumb, type Item, nameOf, ROOT } from "./node";

/** Beyond these, reading everything on screen again is cheaper than reading what changed. */
const MOST_SETTLED = 24;
const SETTLE_EVERY = 500;
const MARKED_FOR = 8_000;
const MOST_CHANGES = 50;
/** Tools after which siblings stand as they stood. */
const IN_PLACE = new Set(["update_payload_property", "update_payload", "update_nodes", "tag_node"]);

/** What to do, on what the person saw. */
export interface Act {
  tool: string;
  args: Record<string, unknown>;
  /** What it is called while it happens: “Move Kitchen”. */
  title: string;
  /** The node as the person saw it; the act goes on without asking if that still holds. */
  basis?: { item: Item; still: (now: Item) => boolean };
}

export type Notice =
  | { kind: "conflict"; title: string; message: string; again: () => void }
  | { kind: "approval"; title: string; message: string; id: string; approved: boolean | null; again: () => void }
  | { kind: "unknown"; title: string; message: string; again: () => void }
  | { kind: "refused"; title: string; message: string };

export interface Hit extends Crumb {
  type: string;
  path: Crumb[];
}

export interface Snapshot {
  id: string;
  label: string;
  agent: string;
  createdAt: string;
  nodes: number;
}

export interface PayloadType {
  name: string;
  schema: JsonObject | null;
}

export interface Mark {
  agent: string;
  tool: string;
  at: number;
}

export type SearchState =
  | { state: "idle" }
  | { state: "busy" }
  | { state: "found"; hits: Hit[]; next: string | null }
  | { state: "bad"; message: string };

export class TreeModel {
  readonly forest: Forest;
  /** Why nothing can be shown; empty if it can. */
  readonly problem = signal("");
  readonly loaded = signal(false);
  readonly selected: Signal<string | null> = signal(null);
  /** Counts up whenever the chosen node was read again. */
  readonly revision = signal(0);
  /** Null while unknown, or where the agent has no tool that tells. */
  readonly tags: Signal<string[] | null> = signal(null);
  readonly crumbs: Signal<Crumb[]> = signal([]);
  readonly marks: Signal<ReadonlyMap<string, Mark>> = signal(new Map());
  readonly changes: Signal<TreeNews[]> = signal([]);
  readonly notice: Signal<Notice | null> = signal(null);
  readonly busy = signal("");
  readonly query = signal("");
  readonly search: Signal<SearchState> = signal({ state: "idle" });
  readonly snapshots: Signal<Snapshot[] | null> = signal(null);
  readonly types: Signal<PayloadType[]> = signal([]);
  private version = "";
  private shown = false;
  private stale = true;
  private pending = new Set<string>();
  private reorder = false;
  private overflow = false;
  private settling: Promise<void> = Promise.resolve();
  private ticket = 0;
  private readonly settleSoon: () => void;
  private readonly unmarkSoon: () => void;
  private readonly tools: Tools;

  constructor(
    tools: Tools,
    /** The tools that the agent has. */
    readonly has: (tool: string) => boolean,
    private readonly newKey: () => string,
    private readonly say: (message: string) => void,
  ) {
    this.tools = {
      call: async (tool, args) => {
        const answer = await tools.call(tool, args);
        this.version = text(answer, "version") || this.version;
        return answer;
      },
    };
    this.forest = new Forest(this.tools);
    this.settleSoon = throttled(() => void this.settle(), SETTLE_EVERY, 60);
    this.unmarkSoon = throttled(() => this.unmark(), 1_000, MARKED_FOR);
  }

  /** Called when the view comes on screen; reads what was missed. */
  async enter(): Promise<void> {
    this.shown = true;
    if (!this.has("get_node") || !this.has("list_children")) {
      this.problem.value = "This agent cannot read the tree: it needs the tools get_node and list_children.";
      return;
    }
    if (!this.stale) return;
    this.stale = false;
    try {
      if (this.loaded.peek()) await this.forest.renewAll();
      else await this.forest.load();
      this.loaded.value = true;
      this.problem.value = "";
      if (this.has("list_payload_types")) await this.loadTypes();
    } catch (error) {
      this.stale = true;
      this.problem.value = messageOf(error);
    }
  }

  leave(): void {
    this.shown = false;
  }

  hear(news: News): void {
    if (news.type === "tree") {
      this.changes.value = [news, ...this.changes.peek()].slice(0, MOST_CHANGES);
      this.mark(news);
      this.touch(news.nodeIds, !IN_PLACE.has(news.tool));
    } else if (news.type === "gap" || news.type === "begun") {
      this.overflow = this.loaded.peek();
      this.touch([], false);
    } else if (news.type === "approval" && news.approved !== null) {
      const notice = this.notice.peek();
      if (notice?.kind === "approval" && notice.id === news.id)
        this.notice.value = { ...notice, approved: news.approved };
    }
  }

  async select(id: string | null): Promise<void> {
    this.selected.value = id;
    this.tags.value = null;
    this.crumbs.value = [];
    if (id !== null) await this.readSelected(false);
  }

  /** Opens the way to a node and chooses it. */
  async reveal(id: string): Promise<void> {
    const ticket = ++this.ticket;
    try {
      const way = this.forest.way(id) ?? (await this.askWay(id));
      const found = await this.forest.reveal(way.map((crumb) => crumb.id));
      if (ticket !== this.ticket) return;
      if (found) await this.select(id);
      else this.say(`There is no node ${id} any more`);
    } catch (error) {
      if (ticket === this.ticket) this.say(messageOf(error));
    }
  }

  // Changing ---------------------------------------------------------------------------------------

  /** Does something, once, whatever happens on the way; null if it did not come to be. */
  async act(act: Act): Promise<JsonObject | null> {
    return this.attempt(act, this.newKey(), act.basis?.item.version ?? this.version, true);
  }

  private async attempt(act: Act, key: string, version: string, mayRetry: boolean): Promise<JsonObject | null> {
    this.notice.value = null;
    this.busy.value = act.title;
    try {
      const answer = await this.tools.call(act.tool, { ...act.args, versionToken: version, idempotencyKey: key });
      this.touch(changedBy(answer, act), true);
      return answer;
    } catch (error) {
      return await this.recover(error, act, key, mayRetry);
    } finally {
      this.busy.value = "";
    }
  }

  private async recover(error: unknown, act: Act, key: string, mayRetry: boolean): Promise<JsonObject | null> {
    const { title } = act;
    const again = (): void => void this.attempt(act, key, this.version, true);
    if (error instanceof ApiError) {
      this.notice.value = {
        kind: "unknown",
        title,
        message: `${error.message} It is not known whether the change was made; trying again makes it only once.`,
        again,
      };
      return null;
    }
    if (!(error instanceof ToolError)) throw error;
    if (error.reason === "approval_required") {
      this.notice.value = {
        kind: "approval",
        title,
        message: error.message,
        id: error.fact("approvalId"),
        approved: null,
        again,
      };
      return null;
    }
    if (error.reason !== "stale_version" && error.reason !== "missing_version") {
      this.notice.value = { kind: "refused", title, message: error.message };
      return null;
    }
    const latest = error.fact("latestVersion") || this.version;
    this.version = latest;
    const changed = error.failure.facts ? texts(error.failure.facts, "changedNodeIds") : [];
    const now = act.basis ? await this.forest.read(act.basis.item.id) : null;
    const holds = act.basis !== undefined && now !== null && act.basis.still(now);
    if (mayRetry && holds) return this.attempt(act, key, latest, false);
    this.touch(changed.slice(0, MOST_SETTLED), true);
    this.notice.value = { kind: "conflict", title, message: this.conflictText(act, now), again };
    return null;
  }

  private conflictText(act: Act, now: Item | null): string {
    if (act.basis && now === null) return "The node was removed meanwhile.";
    const who = act.basis ? this.marks.peek().get(act.basis.item.id)?.agent : undefined;
    const what = act.basis ? "This node" : "The tree";
    return `${what} was changed${who ? ` by ${who}` : ""} after you last saw it, so nothing was done. It has been read again: look at it, then do it all the same or leave it.`;
  }

  undo(): Promise<JsonObject | null> {
    return this.step("undo", "Undo");
  }

  redo(): Promise<JsonObject | null> {
    return this.step("redo", "Redo");
  }

  /** Taking back is about one's own last change, whatever else changed: it goes with the latest version. */
  private async step(tool: string, title: string): Promise<JsonObject | null> {
    await this.forest.read(ROOT);
    const answer = await this.attempt({ tool, args: {}, title }, this.newKey(), this.version, true);
    if (answer) this.say(`${title}: ${text(answer, "tool")}`);
    return answer;
  }

  // Searching --------------------------------------------------------------------------------------

  async find(query: string, token: string | null = null): Promise<void> {
    const ticket = ++this.ticket;
    this.query.value = query;
    if (query.trim() === "") {
      this.search.value = { state: "idle" };
      return;
    }
    const before = this.search.peek();
    if (token === null) this.search.value = { state: "busy" };
    try {
      const answer = await this.tools.call("select_nodes", {
        queryDsl: query,
        limit: 50,
        ...(token !== null && { pageToken: token }),
      });
      if (ticket !== this.ticket) return;
      const next = get(answer, "nextPageToken");
      const older = token !== null && before.state === "found" ? before.hits : [];
      this.search.value = {
        state: "found",
        hits: [...older, ...list(answer, "items").map(hitOf)],
        next: typeof next === "string" ? next : null,
      };
    } catch (error) {
      if (ticket === this.ticket) this.search.value = { state: "bad", message: messageOf(error) };
    }
  }

  // Snapshots --------------------------------------------------------------------------------------

  async loadSnapshots(): Promise<void> {
    try {
      this.snapshots.value = list(await this.tools.call("snapshot_list", {}), "items").map(snapshotOf);
    } catch (error) {
      this.say(messageOf(error));
    }
  }

  async compare(a: string, b: string): Promise<JsonObject> {
    return this.tools.call("snapshot_diff", { a, b });
  }

  // Keeping current --------------------------------------------------------------------------------

  private touch(ids: readonly string[], order: boolean): void {
    for (const id of ids) this.pending.add(id);
    this.reorder ||= order;
    if (this.pending.size > MOST_SETTLED) this.overflow = true;
    if (this.shown && this.loaded.peek()) this.settleSoon();
    else this.stale = true;
  }

  private async settle(): Promise<void> {
    const { pending, reorder, overflow } = this;
    this.pending = new Set();
    this.reorder = false;
    this.overflow = false;
    // One after the other: two answers for one node must not overtake each other.
    this.settling = this.settling.then(async () => {
      try {
        if (overflow) await this.forest.renewAll();
        else await this.forest.settle(pending, reorder);
        const chosen = this.selected.peek();
        if (chosen !== null && (overflow || pending.has(chosen))) await this.readSelected(true);
      } catch (error) {
        this.stale = true;
        if (!(error instanceof ApiError)) this.say(messageOf(error));
      }
    });
    await this.settling;
  }

  /** What is known of the chosen node is shown at once, what is not is asked for. */
  private async readSelected(fresh: boolean): Promise<void> {
    const id = this.selected.peek();
    if (id === null) return;
    try {
      const known = fresh ? undefined : this.forest.get(id);
      const [item] = await Promise.all([known ?? this.forest.read(id), this.readTags(id), this.readPath(id)]);
      if (this.selected.peek() !== id) return;
      if (item === null) this.selected.value = null;
      this.revision.value += 1;
    } catch (error) {
      this.say(messageOf(error));
    }
  }

  /** Only an export tells the tags of a node. */
  private async readTags(id: string): Promise<void> {
    if (!this.has("export_subtree")) return;
    try {
      const answer = await this.tools.call("export_subtree", { nodeId: id, maxTokens: 1 });
      if (this.selected.peek() === id) this.tags.value = texts(objectOr(tryParse(text(answer, "json"))), "tags");
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
    }
  }

  private async readPath(id: string): Promise<void> {
    this.crumbs.value = this.forest.way(id) ?? [];
    if (this.crumbs.value.length > 0) return;
    try {
      const way = await this.askWay(id);
      if (this.selected.peek() === id) this.crumbs.value = way;
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
    }
  }

  private async askWay(id: string): Promise<Crumb[]> {
    if (this.has("get_path")) return list(await this.tools.call("get_path", { nodeId: id }), "path").map(crumbOf);
    const way: Crumb[] = [];
    for (let at: string | null = id; at !== null; ) {
      const item: Item | null = await this.forest.read(at);
      if (!item) return [];
      way.unshift({ id: item.id, name: nameOf(item) });
      at = item.parentId;
    }
    return way;
  }

  private async loadTypes(): Promise<void> {
    const answer = await this.tools.call("list_payload_types", {});
    this.types.value = list(answer, "items").map((one) => {
      const form = objectOr(one);
      const schema = get(form, "schema");
      return { name: text(form, "name"), schema: isObject(schema) ? schema : null };
    });
  }

  private mark({ nodeIds, agent, tool }: TreeNews): void {
    const at = Date.now();
    this.marks.value = new Map([
      ...this.marks.peek(),
      ...nodeIds.slice(0, 500).map((id) => [id, { agent, tool, at }] as const),
    ]);
    this.unmarkSoon();
  }

  private unmark(): void {
    const now = Date.now();
    const left = [...this.marks.peek()].filter(([, mark]) => now - mark.at < MARKED_FOR);
    this.marks.value = new Map(left);
    if (left.length > 0) this.unmarkSoon();
  }
}

/** Whether a property still holds what the person saw. */
export function sameProperty(key: string, seen: Item): (now: Item) => boolean {
  return (now) => {
    const [a, b] = [get(seen.payload, key), get(now.payload, key)];
    return a === undefined || b === undefined ? a === b : sameJson(a, b);
  };
}

export function samePayload(seen: Item): (now: Item) => boolean {
  return (now) => sameJson(seen.payload, now.payload);
}

export function samePlace(seen: Item): (now: Item) => boolean {
  return (now) => now.parentId === seen.parentId;
}

function changedBy(answer: JsonObject, { args }: Act): string[] {
  const named = [text(answer, "nodeId"), ...texts(answer, "nodeIds"), args.nodeId, args.parentNodeId, args.newParentId];
  return [...new Set(named.filter((id): id is string => typeof id === "string" && id !== ""))];
}

function crumbOf(json: Json): Crumb {
  const form = objectOr(json);
  const id = text(form, "nodeId");
  return { id, name: text(form, "name") || id };
}

function hitOf(json: Json): Hit {
  const form = objectOr(json);
  const id = text(form, "nodeId");
  return {
    id,
    name: nameOf({ id, payload: objectOr(get(form, "payload")) }),
    type: text(form, "payloadType"),
    path: list(form, "path").map(crumbOf),
  };
}

function snapshotOf(json: Json): Snapshot {
  const form = objectOr(json);
  const nodes = get(form, "nodeCount");
  return {
    id: text(form, "snapshotId"),
    label: text(form, "label"),
    agent: text(form, "agent"),
    createdAt: text(form, "createdAt"),
    nodes: typeof nodes === "number" ? nodes : 0,
  };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
