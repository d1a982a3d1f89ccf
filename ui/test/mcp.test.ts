import { expect, test } from "vitest";
import type { CallEvent, CallRequest } from "../src/lib/call";
import { type JsonObject, toJson } from "../src/lib/json";
import { printJson } from "../src/lib/json-print";
import { Mcp } from "../src/lib/mcp";
import { headerValue, toolCall } from "../src/lib/mcp-request";
import { collect } from "./collect";

const object = (value: unknown): JsonObject => toJson(value) as JsonObject;
const tool = { name: "t", inputSchema: object({}) };
const request: CallRequest = { tool, args: object({ a: 1 }) };
const forever = new AbortController().signal;

/** An endpoint that answers everything the same. */
function endpoint(body: string, { status = 200, type = "application/json" } = {}): Mcp {
  return new Mcp("http://h/mcp", async () => new Response(body, { status, headers: { "content-type": type } }));
}

const answered = (result: unknown): string => JSON.stringify({ jsonrpc: "2.0", id: 1, result });
const text = (said: string, more: object = {}): string =>
  answered({ resultType: "complete", content: [{ type: "text", text: said }], ...more });
const stream = (...messages: unknown[]): string =>
  messages.map((message) => `event: message\r\ndata: ${JSON.stringify(message)}\r\n\r\n`).join("");
const events = (mcp: Mcp): Promise<CallEvent[]> => collect(mcp.call(request, forever));

test("a call says in its headers what it says in its body", () => {
  const { headers, body } = toolCall({ tool: { name: "größe", inputSchema: object({}) }, args: object({ a: 1 }) });
  expect(headers).toEqual({
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "=?base64?Z3LDtsOfZQ==?=",
  });
  expect(JSON.parse(printJson(body))).toMatchObject({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name: "größe",
      arguments: { a: 1 },
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
        "io.modelcontextprotocol/clientInfo": { name: "toolgrove-explorer" },
        progressToken: 1,
      },
    },
  });
});

test("header values that would not survive go in base64", () => {
  for (const plain of ["a.b", "a b", "", "=?base64?"]) expect(headerValue(plain)).toBe(plain);
  for (const odd of [" a", "a ", "é", "a\nb", "=?base64?YQ==?="])
    expect(headerValue(odd)).toMatch(/^=\?base64\?[A-Za-z0-9+/=]+\?=$/);
});

test("arguments that the schema marks are mirrored in headers, however deep", () => {
  const inputSchema = object({
    properties: {
      region: { type: "string", "x-mcp-header": "Region" },
      inner: {
        properties: {
          count: { type: "integer", "x-mcp-header": "Count" },
          absent: { type: "string", "x-mcp-header": "Absent" },
        },
      },
      broken: { type: "string", "x-mcp-header": "not a token" },
    },
  });
  const { headers } = toolCall({
    tool: { name: "t", inputSchema },
    args: object({ region: "eu", inner: { count: 3 }, broken: "x" }),
  });
  expect(Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("Mcp-Param")))).toEqual({
    "Mcp-Param-Region": "eu",
    "Mcp-Param-Count": "3",
  });
});

test("the first text is the result, digit for digit", async () => {
  const [event] = await events(endpoint(text('{"n":12345678901234567890}')));
  expect(event?.type === "result" && printJson(event.result)).toBe('{"n":12345678901234567890}');
  expect(await events(endpoint(text("null")))).toEqual([{ type: "result", result: null }]);
  expect(await events(endpoint(text("plain words")))).toEqual([{ type: "result", result: "plain words" }]);
  expect(await events(endpoint(text("plain words", { structuredContent: { a: 1 } })))).toMatchObject([
    { result: { content: [{ text: "plain words" }], structuredContent: { a: 1 } } },
  ]);
  expect(await events(endpoint(answered({ content: [], structuredContent: [1, 2] })))).toMatchObject([
    { result: [1, 2] },
  ]);
  expect(
    await events(endpoint(answered({ content: [{ type: "image", mimeType: "image/png", data: "AAAA" }] }))),
  ).toMatchObject([{ result: [{ type: "image" }] }]);
});

