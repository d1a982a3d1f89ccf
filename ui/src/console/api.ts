/** The operator's API. */
import { ApiError, errorText, type Fetch, send, tryParse } from "../lib/http";
import { type Json, toJson } from "../lib/json";
import { printJson } from "../lib/json-print";
import { segment } from "../lib/link";
import { chunks } from "../lib/mcp";
import { EventParser } from "../lib/sse";
import type { ApprovalList, Decision, LoginQuestion, PinDecision, PinList } from "./api-types";
import {
  type Approval,
  type AuditPage,
  approvalOf,
  auditPageOf,
  list,
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

export interface AuditFilter {
  kind: string;
  agent: string;
  tool: string;
  outcome: string;
  since: string;
}

export class ConsoleApi {
  constructor(
    private readonly origin: string,
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

  private async post(path: string, body: Decision | PinDecision): Promise<Json> {
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
    return new URL(path, this.origin).href;
  }
}

function given(filter: AuditFilter): Record<string, string> {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ""));
}
