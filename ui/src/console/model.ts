/** The console without its looks: what every view shares. */
import { effect, type Signal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext, useEffect } from "preact/hooks";
import type { ToastAction } from "../components/Toast";
import type { Answer, Question } from "../lib/call";
import { Mcp } from "../lib/mcp";
import type { Settings } from "../lib/settings";
import { throttled } from "../lib/throttle";
import { type ToolDetail, toolDetailOf } from "../lib/tool";
import { baseOf, ConsoleApi, NO_FILTER } from "./api";
import { AgentClient } from "./client";
import { type Approval, type Pin, type Project, text } from "./facts";
import { LiveEvents } from "./live";
import { type ApprovalNews, askerOf, type CallNews, type News } from "./news";
import { hashOf, parseRoute, type Route } from "./route";
import { isSendable, type Session, tokenIn } from "./session";
import { type Author, TreeModel } from "./tree/model";

const MOST_CALLS = 100;
const OVERVIEW_EVERY = 1_500;
const POLL_EVERY = 30_000;

export interface Asked {
  tool: string;
  question: Question;
  answer: (answer: Answer) => void;
}

type Notices = "on" | "off" | "denied" | "unavailable";

function noticesNow(): Notices {
  if (typeof Notification === "undefined") return "unavailable";
  return Notification.permission === "granted" ? "on" : Notification.permission === "denied" ? "denied" : "off";
}

export class Console {
  readonly api: ConsoleApi;
  readonly live: LiveEvents;
  readonly route: Signal<Route>;
  readonly project: Signal<Project | null> = signal(null);
  readonly approvals: Signal<Approval[] | null> = signal(null);
  readonly pins: Signal<Pin[] | null> = signal(null);
  /** Why the facts on screen may be old; empty while they are not. */
  readonly failure = signal("");
  /** Why the token that was given is of no use. */
  readonly refused = signal("");
  /** The latest calls that were heard of, the newest first. */
  readonly calls: Signal<CallNews[]> = signal([]);
  /** Whether the browser tells of calls that wait while nobody looks at the page. */
  readonly notices: Signal<Notices> = signal(noticesNow());
  readonly helping = signal(false);
  readonly toast = signal("");
  readonly toastAction: Signal<ToastAction | null> = signal(null);
  /** Whether the view on screen is being explained. */
  readonly explaining = signal(false);
  /** Whether one looks for anything by name. */
  readonly finding = signal(false);
  /** What a tool asks in the middle of a call that the page itself made. */
  readonly asked: Signal<Asked | null> = signal(null);
  private readonly trees = new Map<string, Promise<TreeModel>>();
  private readonly listeners = new Set<(news: News) => void>();
  private readonly refreshOverview = throttled(() => void this.loadProject(), OVERVIEW_EVERY, 150);
  private readonly refreshWaiting = throttled(() => void this.loadWaiting(), 400, 50);

  constructor(
    readonly session: Session,
    readonly settings: Settings,
    private readonly page: Window,
  ) {
    this.api = new ConsoleApi(baseOf(page.location), session.fetch);
    this.live = new LiveEvents(
      (stop) => this.api.events(stop),
      (news) => this.take(news),
      () => void this.loadProject(),
    );
    this.takeToken();
    this.route = signal(parseRoute(page.location.hash));
  }

  start(): void {
    this.page.addEventListener("hashchange", () => {
      if (this.takeToken()) void this.load();
      this.route.value = parseRoute(this.page.location.hash);
    });
    this.page.document.addEventListener("visibilitychange", () => this.listen());
    this.page.setInterval(() => {
      if (!this.page.document.hidden && this.session.standing.peek() === "in") void this.loadProject();
    }, POLL_EVERY);
    // Whenever the server lets us in, the first time or after a new token, its events are followed.
    effect(() => {
      if (this.session.standing.value === "in") this.listen();
    });
    void this.load();
  }

  async load(): Promise<void> {
    await Promise.all([this.loadProject(), this.loadWaiting()]);
  }

  /** Asks for everything again, and follows events again at once. */
  retry(): void {
    void this.load();
    this.listen();
  }

  async signIn(token: string): Promise<void> {
    this.refused.value = "";
    if (!isSendable(token)) {
      this.refused.value = "A token has no spaces and no special characters; copy it again.";
      return;
    }
    this.session.use(token);
    await this.load();
    if (this.session.standing.peek() === "asking" && this.refused.peek() === "")
      this.refused.value = "The server does not know this token.";
  }

  signOut(): void {
    this.live.pause();
    this.project.value = null;
    this.approvals.value = null;
    this.pins.value = null;
    this.calls.value = [];
    this.trees.clear();
    this.session.forget();
  }

  go(hash: string): void {
    this.page.location.hash = hash;
  }

  /** Like `go`, without a step that Back would take. */
  replace(hash: string): void {
    this.page.history.replaceState(null, "", hash);
    this.route.value = parseRoute(hash);
  }

  say(message: string, action: ToastAction | null = null): void {
    this.toastAction.value = action;
    this.toast.value = message;
  }

  /** The MCP endpoint of an agent, spoken to with the operator's token. */
  mcp(agent: string): Mcp {
    return new Mcp(this.api.mcpUrl(agent), this.session.fetch);
  }

  /** The tools that an agent sees. */
  async tools(agent: string): Promise<ToolDetail[]> {
    const tools = await this.mcp(agent).tools(new AbortController().signal);
    return tools.flatMap((tool) => toolDetailOf(tool) ?? []);
  }

