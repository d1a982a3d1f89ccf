import { expect, test } from "vitest";
import { ConsoleApi, NO_FILTER } from "../src/console/api";
import { AgentClient, ToolError } from "../src/console/client";
import { clientConfigs } from "../src/console/clients";
import { approvalOf, auditPageOf, projectOf, receiptOf } from "../src/console/facts";
import { LiveEvents } from "../src/console/live";
import { linked, slug } from "../src/console/manual-text";
import { until } from "../src/console/moment";
import { type News, newsOf } from "../src/console/news";
import { auditHash, hashOf, parseRoute, VIEWS, viewsOf } from "../src/console/route";
import { isSendable, Session, tokenIn } from "../src/console/session";
import { ceilingOf, trafficOf } from "../src/console/traffic";
import { TROUBLES, wordsOf } from "../src/console/troubles";
import { inWords } from "../src/console/verdicts";
import type { CallEvent, CallRequest } from "../src/lib/call";
import { readFailure } from "../src/lib/failure";
import { type JsonObject, toJson } from "../src/lib/json";
import { printJson } from "../src/lib/json-print";
import { memoryStorage } from "../src/lib/storage";
import { collect } from "./collect";

const json = (value: unknown): JsonObject => toJson(value) as JsonObject;

test("a route keeps names whatever they hold", () => {
  for (const name of ["editor", "a/b", "ü ?#%", "..", "root"]) {
    expect(parseRoute(hashOf("tree", name, name))).toEqual({ view: "tree", subject: name, detail: name, query: {} });
  }
  expect(parseRoute("")).toEqual({ view: "overview", subject: null, detail: null, query: {} });
  expect(parseRoute("#/nowhere/x")).toMatchObject({ view: "unknown" });
  expect(parseRoute(auditHash({ outcome: "refused", agent: "a&b", text: "" }))).toEqual({
    view: "audit",
    subject: null,
    detail: null,
    query: { outcome: "refused", agent: "a&b" },
  });
  expect(parseRoute("#/tree/%E0%A4%A")).toMatchObject({ view: "tree", subject: "%E0%A4%A", detail: null });
  expect(hashOf("overview")).toBe("#/");
});

test("a project without a tree has no page for it", () => {
  expect(viewsOf(null)).toEqual(VIEWS);
  expect(viewsOf({ tree: true })).toEqual(VIEWS);
  expect(viewsOf(projectOf(json({ project: "x", tree: false })))).not.toContain("tree");
});

test("each trouble of the gateway has words of its own, and one that the page does not know has some", () => {
  const all = Object.keys(TROUBLES).map(wordsOf);
  expect(all.length).toBeGreaterThan(5);
  expect(new Set(all.map(({ title }) => title)).size).toBe(all.length);
  for (const { title, text } of all) expect([title.endsWith("."), text.endsWith(".")]).toEqual([false, true]);
  expect(all.filter(({ isServed }) => isServed)).toEqual([TROUBLES.limits_narrowed]);
  for (const strange of ["tomorrow", "constructor", ""]) expect(wordsOf(strange).title).toMatch(/Something/);
  expect(projectOf(json({ troubles: ["store_diverged", 7, "tomorrow"] })).troubles).toEqual([
    "store_diverged",
    "tomorrow",
  ]);
});

test("a token is read from the fragment, and only there", () => {
  expect(tokenIn("#token=tg_abc")).toBe("tg_abc");
  expect(tokenIn("#token=a%2Bb&x=1")).toBe("a+b");
  expect(tokenIn("#/tree?token=x")).toBeNull();
  expect(isSendable("tg_abc-123")).toBe(true);
  for (const bad of ["", "a b", "a\nb", "é"]) expect(isSendable(bad)).toBe(false);
});

/** A server that lets in whoever has the token, and what it was sent. */
function guarded(token: string | null) {
  const sent: (string | null)[] = [];
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    const given = new Headers(init?.headers).get("authorization");
    sent.push(given);
    expect(init?.credentials).toBe("omit");
    return new Response("{}", { status: token === null || given === `Bearer ${token}` ? 200 : 401 });
  };
  return { fetch, sent };
}

