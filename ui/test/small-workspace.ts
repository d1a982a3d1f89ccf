/** As much of a workspace as the tree view needs: a tree in memory with versions, keys, pages and rights. */
import { ToolError } from "../src/console/client";
import { readFailure } from "../src/lib/failure";
import { type JsonObject, toJson } from "../src/lib/json";

interface Node {
  id: string;
  parent: string | null;
  type: string;
  payload: Record<string, unknown>;
  children: string[];
  tags: string[];
}

type Args = Record<string, unknown>;

export class SmallWorkspace {
  readonly nodes = new Map<string, Node>([
    ["root", { id: "root", parent: null, type: "Root", payload: {}, children: [], tags: [] }],
  ]);
  /** Every call that was made, in order. */
  readonly calls: string[] = [];
  /** Tools whose calls need an approval that nobody gave. */
  readonly held = new Set<string>();
  /** Keys of calls that did something. */
  readonly done = new Map<string, object>();
  /** When set, the next call has its effect and then seems to have been lost. */
  losesAnswer: Error | null = null;
  private seq = 0;
  private serial = 0;
  private last = new Map<string, number>();

  add(parent: string, payload: Record<string, unknown>, id = `n${++this.serial}`): string {
    this.nodes.set(id, { id, parent, type: "Thing", payload, children: [], tags: [] });
    this.node(parent).children.push(id);
    this.touch(id);
    return id;
  }

  set(id: string, key: string, value: unknown): void {
    this.node(id).payload = { ...this.node(id).payload, [key]: value };
    this.touch(id);
  }

  move(id: string, to: string): void {
    const node = this.node(id);
    const from = this.node(node.parent as string);
    from.children = from.children.filter((one) => one !== id);
    this.node(to).children.push(id);
    node.parent = to;
    this.touch(id);
  }

  remove(id: string): void {
    const node = this.node(id);
    for (const child of node.children) this.remove(child);
    const parent = this.node(node.parent as string);
    parent.children = parent.children.filter((one) => one !== id);
    this.nodes.delete(id);
    this.touch(id);
  }

  async call(tool: string, args: Args): Promise<JsonObject> {
    this.calls.push(tool);
    const key = args.idempotencyKey as string | undefined;
    const known = key === undefined ? undefined : this.done.get(key);
    if (known) return toJson(known) as JsonObject;
    if (this.held.has(tool)) throw refusal("forbidden", { reason: "approval_required", approvalId: "ap1" });
    const answer = { ...this.run(tool, args), version: `v-${this.seq}` };
    if (key !== undefined) this.done.set(key, answer);
    if (this.losesAnswer) {
      const error = this.losesAnswer;
      this.losesAnswer = null;
      throw error;
    }
    return toJson(answer) as JsonObject;
  }

  private run(tool: string, args: Args): object {
    switch (tool) {
      case "get_node":
        return this.form(args.nodeId as string);
      case "list_children": {
        const { children } = this.node(args.nodeId as string);
        const start = Number(args.pageToken ?? 0);
        const end = start + (args.limit as number);
        return {
          items: children.slice(start, end).map((id) => this.form(id)),
          ...(end < children.length && { nextPageToken: String(end) }),
        };
      }
      case "get_path": {
        const path: object[] = [];
        for (let at: string | null = args.nodeId as string; at !== null; at = this.node(at).parent)
          path.unshift({ nodeId: at, name: String(this.node(at).payload.name ?? at) });
        return { path };
      }
      case "update_payload_property":
        this.check(args);
        this.set(args.nodeId as string, args.propertyName as string, args.newValue);
        return { nodeId: args.nodeId };
      case "move_node":
        this.check(args);
        this.move(args.nodeId as string, args.newParentId as string);
        return { nodeId: args.nodeId };
      case "undo":
        this.check(args);
        return { tool: "move_node", nodeIds: ["shed"], nodeCount: 1, ofVersion: "v-0" };
      default:
        throw refusal("not_found", {});
    }
  }

  private check(args: Args): void {
    const seen = Number(String(args.versionToken).split("-")[1]);
    if (seen >= this.seq) return;
    const changed = [...this.last].filter(([, at]) => at > seen).map(([id]) => id);
    throw refusal("conflict", { reason: "stale_version", latestVersion: `v-${this.seq}`, changedNodeIds: changed });
  }

  private form(id: string): object {
    const { parent, type, payload, children } = this.node(id);
    return { nodeId: id, parentId: parent, payloadType: type, payload, childrenCount: children.length };
  }

  private node(id: string): Node {
    const node = this.nodes.get(id);
    if (!node) throw refusal("not_found", {});
    return node;
  }

  private touch(id: string): void {
    this.seq += 1;
    this.last.set(id, this.seq);
  }
}

function refusal(code: string, facts: object): ToolError {
  return new ToolError(readFailure(JSON.stringify({ error: { code, message: `refused: ${code}`, ...facts } })));
}
