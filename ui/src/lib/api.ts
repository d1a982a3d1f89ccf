/** The Explorer's HTTP API, relative to the page's own address. */
import type { CallEvent, Caller, CallRequest } from "./call";
import { ApiError, browserFetch, errorText, type Fetch, send, tryParse } from "./http";
import { get, isObject, type Json } from "./json";
import { printJson } from "./json-print";
import { segment } from "./link";
import { infoOf, type ServerInfo, type ToolDetail, type ToolSummary, toolDetailOf, toolSummaryOf } from "./tool";

export class Api implements Caller {
  /** `base` is the address of the page, with or without its trailing slash or file name. */
  constructor(
    base: string,
    private readonly fetch: Fetch = browserFetch,
  ) {
    const url = new URL(base);
    this.base = new URL(url.pathname.replace(/[^/]*\.html?$/, "").replace(/\/?$/, "/"), url.origin);
  }

  private readonly base: URL;

  /** The address of what the server names relative to the page. */
  url(path: string): string {
    return new URL(path, this.base).href;
  }

  callUrl(tool: string): string {
    return this.url(`tools/${segment(tool)}/call`);
  }

  async info(): Promise<ServerInfo> {
    return infoOf(await this.json("info"));
  }

  async tools(): Promise<ToolSummary[]> {
    const list = await this.json("tools");
    if (!Array.isArray(list)) throw new ApiError("The server's tool list is not a list.", 200);
    return list.flatMap(toolSummaryOf);
  }

  async tool(name: string): Promise<ToolDetail> {
    const detail = toolDetailOf(await this.json(`tools/${segment(name)}`));
    if (!detail) throw new ApiError("The server's description of this tool has no name.", 200);
    return detail;
  }

  /** For a server without an MCP endpoint that a page can use: no progress, no questions. */
  async *call({ tool, args }: CallRequest, signal: AbortSignal): AsyncGenerator<CallEvent> {
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    const response = await send(this.fetch, this.callUrl(tool.name), {
      method: "POST",
      headers,
      body: printJson(args),
      signal,
    });
    yield plainAnswer(await response.text(), response);
  }

  private async json(path: string): Promise<Json> {
    const response = await send(this.fetch, this.url(path), {
      headers: { Accept: "application/json" },
      cache: "no-store",
    });
    const text = await response.text();
    if (!response.ok) throw new ApiError(errorText(text, response.status), response.status);
    const answer = tryParse(text);
    if (answer === undefined) throw new ApiError(`The server's answer for “${path}” is not JSON.`, response.status);
    return answer;
  }
}

function plainAnswer(text: string, { ok, status }: Response): CallEvent {
  if (!ok) return { type: "error", error: errorText(text, status), status };
  const answer = tryParse(text);
  const result = isObject(answer) ? get(answer, "result") : undefined;
  if (result !== undefined) return { type: "result", result };
  return { type: "error", error: `The server's answer holds no result: ${text.slice(0, 500)}`, status };
}