test("a session tries without a token first, asks when it must, and keeps the token in its own storage", async () => {
  const storage = memoryStorage();
  const { fetch, sent } = guarded("secret");
  const session = new Session(storage, fetch);
  await session.fetch("http://h/");
  expect([session.standing.value, sent]).toEqual(["asking", [null]]);
  session.use("secret");
  expect(session.standing.value).toBe("trying");
  await session.fetch("http://h/");
  expect([session.standing.value, sent.at(-1)]).toEqual(["in", "Bearer secret"]);
  expect(new Session(storage, fetch).token.value).toBe("secret");
  session.forget();
  expect([session.standing.value, new Session(storage, fetch).token.value]).toEqual(["asking", null]);
});

test("a server without tokens lets the page in at once", async () => {
  const session = new Session(memoryStorage(), guarded(null).fetch);
  await session.fetch("http://h/");
  expect(session.standing.value).toBe("in");
});

test("facts of any shape become facts of ours", () => {
  expect(projectOf(null)).toEqual({
    name: "Toolgrove",
    revision: 0,
    sources: [],
    rejected: [],
    tools: 0,
    agents: [],
    pending: 0,
    traffic: [],
    healthy: true,
    troubles: [],
    version: "",
    file: null,
    folder: null,
    tree: true,
    configuration: [],
  });
  const odd = json({
    project: 7,
    sources: [null, { name: "a", problem: "down" }],
    agents: [{ name: "x", warnings: ["w", 3] }],
    healthy: false,
    troubles: [],
  });
  expect(projectOf(odd)).toMatchObject({
    name: "Toolgrove",
    sources: [{ name: "" }, { name: "a", problem: "down" }],
    agents: [{ name: "x", warnings: ["w"] }],
    healthy: false,
    troubles: [],
  });
  expect(approvalOf(json({ id: "a", arguments: { n: 1 }, requestedAt: 2, decidedAt: null }))).toMatchObject({
    id: "a",
    requestedAt: 2_000,
    decidedAt: null,
    definition: {},
    sends: null,
    byOperator: false,
  });
  expect(approvalOf(json({ id: "a", sends: { method: "PUT", url: "https://x/1" } })).sends).toEqual({
    method: "PUT",
    url: "https://x/1",
  });
  const decided = { kind: "approval", by: "operator", chain: ["a", 7], approval: { id: "ap_1", by: "jo" } };
  expect(auditPageOf(json({ items: [decided, { approval: 7 }] })).items).toMatchObject([
    { kind: "approval", by: "operator", chain: ["a"], approval: { id: "ap_1", by: "jo" }, arguments: undefined },
    { kind: "call", by: "", chain: [], approval: null },
  ]);
  expect(auditPageOf(json({ items: [{ number: 3, error: { code: "conflict" } }], next: 3 }))).toMatchObject({
    items: [{ number: 3, code: "conflict" }],
    next: 3,
  });
  expect(receiptOf(json({ tools: { t: { verdict: "denied", rule: "deny: x" } } })).verdicts).toEqual([
    { tool: "t", verdict: "denied", rule: "deny: x", source: "", approval: "" },
  ]);
});

test("the rule of a verdict is told in words", () => {
  const why = (verdict: string, rule: string): string =>
    inWords({ tool: "t", verdict, rule, source: "time", approval: "" });
  expect(why("granted", "tools: *")).toBe("Granted by tools: *");
  expect(why("granted", "tools: get_*")).toBe("Granted by tools: get_*");
  expect(why("denied", "deny: remove_*")).toBe("Taken away by deny: remove_*");
  expect(why("masked", "mcp.time.mask: convert_*")).toBe("Hidden by the mask convert_* of server time");
  expect(why("restricted", "role 'reader': the tool changes something")).toBe(
    "Role 'reader': the tool changes something",
  );
  expect(why("unavailable", "")).toBe("No reason was given");
});

test("quiet minutes are filled in, and older ones left out", () => {
  const now = 100 * 60_000 + 5_000;
  const traffic = trafficOf(
    [
      { minute: 99 * 60, calls: 5, failures: 1, refusals: 2, waiting: 1, cancelled: 0, meanMs: 2, slowestMs: 9 },
      { minute: 1, calls: 9, failures: 0, refusals: 0, waiting: 0, cancelled: 0, meanMs: 1, slowestMs: 1 },
    ],
    now,
  );
  expect(traffic.minutes).toHaveLength(60);
  expect(traffic.minutes.at(-2)).toMatchObject({ minute: 99 * 60, calls: 5 });
  expect([traffic.calls, traffic.failures, traffic.refusals, traffic.peak]).toEqual([5, 1, 2, 5]);
  expect([0, 1, 3, 7, 12, 51, 501].map(ceilingOf)).toEqual([1, 1, 5, 10, 20, 100, 1_000]);
});

