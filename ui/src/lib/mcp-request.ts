/** Requests of MCP 2026-07-28 over Streamable HTTP: each is one POST that carries all the server needs to know. */
import { version } from "../../package.json";
import type { CallRequest, Reply } from "./call";
import { get, isNumber, isObject, type Json, numberText, toJson } from "./json";
import { printJson } from "./json-print";

export const PROTOCOL = "2026-07-28";
export const REQUEST_ID = 1;

export interface McpRequest {
  headers: Record<string, string>;
  body: Json;
}

export function toolCall({ tool, args, reply, progress = true }: CallRequest): McpRequest {
  const meta = progress ? { progressToken: REQUEST_ID } : {};
  const { headers, body } = request(
    "tools/call",
    { name: tool.name, arguments: args, ...(reply && replyParams(reply)) },
    meta,
  );
  return { headers: { ...headers, "Mcp-Name": headerValue(tool.name), ...paramHeaders(tool.inputSchema, args) }, body };
}

/** Asks for the tools, or for those after a cursor. */
export function toolList(cursor: string | null): McpRequest {
  return request("tools/list", cursor === null ? {} : { cursor });
}

/** Asks for a stream that tells when the list of tools changed. */
export function listening(): McpRequest {
  return request("subscriptions/listen", { notifications: { toolsListChanged: true } });
}

export function requestInit({ headers, body }: McpRequest, signal: AbortSignal): RequestInit {
  return { method: "POST", headers, body: printJson(body), signal };
}

function request(method: string, params: object, meta: object = {}): McpRequest {
  const envelope = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
    "io.modelcontextprotocol/clientInfo": { name: "toolgrove-explorer", version },
    ...meta,
  };
  return {
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": PROTOCOL,
      "Mcp-Method": method,
    },
    body: toJson({ jsonrpc: "2.0", id: REQUEST_ID, method, params: { ...params, _meta: envelope } }),
  };
}

function replyParams({ question, answer }: Reply): object {
  const state = question.state === null ? {} : { requestState: question.state };
  return { inputResponses: { [question.key]: answer }, ...state };
}

/** A header's text is printable ASCII without spaces around it; anything else travels in base64. */
export function headerValue(text: string): string {
  if (/^(?! )[\x20-\x7e]*(?<! )$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)) return text;
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return `=?base64?${btoa(binary)}?=`;
}

/** Arguments that the tool's schema marks with `x-mcp-header` go into a header as well. */
function paramHeaders(schema: Json, args: Json): Record<string, string> {
  const headers: Record<string, string> = {};
  const properties = isObject(schema) ? get(schema, "properties") : undefined;
  if (!isObject(properties) || !isObject(args)) return headers;
  for (const [name, property] of Object.entries(properties)) {
    const token = isObject(property) ? get(property, "x-mcp-header") : undefined;
    const text = scalarText(get(args, name));
    if (typeof token === "string" && /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(token) && text !== null)
      headers[`Mcp-Param-${token}`] = headerValue(text);
    else Object.assign(headers, paramHeaders(property as Json, get(args, name) as Json));
  }
  return headers;
}

function scalarText(value: Json | undefined): string | null {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return String(value);
  return isNumber(value) ? numberText(value) : null;
}
