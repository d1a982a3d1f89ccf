/** The Explorer without its looks: everything the page knows and can do. */
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { Bench, type Opened, type Reach } from "../bench/bench";
import { type Run, Runner } from "../bench/runner";
import type { View } from "../bench/ToolBench";
import type { Api } from "../lib/api";
import { serverProblems } from "../lib/draft";
import { type Call, History, type Outcome } from "../lib/history";
import type { JsonObject } from "../lib/json";
import { parseHash, type Route, toolHash } from "../lib/link";
import { Mcp } from "../lib/mcp";
import { withoutSecrets } from "../lib/secrets";
import type { Settings } from "../lib/settings";
import type { Storage } from "../lib/storage";
import { Catalog } from "./catalog";
import { LiveTools } from "./live";

export type Panel = { type: "help" } | { type: "history" };

export class Explorer {
  readonly catalog: Catalog;
  readonly runner: Runner;
  readonly bench: Bench;
  readonly live: LiveTools;
  readonly route: Signal<Route>;
  readonly query = signal("");
  readonly tags: Signal<ReadonlySet<string>> = signal(new Set());
  readonly view: Signal<View> = signal("run");
  readonly panel: Signal<Panel | null> = signal(null);
  readonly toast: Signal<string> = signal("");
  readonly calls: Signal<Call[]> = signal([]);
  /** Null if the server has no endpoint for pages, undefined while it was not asked. */
  readonly mcp: ReadonlySignal<Mcp | null | undefined>;

  constructor(
    readonly api: Api,
    readonly settings: Settings,
    private readonly storage: Storage,
    private readonly page: Window,
  ) {
    this.catalog = new Catalog(api, (message) => this.say(message));
    this.runner = new Runner(
      () => this.mcp.peek() ?? api,
      () => performance.now(),
      (run) => this.ended(run),
    );
    this.live = new LiveTools(
      () => this.mcp.peek(),
      () => void this.refresh(),
      () => void this.catalog.load(),
    );
    this.route = signal(parseHash(page.location.hash));
    this.mcp = computed(() => {
      const path = this.catalog.info.value?.mcpPath;
      return typeof path === "string" ? new Mcp(api.url(path)) : path;
    });
    const reach = computed<Reach>(() => ({
      mcpUrl: this.mcp.value?.url,
      callUrl: (tool) => api.callUrl(tool),
      needsToken: false,
    }));
    this.bench = new Bench(
      this.runner,
      computed(() => this.catalog.info.value?.allowExecute ?? null),
      reach,
    );
  }

  async start(): Promise<void> {
    this.page.addEventListener("hashchange", () => void this.follow());
    await this.catalog.load();
    this.calls.value = this.history.list();
    this.listen();
    this.page.document.addEventListener("visibilitychange", () => this.listen());
    await this.follow();
  }

  /** Fetches everything shown again. */
  async refresh(): Promise<void> {
    const { tool } = this.route.peek();
    await Promise.all([this.catalog.load(), tool === null ? null : this.catalog.open(tool)]);
  }

  async retry(): Promise<void> {
    await this.refresh();
    this.listen();
    this.calls.value = this.history.list();
  }

  /** Goes to a tool; the address keeps only its name, so that a reload does not undo typing. */
  go(tool: string): void {
    this.page.location.hash = toolHash(tool);
  }

  link(opened: Opened): string {
    const { origin, pathname } = this.page.location;
    return (
      origin + pathname + toolHash(opened.tool.name, withoutSecrets(opened.tool.inputSchema, opened.draft.value.peek()))
    );
  }

  /** Brings an earlier call's arguments back into its tool's form. */
  async restore(call: Call): Promise<Opened | null> {
    this.panel.value = null;
    this.go(call.tool);
    await this.catalog.open(call.tool);
    const opened = this.catalog.ready(call.tool);
    opened?.draft.load(call.args);
    this.view.value = "run";
    return opened;
  }

  async rerun(call: Call): Promise<void> {
    const opened = await this.restore(call);
    if (opened) this.bench.run(opened);
  }

  clearHistory(): void {
    this.calls.value = this.history.clear();
  }

  say(message: string): void {
    this.toast.value = message;
  }

  private listen(): void {
    if (this.page.document.hidden) this.live.pause();
    else this.live.connect();
  }

  private get history(): History {
    return new History(this.storage, `toolgrove.history:${this.catalog.info.peek()?.name ?? ""}`);
  }

  private async follow(): Promise<void> {
    const { tool, args } = parseHash(this.page.location.hash);
    if (tool !== this.route.peek().tool) this.view.value = "run";
    this.route.value = { tool, args };
    if (tool === null) return;
    if (!this.catalog.ready(tool)) await this.catalog.open(tool);
    if (args) this.catalog.ready(tool)?.draft.load(args);
  }

  private ended(run: Run): void {
    const opened = this.catalog.ready(run.tool);
    const outcomes: Partial<Record<Run["status"], Outcome>> = { done: "ok", failed: "error", cancelled: "cancelled" };
    const outcome = outcomes[run.status];
    if (opened && run.status === "failed" && run.errorStatus === 400) {
      opened.draft.setServerProblems(serverProblems(run.error, run.args));
    }
    if (outcome === undefined) return;
    const args: JsonObject = opened ? withoutSecrets(opened.tool.inputSchema, run.args) : run.args;
    this.calls.value = this.history.add({
      id: crypto.getRandomValues(new Uint32Array(2)).join("-"),
      tool: run.tool,
      args,
      at: Date.now(),
      took: run.took,
      outcome,
    });
  }
}

export const ExplorerContext = createContext<Explorer | null>(null);

export function useExplorer(): Explorer {
  const explorer = useContext(ExplorerContext);
  if (!explorer) throw new Error("no Explorer above this component");
  return explorer;
}
