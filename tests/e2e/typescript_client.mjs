// node typescript_client.mjs SDK URL|COMMAND...: lists, calls, streams and asks with a TypeScript client; prints what it saw.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [line, ...target] = process.argv.slice(2);
// The packages live in .cache/node, where this program is started, and not beside it.
const load = (name) => import(pathToFileURL(createRequire(join(process.cwd(), "x.js")).resolve(name)).href);

const clients = {
  sdk1: async () => {
    const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
    const { ElicitRequestSchema } = await load("@modelcontextprotocol/sdk/types.js");
    return { Client, StreamableHTTPClientTransport, StdioClientTransport, elicit: ElicitRequestSchema };
  },
  client2: async () => {
    const all = await load("@modelcontextprotocol/client");
    const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
    return { ...all, StdioClientTransport, elicit: "elicitation/create" };
  },
};

const { Client, StreamableHTTPClientTransport, StdioClientTransport, elicit } = await clients[line]();
const client = new Client({ name: "typescript", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(elicit, async () => ({ action: "accept", content: { ok: true } }));
const transport = target[0].startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target[0]))
  : new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env });
await client.connect(transport);

const progress = [];
const onprogress = ({ progress: value, message }) => progress.push([value, message]);
const call = (name, args, options) =>
  line === "sdk1" ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const sum = await call("math.add", { a: 1, b: 2 });
// The pause is for this client: over stdio it drops a progress message that arrives together with the result.
await call("progress.awaited", { values: [1, 2], total: 2, pause: 0.1 }, { onprogress });
const asked = await call("ask.twice", { key: "typescript" });
const failed = await call("fail.leak", {});
const resources = (await client.listResources()).resources.map((resource) => resource.uri);
await client.close();
console.log(JSON.stringify({ tools, sum: sum.structuredContent, progress, asked: JSON.parse(asked.content[0].text), failed: failed.content[0].text, resources }));
process.exit(0);