  /** The tree as an agent sees it; the same one each time, with what was opened and chosen in it. */
  tree(agent: string): Promise<TreeModel> {
    const known = this.trees.get(agent);
    if (known) return known;
    const made = this.makeTree(agent);
    this.trees.set(agent, made);
    made.catch(() => this.trees.delete(agent));
    return made;
  }

  private async makeTree(agent: string): Promise<TreeModel> {
    let names = new Set((await this.tools(agent)).map((tool) => tool.name));
    const client = new AgentClient(this.mcp(agent), (tool, question) => this.ask(tool, question));
    const model = new TreeModel(
      client,
      (tool) => names.has(tool),
      newKey,
      (message, action) => this.say(message, action ?? null),
      (nodeId) => this.authors(nodeId === undefined ? { agent } : { text: nodeId }),
    );
    this.hear((news) => {
      model.hear(news);
      if (news.type === "pool")
        void this.tools(agent).then((tools) => (names = new Set(tools.map((tool) => tool.name))));
    });
    return model;
  }

  /** Who made the latest changes of an agent or a node, by the version that each led to and the tool. */
  private async authors(about: { agent: string } | { text: string }): Promise<ReadonlyMap<string, Author>> {
    const { items } = await this.api.audit({ ...NO_FILTER, kind: "call", outcome: "success", ...about }, null, 500);
    return new Map(
      items.map((record) => [
        `${text(record.all, "version")} ${record.operation}`,
        { byOperator: record.byOperator, agent: record.agent, callId: record.callId },
      ]),
    );
  }

  private ask(tool: string, question: Question): Promise<Answer> {
    return new Promise((resolve) => {
      this.asked.value = {
        tool,
        question,
        answer: (answer) => {
          this.asked.value = null;
          resolve(answer);
        },
      };
    });
  }

  /** Hears of events until the returned function is called. */
  hear(listener: (news: News) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  async loadWaiting(): Promise<void> {
    try {
      const [approvals, pins] = await Promise.all([this.api.approvals(), this.api.pins()]);
      this.approvals.value = approvals;
      this.pins.value = pins;
    } catch (error) {
      this.fail(error);
    }
  }

  put(approval: Approval): void {
    this.approvals.value = (this.approvals.peek() ?? []).map((one) => (one.id === approval.id ? approval : one));
  }

  private async loadProject(): Promise<void> {
    try {
      this.project.value = await this.api.project();
      this.failure.value = "";
    } catch (error) {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const status = error instanceof Object && "status" in error ? error.status : 0;
    if (status === 401) return;
    if (status === 403 && this.project.peek() === null) {
      this.session.forget();
      this.refused.value = message;
    } else {
      this.failure.value = message;
    }
  }

  /** Moves a token from the address into this tab's memory. */
  private takeToken(): boolean {
    const token = tokenIn(this.page.location.hash);
    if (token === null) return false;
    this.page.history.replaceState(null, "", `${this.page.location.pathname}#/`);
    if (isSendable(token)) this.session.use(token);
    return true;
  }

  /** A browser shows notices only to those who asked for them by a click. */
  async askForNotices(): Promise<void> {
    await Notification.requestPermission();
    this.notices.value = noticesNow();
    if (this.notices.peek() === "on") this.say("This browser now tells you of calls that wait");
  }

  private notify(news: ApprovalNews): void {
    if (!this.page.document.hidden || this.notices.peek() !== "on") return;
    const notice = new Notification(`${askerOf(news)} ${news.tool}`, {
      body: "It waits for your approval.",
      tag: news.id,
    });
    notice.onclick = () => {
      this.page.focus();
      this.go(hashOf("approvals", news.id));
      notice.close();
    };
  }

  private listen(): void {
    // Who wants to be notified is told in the background too.
    if (this.page.document.hidden && this.notices.peek() !== "on") this.live.pause();
    else if (this.session.standing.peek() === "in") this.live.connect();
  }

  private take(news: News): void {
    switch (news.type) {
      case "begun":
      case "gap":
      case "pool":
        this.refreshOverview();
        this.refreshWaiting();
        break;
      case "call":
        this.calls.value = [news, ...this.calls.peek()].slice(0, MOST_CALLS);
        this.refreshOverview();
        if (
          this.approvals
            .peek()
            ?.some(
              (one) =>
                (one.state === "approved" || one.state === "claimed") &&
                one.agent === news.agent &&
                one.tool === news.tool,
            )
        )
          this.refreshWaiting();
        break;
      case "approval":
        this.refreshWaiting();
        this.refreshOverview();
        if (news.approved === null) {
          this.say(`${news.agent} asks to run ${news.tool}`);
          this.notify(news);
        }
    }
    for (const listener of this.listeners) listener(news);
  }
}

/** Unlike any other; `randomUUID` is not there on a plain-http address. */
function newKey(): string {
  return `console-${[...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join("")}`;
}

export const ConsoleContext = createContext<Console | null>(null);

export function useConsole(): Console {
  const console = useContext(ConsoleContext);
  if (!console) throw new Error("no console above this component");
  return console;
}

/** Hears of events while the component is on screen. */
export function useNews(listener: (news: News) => void, inputs: unknown[]): void {
  const console = useConsole();
  useEffect(() => console.hear(listener), inputs);
}
