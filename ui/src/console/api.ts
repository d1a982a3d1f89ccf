/** The operator's API. */
import { ApiError, errorText, type Fetch, send, tryParse } from "../lib/http";
import { type Json, toJson } from "../lib/json";
import { printJson } from "../lib/json-print";
import { segment } from "../lib/link";
import { chunks } from "../lib/mcp";
import { EventParser } from "../lib/sse";
import type {
  ApprovalList,
  Decision,
  LoginQuestion,
  ManualContents,
  ManualEntry,
  ManualPage,
  PinDecision,
  PinList,
  Pool,
  PoolTool,
  RunList,
} from "./api-types";
import {
  type Approval,
  type AuditPage,
  approvalOf,
  auditPageOf,
  list,
  type Minute,
  minutesOf,
  objectOr,
  type Pin,
  type Project,
  pinOf,
  projectOf,
  type Receipt,
  receiptOf,
  text,
  type Verification,
  verificationOf,
} from "./facts";
import { type News, newsOf } from "./news";
import {
  type AccessPreview,
  previewOf,
  type SourceStatus,
  type SourceView,
  sourcesOf,
  sourceViewOf,
  type Token,
  tokensOf,
  type Want,
} from "./sources";
import { type CallStory, callStoryOf, type RunStory, type RunSummary, runStoryOf, runSummaryOf } from "./stories";

export interface AuditFilter {
  kind: string;
  agent: string;
  /** A part of the name. */
  toolPart: string;
  outcome: string;
  since: string;
  until: string;
  text: string;
  run: string;
}

/** Where the project is: at its origin, or below it where several share one. */
export function baseOf(location: Location): string {
  return location.origin + pathOf(location);
}

/** The part of that which tells projects of one origin apart; empty for one that has the origin to itself. */
export function pathOf(location: Location): string {
  return location.pathname.replace(/\/console\/?$/, "").replace(/\/$/, "");
}
export const NO_FILTER: AuditFilter = {
  kind: "",
  agent: "",
  toolPart: "",
  outcome: "",
  since: "",
  until: "",
  text: "",
  run: "",
};

export class ConsoleApi {
  constructor(
    private readonly base: string,
    private readonly fetch: Fetch,
  ) {}

  mcpUrl(agent: string): string {
    return this.url(`/agents/${segment(agent)}/mcp`);
  }

  async project(): Promise<Project> {
    return projectOf(await this.get("/api/project"));
  }

  async approvals(): Promise<Approval[]> {
    return list(objectOr<ApprovalList>(await this.get("/api/approvals")), "items").map(approvalOf);
  }

  /** Lets a call through once, or every call like it for a while; or rejects it. */
  async decide(id: string, decision: Decision): Promise<Approval> {
    return approvalOf(await this.post(`/api/approvals/${segment(id)}`, decision));
  }

  async revoke(id: string): Promise<Approval> {
    return approvalOf(await this.json(await this.ask(`/api/approvals/${segment(id)}`, { method: "DELETE" })));
  }

  async pins(): Promise<Pin[]> {
    return list(objectOr<PinList>(await this.get("/api/pins")), "items").map(pinOf);
  }

  /** Accepts or refuses the definition with this hash, and no other. */
  async decidePin({ server, tool }: Pin, decision: PinDecision): Promise<Pin> {
    return pinOf(await this.post(`/api/pins/${segment(server)}/${segment(tool)}`, decision));
  }

  /** Where a person agrees to a login to a server. */
  async beginLogin(server: string): Promise<string> {
    const path = `/api/logins/${segment(server)}`;
    return text(objectOr<LoginQuestion>(await this.json(await this.ask(path, { method: "POST" }))), "address");
  }

  /** A page of the log, the newest first. */
  async audit(filter: AuditFilter, before: number | null, limit: number): Promise<AuditPage> {
    const query = new URLSearchParams({
      ...given(filter),
      newest: "1",
      limit: String(limit),
      ...(before === null ? {} : { before: String(before) }),
    });
    return auditPageOf(await this.get(`/api/audit?${query}`));
  }

  /** All that is known about a call. */
  async call(id: string): Promise<CallStory> {
    return callStoryOf(await this.get(`/api/calls/${segment(id)}`));
  }

  async runs(): Promise<RunSummary[]> {
    return list(objectOr<RunList>(await this.get("/api/runs")), "items").map(runSummaryOf);
  }

  async run(id: string): Promise<RunStory> {
    return runStoryOf(await this.get(`/api/runs/${segment(id)}`));
  }

