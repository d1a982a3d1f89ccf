import { expect, test } from "vitest";
import { type Run, Runner } from "../src/bench/runner";
import { Api } from "../src/lib/api";
import type { CallEvent, Caller, CallRequest } from "../src/lib/call";
import { ago, duration, size } from "../src/lib/format";
import { type Call, History } from "../src/lib/history";
import { type JsonObject, toJson } from "../src/lib/json";
import { pictureOf } from "../src/lib/media";
import { countTags, find, group } from "../src/lib/search";
import { curl, jsonRpc, plainCurl, python } from "../src/lib/snippet";
import { memoryStorage } from "../src/lib/storage";
import { toolDetailOf } from "../src/lib/tool";
import { collect } from "./collect";

const object = (value: unknown): JsonObject => toJson(value) as JsonObject;
const tools = [
  { name: "image.resize", description: "Resize an image", tags: ["media", "image"] },
  { name: "image.crop", description: "Cut out a part", tags: ["media"] },
  { name: "ping", description: "Answers", tags: [] },
];
const names = (query: string, tags: string[] = []): string[] =>
  find(tools, query, new Set(tags)).map((hit) => hit.item.name);

test("search looks at name, tags and description, best first, and at scattered letters last", () => {
  expect(names("")).toEqual(["image.resize", "image.crop", "ping"]);
  expect(names("crop")).toEqual(["image.crop"]);
  expect(names("MEDIA")).toEqual(["image.resize", "image.crop"]);
  expect(names("cut part")).toEqual(["image.crop"]);
  expect(names("imrs")).toEqual(["image.resize"]);
  expect(names("zzz")).toEqual([]);
  expect(names("", ["media", "image"])).toEqual(["image.resize"]);
  expect(find(tools, "crop", new Set())[0]?.spans).toEqual([[6, 10]]);
});

test("tools are grouped by the part before the first dot", () => {
  expect(group(find([...tools].reverse(), "", new Set())).map(({ name, hits }) => [name, hits.length])).toEqual([
    ["image", 2],
    ["", 1],
  ]);
  expect(countTags(tools)).toEqual([
    ["media", 2],
    ["image", 1],
  ]);
});

test("code for elsewhere is the very request, and quotes whatever the arguments hold", () => {
  const site = {
    mcpUrl: "http://h/a'b/mcp",
    tool: { name: 'a"b', inputSchema: object({}) },
    args: object({ q: "it's $HOME `x`", yes: true }),
  };
  expect(curl(site)).toContain(`curl -N 'http://h/a'\\''b/mcp'`);
  expect(curl(site)).toContain(`-H 'Mcp-Name: a"b'`);
  expect(curl(site)).toContain(`it'\\''s $HOME \`x\``);
  expect(python(site)).toContain('client.call_tool("a\\"b", arguments)');
  expect(python(site)).toContain('"yes": True');
  expect(JSON.parse(jsonRpc(site))).toMatchObject({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: 'a"b', arguments: { q: "it's $HOME `x`", yes: true } },
  });
  expect(plainCurl("http://h/explorer/tools/x/call", site)).not.toContain("Mcp-Name");
});

test("only bitmaps in base64 are pictures", () => {
  expect(pictureOf(object({ mimeType: "image/png", data: "AAAA" }))).not.toBeNull();
  for (const value of [
    { mimeType: 'image/png" onerror="x', data: "AAAA" },
    { mimeType: "image/png\n", data: "AAAA" },
    { mimeType: "image/svg+xml", data: "AAAA" },
    { mimeType: "text/html", data: "AAAA" },
    { mimeType: "image/png", data: "AA=A" },
    { mimeType: "image/png", data: "AAA" },
    { mimeType: "image/png", data: '"><x' },
    { mimeType: "image/png", data: "" },
    { mimeType: "image/png", data: 5 },
    { mimeType: ["image/png"], data: "AAAA" },
  ]) {
    expect(pictureOf(object(value)), JSON.stringify(value)).toBeNull();
  }
});

