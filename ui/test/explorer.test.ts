import { expect, test } from "vitest";
import { Api, type CallEvent } from "../src/lib/api";
import { ago, duration, size } from "../src/lib/format";
import { type Call, History } from "../src/lib/history";
import { type JsonObject, toJson } from "../src/lib/json";
import { pictureOf } from "../src/lib/media";
import { countTags, find, group } from "../src/lib/search";
import { curl, jsonRpc, python } from "../src/lib/snippet";
import { memoryStorage } from "../src/lib/storage";
import { toolDetailOf } from "../src/lib/tool";
import { type Run, Runner } from "../src/explorer/runner";

const object = (value: unknown): JsonObject => toJson(value) as JsonObject;
const tools = [
  { name: "image.resize", description: "Resize an image", tags: ["media", "image"] },
  { name: "image.crop", description: "Cut out a part", tags: ["media"] },
  { name: "ping", description: "Answers", tags: [] },
];
const names = (query: string, tags: string[] = []): string[] => find(tools, query, new Set(tags)).map((hit) => hit.item.name);

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
  expect(group(find([...tools].reverse(), "", new Set())).map(({ name, hits }) => [name, hits.length])).toEqual([["image", 2], ["", 1]]);
  expect(countTags(tools)).toEqual([["media", 2], ["image", 1]]);
});

test("code for elsewhere quotes whatever the arguments hold", () => {
  const site = { callUrl: "http://h/explorer/tools/a'b/call", mcpUrl: "http://h/mcp", tool: 'a"b', args: object({ q: "it's $HOME `x`", yes: true }) };
  expect(curl(site)).toContain(`'http://h/explorer/tools/a'\\''b/call'`);
  expect(curl(site)).toContain(`it'\\''s $HOME \`x\``);
  expect(python(site)).toContain('client.call_tool("a\\"b", arguments)');
  expect(python(site)).toContain('"yes": True');
  expect(JSON.parse(jsonRpc(site))).toEqual({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: 'a"b', arguments: { q: "it's $HOME `x`", yes: true } } });
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
  expect(toolDetailOf(toJson({ name: "x", annotations: 5, tags: ["a", 1], inputSchema: [], examples: [1, {}], documentation: null }))).toMatchObject({
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
  expect([duration(12.4), duration(1_234), duration(12_345), duration(61_000)]).toEqual(["12 ms", "1.23 s", "12.3 s", "1 min 1 s"]);
  expect([size(5), size(1_500), size(2_500_000)]).toEqual(["5 B", "1.5 kB", "2.5 MB"]);
  expect([ago(0, 10_000), ago(0, 120_000), ago(0, 7_200_000)]).toEqual(["just now", "2 min ago", "2 h ago"]);
});

test("addresses stay below the page's own, whatever its prefix", () => {
  for (const page of ["http://h:1/custom/", "http://h:1/custom", "http://h:1/custom/index.html", "http://h:1/custom/#/tool/x?args=y"]) {
    expect(new Api(page).callUrl("a/b c")).toBe("http://h:1/custom/tools/a%2Fb%20c/call");
    expect(new Api(page).eventsUrl).toBe("http://h:1/custom/events");
    expect(new Api(page).mcpUrl("/mcp")).toBe("http://h:1/mcp");
  }
});

function answering(status: number, body: string, type: string): typeof fetch {
  return async () => new Response(body, { status, headers: { "content-type": type } });
}

async function events(fetcher: typeof fetch): Promise<CallEvent[]> {
  const found: CallEvent[] = [];
  for await (const event of new Api("http://h/", fetcher).call("t", object({}), new AbortController().signal)) found.push(event);
  return found;
}

test("an answer that is no stream is understood too", async () => {
  expect(await events(answering(200, '{"result":null}', "application/json"))).toEqual([{ type: "result", result: null }]);
  expect(await events(answering(403, '{"error":"Tool execution is disabled"}', "application/json"))).toEqual([{ type: "error", error: "Tool execution is disabled", status: 403 }]);
  expect(await events(answering(502, "<html>", "text/html"))).toMatchObject([{ type: "error", status: 502 }]);
});

test("a stream ends with its first answer, and one without an answer is an error", async () => {
  const stream = 'event: progress\ndata: {"progress":1}\n\nevent: result\ndata: {"result":1}\n\nevent: result\ndata: {"result":2}\n\n';
  expect((await events(answering(200, stream, "text/event-stream"))).map((event) => event.type)).toEqual(["progress", "result"]);
  expect(await events(answering(200, ": nothing\n\n", "text/event-stream"))).toMatchObject([{ type: "error", status: 0 }]);
});

test("a run goes through a question to its result", async () => {
  const bodies: string[] = [];
  const fetcher: typeof fetch = async (input, init) => {
    bodies.push(`${String(input)} ${String(init?.body)}`);
    const event = String(input).endsWith("/call") ? 'event: question\ndata: {"id":"q/1","message":"?","schema":null}\n\n' : 'event: result\ndata: {"result":[1]}\n\n';
    return new Response(event, { headers: { "content-type": "text/event-stream" } });
  };
  let ended: (run: Run) => void = () => undefined;
  const end = new Promise<Run>((resolve) => (ended = resolve));
  const runner = new Runner(new Api("http://h/", fetcher), () => 0, ended);
  const asked = new Promise<void>((resolve) => {
    const stop = runner.runs.subscribe((runs) => {
      if (runs.get("t")?.status === "asking") {
        resolve();
        queueMicrotask(() => stop());
      }
    });
  });
  runner.start("t", object({ a: 1 }));
  await asked;
  runner.answer("t", { action: "accept", content: object({ b: 2 }) });
  expect(await end).toMatchObject({ status: "done", size: 3, question: null });
  expect(bodies).toEqual(['http://h/tools/t/call {"a":1}', 'http://h/calls/q%2F1 {"action":"accept","content":{"b":2}}']);
});