  /** The calls of the last day by minute, of all agents or of one. */
  async traffic(agent: string): Promise<Minute[]> {
    const query = agent === "" ? "" : `?${new URLSearchParams({ agent })}`;
    return minutesOf(await this.get(`/api/traffic${query}`));
  }

  async verify(): Promise<Verification> {
    return verificationOf(await this.get("/api/audit/verify"));
  }

  async export(filter: AuditFilter, format: "jsonl" | "csv"): Promise<Blob> {
    const response = await this.ask(`/api/audit/export?${new URLSearchParams({ ...given(filter), format })}`, {});
    return response.blob();
  }

  async receipt(agent: string): Promise<Receipt> {
    return receiptOf(await this.get(`/agents/${segment(agent)}/receipt`));
  }

  /** Every tool of every source, by name. */
  async pool(): Promise<{ name: string; source: string; description: string }[]> {
    return list(objectOr<Pool>(await this.get("/api/pool")), "tools").map((one) => {
      const tool = objectOr<PoolTool>(one);
      return { name: text(tool, "name"), source: text(tool, "source"), description: text(tool, "description") };
    });
  }

  async manual(): Promise<ManualEntry[]> {
    return list(objectOr<ManualContents>(await this.get("/api/docs")), "items").map((one) => {
      const entry = objectOr<ManualEntry>(one);
      return { name: text(entry, "name"), title: text(entry, "title"), part: text(entry, "part") };
    });
  }

  /** A page of the documentation, as Markdown. */
  async manualPage(name: string): Promise<string> {
    return text(objectOr<ManualPage>(await this.get(`/api/docs/${segment(name)}`)), "text");
  }

  async sources(): Promise<SourceStatus[]> {
    return sourcesOf(await this.get("/api/sources"));
  }

  async source(name: string): Promise<SourceView> {
    return sourceViewOf(await this.get(`/api/sources/${segment(name)}`));
  }

  async restart(source: string): Promise<void> {
    await this.ask(`/api/sources/${segment(source)}/restart`, { method: "POST" });
  }

  /** What a change of access would write; nothing is written. */
  async previewAccess(agent: string, tool: string, want: Want): Promise<AccessPreview> {
    return previewOf(await this.post("/api/access/preview", { agent, tool, want }));
  }

  /** Writes it, if the file is still the one of the preview; the answer is what undoes it. */
  async changeAccess(agent: string, tool: string, want: Want, digest: string): Promise<string> {
    return text(objectOr(await this.post("/api/access", { agent, tool, want, digest })), "digest");
  }

  async undoAccess(digest: string): Promise<void> {
    await this.post("/api/access/undo", { digest });
  }

  async tokens(): Promise<Token[]> {
    return tokensOf(await this.get("/api/tokens"));
  }

  /** A new token of an agent, shown this once. */
  async newToken(agent: string, days: number | null): Promise<string> {
    return text(objectOr(await this.post("/api/tokens", { agent, ...(days !== null && { days }) })), "token");
  }

  async revokeToken(id: string): Promise<void> {
    await this.ask(`/api/tokens/${segment(id)}`, { method: "DELETE" });
  }

  async openaiTools(agent: string): Promise<Json> {
    return this.get(`/agents/${segment(agent)}/openai-tools`);
  }

  /** What happens, from now until the connection ends. */
  async *events(signal: AbortSignal): AsyncGenerator<News> {
    const response = await this.ask("/api/events", { signal, headers: { Accept: "text/event-stream" } });
    if (!response.body) return;
    const parser = new EventParser();
    const decoder = new TextDecoder();
    for await (const chunk of chunks(response.body, signal)) {
      for (const { data } of parser.push(decoder.decode(chunk, { stream: true }))) {
        const news = newsOf(tryParse(data));
        if (news) yield news;
      }
    }
  }

  private async get(path: string): Promise<Json> {
    return this.json(await this.ask(path, { headers: { Accept: "application/json" } }));
  }

  private async post(path: string, body: object): Promise<Json> {
    return this.json(
      await this.ask(path, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: printJson(toJson(body)),
      }),
    );
  }

  private async json(response: Response): Promise<Json> {
    const answer = tryParse(await response.text());
    if (answer === undefined) throw new ApiError("The server's answer is not JSON.", response.status);
    return answer;
  }

  private async ask(path: string, init: RequestInit): Promise<Response> {
    const response = await send(this.fetch, this.url(path), { cache: "no-store", ...init });
    if (!response.ok) throw new ApiError(errorText(await response.text(), response.status), response.status);
    return response;
  }

  private url(path: string): string {
    return new URL(this.base + path).href;
  }
}

function given(filter: AuditFilter): Record<string, string> {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ""));
}