test("history keeps the newest calls and survives a damaged store", () => {
  const storage = memoryStorage();
  const history = new History(storage, "k");
  const call = (id: string): Call => ({ id, tool: "t", args: object({ __proto: 1 }), at: 1, took: 2, outcome: "ok" });
  for (let index = 0; index < 120; index += 1) history.add(call(String(index)));
  expect(history.list().length).toBe(100);
  expect(history.list()[0]?.id).toBe("119");
  history.add({ ...call("big"), args: object({ text: "x".repeat(30_000) }) });
  expect(history.list()[0]?.id).toBe("119");
  storage.write("k", '[{"id":1},{"tool":"x"},7]');
  expect(history.list()).toEqual([]);
  storage.write("k", "{broken");
  expect(history.list()).toEqual([]);
  expect(history.clear()).toEqual([]);
});

test("a tool described badly still shows", () => {
  expect(
    toolDetailOf(
      toJson({ name: "x", annotations: 5, tags: ["a", 1], inputSchema: [], examples: [1, {}], documentation: null }),
    ),
  ).toMatchObject({
    name: "x",
    description: "",
    tags: ["a"],
    outputSchema: null,
    documentation: null,
    examples: [{ title: "Example 2" }],
  });
  expect(toolDetailOf(toJson({ description: "no name" }))).toBeNull();
});

test("quantities read well", () => {
  expect([duration(12.4), duration(1_234), duration(12_345), duration(61_000)]).toEqual([
    "12 ms",
    "1.23 s",
    "12.3 s",
    "1 min 1 s",
  ]);
  expect([size(5), size(1_500), size(2_500_000)]).toEqual(["5 B", "1.5 kB", "2.5 MB"]);
  expect([ago(0, 10_000), ago(0, 120_000), ago(0, 7_200_000)]).toEqual(["just now", "2 min ago", "2 h ago"]);
});

test("addresses are told from the page's own, whatever its prefix", () => {
  for (const page of [
    "http://h:1/custom/",
    "http://h:1/custom",
    "http://h:1/custom/index.html",
    "http://h:1/custom/#/tool/x?args=y",
  ]) {
    expect(new Api(page).callUrl("a/b c")).toBe("http://h:1/custom/tools/a%2Fb%20c/call");
    expect(new Api(page).url("../mcp")).toBe("http://h:1/mcp");
  }
});

test("a plain call gives its result or says why not", async () => {
  const call = async (status: number, body: string): Promise<CallEvent[]> => {
    const api = new Api("http://h/", async () => new Response(body, { status }));
    return collect(
      api.call({ tool: { name: "t", inputSchema: object({}) }, args: object({}) }, new AbortController().signal),
    );
  };
  expect(await call(200, '{"result":null}')).toEqual([{ type: "result", result: null }]);
  expect(await call(200, "{}")).toMatchObject([{ type: "error", status: 200 }]);
  expect(await call(403, '{"error":"Tool execution is disabled"}')).toEqual([
    { type: "error", error: "Tool execution is disabled", status: 403 },
  ]);
  expect(await call(502, "<html>")).toMatchObject([{ type: "error", status: 502 }]);
});

test("a run goes through a question to its result, as the same call", async () => {
  const requests: CallRequest[] = [];
  const question = { key: "answer", state: "sealed", message: "?", schema: null };
  const caller: Caller = {
    async *call(request) {
      requests.push(request);
      yield request.reply ? { type: "result", result: [1] } : { type: "question", question };
    },
  };
  let ended: (run: Run) => void = () => undefined;
  const end = new Promise<Run>((resolve) => (ended = resolve));
  const runner = new Runner(
    () => caller,
    () => 0,
    ended,
  );
  const asked = new Promise<void>((resolve) => {
    const stop = runner.runs.subscribe((runs) => {
      if (runs.get("t")?.status === "asking") {
        resolve();
        queueMicrotask(() => stop());
      }
    });
  });
  const request = { tool: { name: "t", inputSchema: object({}) }, args: object({ a: 1 }) };
  runner.start(request);
  await asked;
  const answer = { action: "accept" as const, content: object({ b: 2 }) };
  runner.answer("t", answer);
  expect(await end).toMatchObject({ status: "done", size: 3, question: null });
  expect(requests).toEqual([request, { ...request, reply: { question, answer } }]);
});
