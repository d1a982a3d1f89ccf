/** What the server offers: itself, its tools, and the tools looked at. */
import { type Signal, signal } from "@preact/signals";
import type { Opened } from "../bench/bench";
import type { Api } from "../lib/api";
import { FormDraft } from "../lib/draft";
import { ApiError } from "../lib/http";
import { sameJson } from "../lib/json";
import type { ServerInfo, ToolDetail, ToolSummary } from "../lib/tool";

export interface Failure {
  message: string;
  status: number;
}

export type OpenState = { state: "loading" } | ({ state: "ready" } & Opened) | ({ state: "failed" } & Failure);

export class Catalog {
  readonly info: Signal<ServerInfo | null> = signal(null);
  /** Null until the first answer. */
  readonly tools: Signal<ToolSummary[] | null> = signal(null);
  readonly failure: Signal<Failure | null> = signal(null);
  readonly loading = signal(false);
  /** Names that came with the last change of the list. */
  readonly added: Signal<ReadonlySet<string>> = signal(new Set());
  readonly opened: Signal<ReadonlyMap<string, OpenState>> = signal(new Map());

  constructor(
    private readonly api: Api,
    private readonly announce: (message: string) => void,
  ) {}

  async load(): Promise<void> {
    this.loading.value = true;
    try {
      const [info, tools] = await Promise.all([this.api.info(), this.api.tools()]);
      this.info.value = info;
      this.replace(tools);
      this.failure.value = null;
    } catch (error) {
      this.failure.value = failureOf(error);
    } finally {
      this.loading.value = false;
    }
  }

  /** Fetches a tool, or fetches it again; what the user typed stays. */
  async open(name: string): Promise<void> {
    const before = this.opened.peek().get(name);
    if (before?.state !== "ready") this.set(name, { state: "loading" });
    try {
      const tool = await this.api.tool(name);
      const known = this.opened.peek().get(name);
      this.set(name, { state: "ready", tool, draft: draftFor(tool, known) });
    } catch (error) {
      this.set(name, { state: "failed", ...failureOf(error) });
    }
  }

  ready(name: string): Opened | null {
    const entry = this.opened.peek().get(name);
    return entry?.state === "ready" ? entry : null;
  }

  private replace(tools: ToolSummary[]): void {
    const before = this.tools.peek();
    this.tools.value = tools;
    if (before === null || JSON.stringify(before) === JSON.stringify(tools)) return;
    const old = new Set(before.map((tool) => tool.name));
    const now = new Set(tools.map((tool) => tool.name));
    const added = tools.filter((tool) => !old.has(tool.name)).map((tool) => tool.name);
    const removed = before.filter((tool) => !now.has(tool.name)).length;
    this.added.value = new Set(added);
    const changes = [added.length > 0 && `${added.length} new`, removed > 0 && `${removed} removed`]
      .filter(Boolean)
      .join(", ");
    this.announce(`Tool list updated${changes ? `: ${changes}` : ""}`);
  }

  private set(name: string, state: OpenState): void {
    this.opened.value = new Map([...this.opened.peek(), [name, state]]);
  }
}

function draftFor(tool: ToolDetail, known: OpenState | undefined): FormDraft {
  if (known?.state !== "ready") return new FormDraft(tool.inputSchema);
  if (sameJson(known.tool.inputSchema, tool.inputSchema)) return known.draft;
  return new FormDraft(tool.inputSchema, known.draft.value.peek());
}

function failureOf(error: unknown): Failure {
  return {
    message: error instanceof Error ? error.message : String(error),
    status: error instanceof ApiError ? error.status : 0,
  };
}
