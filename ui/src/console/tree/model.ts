/** The workspace as one agent sees and changes it. */
import { type Signal, signal } from "@preact/signals";
import type { ToastAction } from "../../components/Toast";
import { ApiError, tryParse } from "../../lib/http";
import { get, isObject, type Json, type JsonObject, sameJson } from "../../lib/json";
import { throttled } from "../../lib/throttle";
import { ToolError } from "../client";
import { list, objectOr, text, texts } from "../facts";
import { actorOf, type News, type TreeNews } from "../news";
import { Forest, type Tools } from "./forest";
import { type Crumb, type Item, nameOf, ROOT } from "./node";
import { describe, type Step } from "./step";

/** Beyond these, reading everything on screen again is cheaper than reading what changed. */
const MOST_SETTLED = 24;
const SETTLE_EVERY = 100;
const MARKED_FOR = 8_000;
const MOST_CHANGES = 50;
const MOST_NAMED = 400;
const NAMED_AT_ONCE = 50;
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

/** Who made a change: the operator through the agent, or the agent itself. */
export interface Author {
  byOperator: boolean;
  agent: string;
  callId: string;
}

/** One change of a node, as `node_history` tells it. */
export interface Happening {
  version: string;
  /** Milliseconds since 1970; null if unknown. */
  at: number | null;
  agent: string;
  tool: string;
  old: Json | undefined;
  new: Json | undefined;
  reordered: boolean;
}

/** An undo or redo that waits for a yes, since it takes back what somebody else did. */
export interface Question {
  tool: "undo" | "redo";
  step: Step;
}

/** What there is to complete a query with. */
export interface Vocabulary {
  properties: string[];
  types: string[];
  tags: string[];
}

export interface PayloadType {
  name: string;
  schema: JsonObject | null;
}

export interface Mark {
  /** The agent, or the operator as the agent. */
  by: string;
  tool: string;
  at: number;
}

