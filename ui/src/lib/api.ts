/** The Explorer's HTTP API, relative to the page's own address. */
import { get, isNumber, isObject, type Json, type JsonObject, numberOf, toJson } from "./json";
import { parseJson } from "./json-parse";
import { printJson } from "./json-print";
import { segment } from "./link";
import { EventParser, type ServerEvent } from "./sse";
import { infoOf, type ServerInfo, type ToolDetail, toolDetailOf, type ToolSummary, toolSummaryOf } from "./tool";

/**
 * ApiError
 *   the server could not be reached (`status` 0) or answered with an error
 */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

export interface Progress {
  progress: number;
  total: number | null;
  message: string | null;
}

export interface Question {
  id: string;
  message: string;
  schema: JsonObject | null;
}

export type CallEvent =
  | { type: "progress"; progress: Progress }
  | { type: "result"; result: Json }
  | { type: "error"; error: string; status: number }
  | { type: "question"; question: Question };

export type Answer = { action: "accept"; content: Json } | { action: "decline" } | { action: "cancel" };

const GONE = "The server cannot be reached. It may have stopped, or the network is down.";

export class Api {
  /** `base` is the address of the page, with or without its trailing slash or file name. */
  constructor(
    base: string,
    private readonly fetch: typeof globalThis.fetch = (...request) => globalThis.fetch(...request),
  ) {
    const url = new URL(base);
    this.base = new URL(url.pathname.replace(/[^/]*\.html?$/, "").replace(/\/?$/, "/"), url.origin);
  }

  private readonly base: URL;

  get eventsUrl(): string {
    return new URL("events", this.base).href;
  }

  callUrl(tool: string): string {
    return new URL(`tools/${segment(tool)}/call`, this.base).href;
  }

  mcpUrl(path: string): string {
    return new URL(path, this.base.origin).href;
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

  call(tool: string, args: JsonObject, signal: AbortSignal): AsyncGenerator<CallEvent> {
    return this.stream(this.callUrl(tool), args, signal);
  }

  answer(question: string, answer: Answer, signal: AbortSignal): AsyncGenerator<CallEvent> {
    return this.stream(new URL(`calls/${segment(question)}`, this.base).href, toJson(answer), signal);
  }

  private async json(path: string): Promise<Json> {
    const response = await this.request(new URL(path, this.base).href, { headers: { Accept: "application/json" }, cache: "no-store" });
    const text = await response.text();
    if (!response.ok) throw new ApiError(errorText(text, response.status), response.status);
    try {
      return parseJson(text);
    } catch {
      throw new ApiError(`The server's answer for “${path}” is not JSON.`, response.status);
    }
  }

  private async request(url: string, init: RequestInit): Promise<Response> {
    try {
      return await this.fetch(url, init);
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new ApiError(GONE, 0);
    }
  }

  private async *stream(url: string, body: Json, signal: AbortSignal): AsyncGenerator<CallEvent> {
    const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
    const response = await this.request(url, { method: "POST", headers, body: printJson(body), signal });
    if (!response.ok || !response.body || !(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
      yield plainAnswer(await response.text(), response);
      return;
    }
    for await (const event of serverEvents(response.body, signal)) {
      const known = callEventOf(event);
      if (known) yield known;
      if (known && known.type !== "progress") return;
    }
    yield { type: "error", error: "The server ended the call without an answer.", status: 0 };
  }
}

async function* serverEvents(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const parser = new EventParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError("The connection broke while the tool was running.", 0);
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function plainAnswer(text: string, response: Response): CallEvent {
  if (!response.ok) return { type: "error", error: errorText(text, response.status), status: response.status };
  try {
    const answer = parseJson(text);
    const result = isObject(answer) ? get(answer, "result") : undefined;
    if (result !== undefined) return { type: "result", result };
  } catch {
    // Falls through to the same message: there is no result to show.
  }
  return { type: "error", error: `The server's answer holds no result: ${text.slice(0, 500)}`, status: response.status };
}

export function callEventOf({ event, data }: ServerEvent): CallEvent | null {
  const body = tryParse(data);
  if (!isObject(body)) return event === "result" || event === "error" ? { type: "error", error: `Unreadable ${event}: ${data.slice(0, 500)}`, status: 0 } : null;
  switch (event) {
    case "progress":
      return { type: "progress", progress: { progress: numberIn(body, "progress") ?? 0, total: numberIn(body, "total"), message: textIn(body, "message") } };
    case "result":
      return { type: "result", result: get(body, "result") ?? null };
    case "error":
      return { type: "error", error: textIn(body, "error") ?? "The tool failed without saying why.", status: numberIn(body, "status") ?? 500 };
    case "question": {
      const schema = get(body, "schema");
      const id = textIn(body, "id");
      if (id === null) return { type: "error", error: "The tool asked a question that cannot be answered: it has no id.", status: 0 };
      return { type: "question", question: { id, message: textIn(body, "message") ?? "", schema: isObject(schema) ? schema : null } };
    }
    default:
      return null;
  }
}

function tryParse(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}

function numberIn(object: JsonObject, key: string): number | null {
  const value = get(object, key);
  return isNumber(value) ? numberOf(value) : null;
}

function textIn(object: JsonObject, key: string): string | null {
  const value = get(object, key);
  return typeof value === "string" ? value : null;
}

function errorText(text: string, status: number): string {
  const body = tryParse(text);
  const said = isObject(body) ? textIn(body, "error") : null;
  return said ?? `The server answered with status ${status}.`;
}