test("an hour left is told roughly, seconds exactly", () => {
  expect([until(0, 1), until(30_000, 0), until(600_000, 0), until(3 * 3_600_000, 0)]).toEqual([
    "expired",
    "30 s left",
    "10 min left",
    "3 h left",
  ]);
});

test("a client's configuration carries a placeholder, never a token, and a name that any client takes", () => {
  const configs = clientConfigs("My garden!", "ed/itor", "http://h/agents/e/mcp", true);
  expect(configs.map(({ name }) => name)).toEqual(["claude-code", "cursor", "vscode", "desktop"]);
  for (const { text } of configs) expect(text).toContain("My-garden-ed-itor");
  expect(JSON.parse(configs[1]?.text ?? "")).toEqual({
    mcpServers: { "My-garden-ed-itor": { url: "http://h/agents/e/mcp", headers: { Authorization: "Bearer TOKEN" } } },
  });
  expect(clientConfigs("p", "a", "http://h/", false).some(({ text }) => text.includes("TOKEN"))).toBe(false);
});

test("events are read, and what is none is passed over", () => {
  expect(
    newsOf(
      json({
        type: "tool_failed",
        callId: "c1",
        agent: "a",
        tool: "t",
        error: { code: "forbidden", message: "no" },
        duration: 0.5,
        timestamp: "1970-01-01T00:00:01Z",
      }),
    ),
  ).toMatchObject({ type: "call", code: "forbidden", took: 500, at: 1_000 });
  expect(newsOf(json({ type: "tree_changed", agent: "a", tool: "t", nodeIds: ["x", 3] }))).toMatchObject({
    type: "tree",
    nodeIds: ["x"],
  });
  expect(newsOf(json({ type: "approval_decided", approvalId: "p", approved: false }))).toMatchObject({
    type: "approval",
    id: "p",
    approved: false,
  });
  expect(newsOf(json({ type: "approval_requested", approvalId: "p" }))).toMatchObject({ approved: null });
  for (const nothing of [null, 3, json({ type: "heartbeat" }), undefined]) expect(newsOf(nothing)).toBeNull();
});

test("the stream of events is one request with the session's header", async () => {
  const asked: string[] = [];
  const api = new ConsoleApi("http://h", async (url, init) => {
    asked.push(`${init?.method ?? "GET"} ${String(url)}`);
    return new Response(
      'event: watching\ndata: {"type":"watching"}\n\nevent: x\ndata: {"type":"pool_changed"}\n\ndata: nonsense\n\n',
    );
  });
  expect(await collect(api.events(new AbortController().signal))).toEqual([{ type: "begun" }, { type: "pool" }]);
  expect(asked).toEqual(["GET http://h/api/events"]);
});

test("requests name what they mean, whatever is in the names", async () => {
  const asked: [string, string][] = [];
  const api = new ConsoleApi("http://h", async (url, init) => {
    asked.push([`${init?.method ?? "GET"} ${String(url)}`, String(init?.body ?? "")]);
    return new Response("{}");
  });
  await api.decide("a/b", { approve: true, reason: "fine" });
  await api.decide("a/b", { approve: true, for: "1h" });
  await api.revoke("a/b");
  await api.decidePin({ server: "s x", tool: "t/../u" } as never, { accept: "abc" });
  await api.audit(
    { ...NO_FILTER, kind: "call", agent: "a&b", outcome: "failure", since: "2026-01-01T00:00:00+00:00" },
    7,
    50,
  );
  expect(asked).toEqual([
    ["POST http://h/api/approvals/a%2Fb", '{"approve":true,"reason":"fine"}'],
    ["POST http://h/api/approvals/a%2Fb", '{"approve":true,"for":"1h"}'],
    ["DELETE http://h/api/approvals/a%2Fb", ""],
    ["POST http://h/api/pins/s%20x/t%2F..%2Fu", '{"accept":"abc"}'],
    [
      "GET http://h/api/audit?kind=call&agent=a%26b&outcome=failure&since=2026-01-01T00%3A00%3A00%2B00%3A00&newest=1&limit=50&before=7",
      "",
    ],
  ]);
});