test("a failure is the caller's if its text says so, else the tool's", async () => {
  expect(await events(endpoint(text("Input validation failed:\n- a: no (x)", { isError: true })))).toMatchObject([
    { type: "error", status: 400 },
  ]);
  expect(await events(endpoint(text("Invalid input: no", { isError: true })))).toMatchObject([
    { type: "error", status: 400 },
  ]);
  expect(await events(endpoint(text("Internal error occurred", { isError: true })))).toEqual([
    { type: "error", error: "Internal error occurred", status: 500 },
  ]);
  const drawn = {
    content: [
      { type: "text", text: "no" },
      { type: "image", data: "AAAA", mimeType: "image/png" },
    ],
  };
  expect(await events(endpoint(answered({ ...drawn, isError: true })))).toMatchObject([
    { type: "error", error: "no", result: { content: [{ text: "no" }, { type: "image" }] } },
  ]);
  const refusal = { structuredContent: { error: {} }, isError: true, _meta: { "toolgrove/error": {} } };
  expect(await events(endpoint(text("{}", refusal)))).toEqual([{ type: "error", error: "{}", status: 500 }]);
  expect(await events(endpoint(JSON.stringify({ id: 1, error: { code: -32603, message: "Internal" } })))).toEqual([
    { type: "error", error: "Internal", status: 500 },
  ]);
});

test("an HTTP error is told in the server's words, or by its number", async () => {
  const refused = JSON.stringify({ id: null, error: { code: -32600, message: "Unknown host x" } });
  await expect(events(endpoint(refused, { status: 421 }))).rejects.toMatchObject({
    message: "Unknown host x",
    status: 421,
  });
  await expect(events(endpoint("", { status: 406 }))).rejects.toMatchObject({
    message: "The server answered with status 406.",
    status: 406,
  });
  await expect(events(endpoint("<html>"))).rejects.toMatchObject({ status: 200 });
});

test("a stream tells of progress and ends with its first answer", async () => {
  const progress = {
    method: "notifications/progress",
    params: { progressToken: 1, progress: 1, total: 2, message: "half" },
  };
  const body = stream(progress, { method: "notifications/other" }, JSON.parse(text("1")), JSON.parse(text("2")));
  expect(await events(endpoint(body, { type: "text/event-stream" }))).toEqual([
    { type: "progress", progress: { progress: 1, total: 2, message: "half" } },
    { type: "result", result: 1 },
  ]);
  expect(await events(endpoint(": ping\n\n", { type: "text/event-stream" }))).toMatchObject([
    { type: "error", status: 0 },
  ]);
});

test("a question is read, and its answer goes back with the state", async () => {
  const params = { mode: "form", message: "Sure?", requestedSchema: { type: "object" } };
  const asks = answered({
    resultType: "input_required",
    inputRequests: { answer: { method: "elicitation/create", params } },
    requestState: "sealed",
  });
  const question = { key: "answer", state: "sealed", message: "Sure?", schema: object({ type: "object" }) };
  expect(await events(endpoint(asks))).toEqual([{ type: "question", question }]);
  const { body } = toolCall({
    ...request,
    reply: { question, answer: { action: "accept", content: object({ ok: true }) } },
  });
  expect(JSON.parse(printJson(body)).params).toMatchObject({
    name: "t",
    arguments: { a: 1 },
    requestState: "sealed",
    inputResponses: { answer: { action: "accept", content: { ok: true } } },
  });
  for (const other of [
    {},
    { a: { method: "sampling/createMessage", params: {} } },
    { a: { method: "elicitation/create", params: { mode: "url" } } },
  ]) {
    expect(await events(endpoint(answered({ resultType: "input_required", inputRequests: other })))).toMatchObject([
      { type: "error", status: 500 },
    ]);
  }
});

test("listening tells when it began and what changed", async () => {
  const body = stream(
    { method: "notifications/subscriptions/acknowledged" },
    { method: "notifications/tools/list_changed" },
    { id: 1, result: {} },
  );
  expect(await collect(endpoint(body, { type: "text/event-stream" }).listen(forever))).toEqual([
    "listening",
    "changed",
  ]);
});