export type SearchState =
  | { state: "idle" }
  | { state: "busy" }
  | { state: "found"; hits: Hit[]; next: string | null }
  /** What is typed is not a whole query yet, or never will be. */
  | { state: "half"; message: string }
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
  /** The nodes that are chosen together; the shown one is among them. */
  readonly chosen: Signal<ReadonlySet<string>> = signal(new Set());
  /** What the next undo would take back, as far as it was looked up. */
  readonly next: Signal<Step | null> = signal(null);
  readonly question: Signal<Question | null> = signal(null);
  readonly words: Signal<Vocabulary | null> = signal(null);
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
    private readonly say: (message: string, action?: ToastAction) => void,
    /** Who made the latest changes, of the agent or of one node, by the version that each led to and the tool. */
    readonly authors: (nodeId?: string) => Promise<ReadonlyMap<string, Author>> = async () => new Map(),
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
    if (id === null || !this.chosen.peek().has(id)) this.chosen.value = new Set(id === null ? [] : [id]);
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
      const gone = error instanceof ToolError && error.code === "not_found";
      if (ticket === this.ticket)
        this.say(gone ? `There is no node ${id}; it may have been removed` : messageOf(error));
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
    if (error.reason === "another_change") {
      const message =
        "Somebody made another change in the meantime, so nothing was done. Look again before you decide.";
      this.notice.value = { kind: "refused", title, message };
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
    const who = act.basis ? this.marks.peek().get(act.basis.item.id)?.by : undefined;
    const what = act.basis ? "This node" : "The tree";
    return `${what} was changed${who ? ` by ${who}` : ""} after you last saw it, so nothing was done. It has been read again: look at it, then do it all the same or leave it.`;
  }

  /** Takes the last change back; one that somebody else made only after a question that names them. */
  async undo(): Promise<JsonObject | null> {
    return this.step("undo");
  }

  async redo(): Promise<JsonObject | null> {
    return this.step("redo");
  }

  /** Looks up what the next undo would take back, for the words on its button. */
  async lookAhead(): Promise<void> {
    try {
      this.next.value = await this.foresee("undo");
    } catch {
      this.next.value = null;
    }
  }

  /** The person said yes to what `question` asks. */
  async confirm(): Promise<JsonObject | null> {
    const asked = this.question.peek();
    this.question.value = null;
    return asked ? this.carryOut(asked.tool, asked.step) : null;
  }

  private async step(tool: "undo" | "redo"): Promise<JsonObject | null> {
    this.notice.value = null;
    let step: Step;
    try {
      step = await this.foresee(tool);
    } catch (error) {
      this.say(messageOf(error));
      return null;
    }
    if (step.byYou) return this.carryOut(tool, step);
    this.question.value = { tool, step };
    return null;
  }

  /** Taking back is about one change, whatever else changed: it goes with the latest version, and names the change. */
  private async carryOut(tool: "undo" | "redo", step: Step): Promise<JsonObject | null> {
    await this.forest.read(ROOT);
    const title = tool === "undo" ? "Undo" : "Redo";
    const args = step.ofVersion === "" ? {} : { ofVersion: step.ofVersion };
    const answer = await this.attempt({ tool, args, title }, this.newKey(), this.version, true);
    this.next.value = null;
    const other = tool === "undo" ? "redo" : "undo";
    if (answer && this.has(other))
      this.say(`${title}: ${step.what}`, {
        label: tool === "undo" ? "Redo" : "Undo",
        run: () => void this.step(other),
      });
    else if (answer) this.say(`${title}: ${step.what}`);
    return answer;
  }

  private async foresee(tool: "undo" | "redo"): Promise<Step> {
    await this.forest.read(ROOT);
    const answer = await this.tools.call(tool, { dryRun: true, versionToken: this.version });
    await this.learnNames(texts(answer, "nodeIds").slice(0, 1));
    const author = (await this.authors()).get(`${text(answer, "ofVersion")} ${text(answer, "tool")}`);
    const at = Date.parse(text(answer, "ofTime"));
    return {
      what: describe(tool, answer, (id) => this.forest.name(id)),
      by: author ? (author.byOperator ? "you" : author.agent) : null,
      byYou: author?.byOperator === true,
      at: Number.isNaN(at) ? null : at,
      ofVersion: text(answer, "ofVersion"),
    };
  }

  /** Asks for the names of nodes that are not loaded, many at once: an agent's calls may be limited. */
  async learnNames(ids: readonly string[]): Promise<void> {
    const missing = [...new Set(ids)].filter((id) => id !== "" && !this.forest.knowsName(id)).slice(0, MOST_NAMED);
    if (!this.has("select_nodes")) return void (await Promise.all(missing.map((id) => this.forest.read(id))));
    for (let at = 0; at < missing.length; at += NAMED_AT_ONCE) {
      const wanted = missing.slice(at, at + NAMED_AT_ONCE).map((id) => JSON.stringify(id));
      const queryDsl = `@id in (${wanted.join(", ")})`;
      const answer = await this.tools.call("select_nodes", { queryDsl, limit: NAMED_AT_ONCE });
      for (const hit of list(answer, "items").map(hitOf)) this.forest.hearName(hit.id, hit.name);
    }
  }

  async historyOf(id: string): Promise<Happening[]> {
    const answer = await this.tools.call("node_history", { nodeId: id, limit: 50 });
    const happened = list(answer, "items").map(happeningOf);
    await this.learnNames(
      happened.flatMap((one) => [one.old, one.new].map((state) => text(objectOr(state), "parentId"))),
    );
    return happened;
  }

  /** Reads once what there is to complete a query with. */
  async learnWords(): Promise<void> {
    if (this.words.peek() !== null || !this.has("describe_tree")) return;
    const answer = await this.tools.call("describe_tree", {});
    const named = (key: string, of: string): string[] => list(answer, key).map((one) => text(objectOr(one), of));
    this.words.value = {
      properties: named("properties", "path"),
      types: named("types", "payloadType"),
      tags: named("tags", "tag"),
    };
  }

  // Searching --------------------------------------------------------------------------------------

  /** Finds while one types: what is half written says nothing yet. */
  async findSoon(query: string): Promise<void> {
    await this.find(query, null, true);
  }

  /** Nodes that hold a word, wherever they are. */
  async matching(word: string): Promise<Hit[]> {
    const quoted = `"${word.replace(/["\\]/g, "\\$&")}"`;
    const answer = await this.tools.call("select_nodes", { queryDsl: quoted, limit: 30 });
    return list(answer, "items").map(hitOf);
  }

  async find(query: string, token: string | null = null, half = false): Promise<void> {
    const ticket = ++this.ticket;
    this.query.value = query;
    if (query.trim() === "") {
      this.search.value = { state: "idle" };
      return;
    }
    const before = this.search.peek();
    if (token === null && (!half || before.state === "idle")) this.search.value = { state: "busy" };
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
      if (ticket !== this.ticket) return;
      const message = messageOf(error);
      this.search.value = half ? { state: "half", message } : { state: "bad", message };
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
    const diff = await this.tools.call("snapshot_diff", { a, b });
    for (const one of ["added", "removed"].flatMap((kind) => list(diff, kind)).map((entry) => objectOr(entry))) {
      const [id, payload] = [text(one, "nodeId"), objectOr(get(one, "payload"))];
      if (Object.keys(payload).length > 0) this.forest.hearName(id, nameOf({ id, payload }));
    }
    const entries = ["moved", "reordered", "changed"].flatMap((kind) => list(diff, kind)).map((one) => objectOr(one));
    await this.learnNames(
      entries.flatMap((one) => ["nodeId", "oldParentId", "newParentId"].map((key) => text(one, key))),
    );
    return diff;
  }

  // Keeping current --------------------------------------------------------------------------------

  private touch(ids: readonly string[], order: boolean): void {
    this.next.value = null;
    for (const id of ids) {
      this.pending.add(id);
      this.forest.forgetName(id);
    }
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

  private mark({ nodeIds, tool, ...news }: TreeNews): void {
    const at = Date.now();
    const by = actorOf(news);
    this.marks.value = new Map([
      ...this.marks.peek(),
      ...nodeIds.slice(0, 500).map((id) => [id, { by, tool, at }] as const),
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

function happeningOf(json: Json): Happening {
  const form = objectOr(json);
  const at = Date.parse(text(form, "at"));
  return {
    version: text(form, "version"),
    at: Number.isNaN(at) ? null : at,
    agent: text(form, "agent"),
    tool: text(form, "tool"),
    old: get(form, "old"),
    new: get(form, "new"),
    reordered: get(form, "reordered") === true,
  };
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