test("a refusal of the API is an error with the server's own words", async () => {
  const api = new ConsoleApi(
    "http://h",
    async () => new Response('{"error":{"code":"forbidden","message":"operators only"}}', { status: 403 }),
  );
  await expect(api.project()).rejects.toMatchObject({ message: "operators only", status: 403 });
});

test("the console hears that events came, stopped and came again", async () => {
  const heard: string[] = [];
  let lost = 0;
  let twice: () => void = () => undefined;
  const heardTwice = new Promise<void>((resolve) => {
    twice = resolve;
  });
  const live = new LiveEvents(
    async function* (): AsyncGenerator<News> {
      yield { type: "begun" };
      if (heard.length > 1) twice();
    },
    (news) => heard.push(news.type),
    () => (lost += 1),
  );
  live.connect();
  await heardTwice;
  live.pause();
  expect(heard).toEqual(["begun", "begun"]);
  expect(lost).toBe(1);
  expect(live.state.value).toBe("paused");
});

test("an error object is taken apart, any other text stays whole", () => {
  expect(readFailure('{"error":{"code":"conflict","message":"no","reason":"stale_version"}}')).toEqual({
    message: "no",
    code: "conflict",
    facts: json({ code: "conflict", reason: "stale_version" }),
  });
  for (const text of ["plain", "{broken", '{"error":3}', '{"error":{"code":"x"}}'])
    expect(readFailure(text)).toEqual({ message: text, code: "", facts: null });
});

/** Answers each request with the next of these. */
function scripted(...answers: CallEvent[]) {
  const requests: CallRequest[] = [];
  const caller = {
    async *call(request: CallRequest): AsyncGenerator<CallEvent> {
      requests.push(request);
      const answer = answers.shift();
      if (answer) yield answer;
    },
  };
  return { caller, requests };
}

test("the page's own calls want no stream, and a tool's no is an error with its facts", async () => {
  const { caller, requests } = scripted(
    { type: "result", result: json({ version: "v1" }) },
    {
      type: "error",
      error: '{"error":{"code":"conflict","message":"late","reason":"stale_version","latestVersion":"v2"}}',
      status: 500,
    },
  );
  const client = new AgentClient(caller, async () => ({ action: "cancel" }));
  expect(printJson(await client.call("get_node", { nodeId: "x" }))).toBe('{"version":"v1"}');
  expect(requests[0]?.progress).toBe(false);
  const error = await client.call("move_node", {}).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ToolError);
  expect(error).toMatchObject({ code: "conflict", reason: "stale_version", message: "late" });
  expect((error as ToolError).fact("latestVersion")).toBe("v2");
});

test("a question in the middle of a call is put to the person, and the call goes on with the answer", async () => {
  const question = { key: "q", state: "s", message: "sure?", schema: null };
  const { caller, requests } = scripted({ type: "question", question }, { type: "result", result: json({ ok: true }) });
  const asked: string[] = [];
  const client = new AgentClient(caller, async (tool, { message }) => {
    asked.push(`${tool}: ${message}`);
    return { action: "decline" };
  });
  await client.call("remove_node", { nodeId: "x" });
  expect(asked).toEqual(["remove_node: sure?"]);
  expect(requests[1]?.reply).toEqual({ question, answer: { action: "decline" } });
});

test("links between pages of the documentation are addresses of the console, and pictures are left out", () => {
  const known = new Set(["pool", "tree-dsl"]);
  const text =
    "See [the pool](pool.md#names-of-your-own), [here](#top), [code](../src/x.py), [out](https://x.example).";
  expect(linked(text, "tree-dsl", known)).toBe(
    "See [the pool](#/docs/pool/names-of-your-own), [here](#/docs/tree-dsl/top), code, [out](https://x.example).",
  );
  expect(linked('before\n![A phone](images/x.png){ width="300" }\nafter', "pool", known)).toBe("before\n\nafter");
  expect(slug("Names of your own!")).toBe("names-of-your-own");
});
