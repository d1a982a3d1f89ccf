/** A client of the server's own MCP endpoint. */
import type { CallEvent, Caller, CallRequest, Progress } from "./call";
import { ApiError, browserFetch, errorText, type Fetch, send, textIn, tryParse } from "./http";
import { get, isNumber, isObject, type Json, type JsonObject, numberOf } from "./json";
import { listening, type McpRequest, requestInit, toolCall, toolList } from "./mcp-request";
import { EventParser } from "./sse";

/** How texts begin that speak of the arguments; any other failure is the tool's. */
const INPUT_FAULTS = /^(Input validation failed|Invalid input)/;
const BROKEN = "The connection broke while the tool was running.";
const MOST_PAGES = 100;
/** What the gateway says in the `_meta` of an answer that is its own refusal. */
const REFUSED = "toolgrove/error";
const NO_ANSWER = "The server ended the call without an answer.";

export class Mcp implements Caller {
  constructor(
    readonly url: string,
    private readonly fetch: Fetch = browserFetch,
  ) {}

  async *call(request: CallRequest, signal: AbortSignal): AsyncGenerator<CallEvent> {
    for await (const message of this.messages(toolCall(request), signal)) {
      const event = callEventOf(message);
      if (event) yield event;
      if (event && event.type !== "progress") return;
    }
    yield { type: "error", error: NO_ANSWER, status: 0 };
  }

  /** Every tool that the server lists, as it describes them. */
  async tools(signal: AbortSignal): Promise<JsonObject[]> {
    const found: JsonObject[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const result = await this.result(toolList(cursor), signal);
      const tools = get(result, "tools");
      if (Array.isArray(tools)) found.push(...tools.filter(isObject));
      cursor = textIn(result, "nextCursor");
      if (cursor === null) break;
    }
    return found;
  }

  /** Tells when the server listens, then each time its list of tools changed; ends when the connection does. */
  async *listen(signal: AbortSignal): AsyncGenerator<"listening" | "changed"> {
    for await (const message of this.messages(listening(), signal)) {
      const method = get(message, "method");
      if (method === "notifications/subscriptions/acknowledged") yield "listening";
      if (method === "notifications/tools/list_changed") yield "changed";
    }
  }

  private async result(request: McpRequest, signal: AbortSignal): Promise<JsonObject> {
    for await (const message of this.messages(request, signal)) {
      const [error, result] = [get(message, "error"), get(message, "result")];
      if (isObject(error)) throw new ApiError(textIn(error, "message") ?? NO_ANSWER, 500);
      if (isObject(result)) return result;
    }
    throw new ApiError(NO_ANSWER, 0);
  }

  /** The JSON-RPC messages that answer a request, be it one or a stream of them. */
  private async *messages(request: McpRequest, signal: AbortSignal): AsyncGenerator<JsonObject> {
    const response = await send(this.fetch, this.url, requestInit(request, signal));
    const isStream = (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
    if (!response.ok || !response.body || !isStream) {
      yield soleMessage(await response.text(), response);
      return;
    }
    const parser = new EventParser();
    const decoder = new TextDecoder();
    for await (const chunk of chunks(response.body, signal)) {
      for (const { data } of parser.push(decoder.decode(chunk, { stream: true }))) {
        const message = tryParse(data);
        if (isObject(message)) yield message;
      }
    }
  }
}

/** The pieces of a body as they come; leaving the loop closes the connection. */
export async function* chunks(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError(BROKEN, 0);
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function soleMessage(text: string, { ok, status }: Response): JsonObject {
  const message = tryParse(text);
  if (!ok) throw new ApiError(errorText(text, status), status);
  if (!isObject(message))
    throw new ApiError(`The server's answer is not an MCP message: ${text.slice(0, 500)}`, status);
  return message;
}

/** What a message means for the call; null for news that this page does not show. */
export function callEventOf(message: JsonObject): CallEvent | null {
  const error = get(message, "error");
  const result = get(message, "result");
  const params = get(message, "params");
  if (isObject(error))
    return { type: "error", error: textIn(error, "message") ?? "The call failed without saying why.", status: 500 };
  if (isObject(result)) return get(result, "resultType") === "input_required" ? questionOf(result) : outcomeOf(result);
  if (get(message, "method") === "notifications/progress" && isObject(params))
    return { type: "progress", progress: progressOf(params) };
  return null;
}

function progressOf(params: JsonObject): Progress {
  return {
    progress: numberIn(params, "progress") ?? 0,
    total: numberIn(params, "total"),
    message: textIn(params, "message"),
  };
}

function questionOf(result: JsonObject): CallEvent {
  const requests = get(result, "inputRequests");
  const [[key, request] = ["", null], ...others] = isObject(requests) ? Object.entries(requests) : [];
  const params = isObject(request) && get(request, "method") === "elicitation/create" ? get(request, "params") : null;
  if (!isObject(params) || get(params, "mode") === "url" || others.length > 0) {
    return { type: "error", error: "The tool asked for something that this page cannot answer.", status: 500 };
  }
  const schema = get(params, "requestedSchema");
  const question = {
    key,
    state: textIn(result, "requestState"),
    message: textIn(params, "message") ?? "",
    schema: isObject(schema) ? schema : null,
  };
  return { type: "question", question };
}

function outcomeOf(result: JsonObject): CallEvent {
  const content = get(result, "content");
  const blocks = Array.isArray(content) ? content : [];
  const texts = blocks.flatMap((block) => (isObject(block) ? (textIn(block, "text") ?? []) : []));
  const structured = get(result, "structuredContent");
  if (get(result, "isError") === true) {
    const error = texts.join("\n") || "The tool failed without saying why.";
    const failure: CallEvent = { type: "error", error, status: INPUT_FAULTS.test(error) ? 400 : 500 };
    const meta = get(result, "_meta");
    const isToolsOwn = !isObject(meta) || get(meta, REFUSED) === undefined;
    const isMore = blocks.length > texts.length || structured !== undefined;
    return isToolsOwn && isMore ? { ...failure, result: whole(blocks, structured) } : failure;
  }
  return { type: "result", result: outputOf(blocks, texts, structured) };
}

/** The tool's output, which the first text holds as JSON; failing that, all that it said. */
function outputOf(blocks: Json[], texts: string[], structured: Json | undefined): Json {
  const [first] = texts;
  const output = blocks.length === 1 && first !== undefined ? tryParse(first) : undefined;
  if (output !== undefined) return output;
  if (structured === undefined) return blocks.length === 1 && first !== undefined ? first : blocks;
  return blocks.length === 0 ? structured : whole(blocks, structured);
}

function whole(blocks: Json[], structured: Json | undefined): Json {
  const said: JsonObject = { content: blocks };
  return structured === undefined ? said : { ...said, structuredContent: structured };
}

function numberIn(object: JsonObject, key: string): number | null {
  const value = get(object, key);
  return isNumber(value) ? numberOf(value) : null;
}
