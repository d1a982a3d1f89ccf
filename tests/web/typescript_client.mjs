// node typescript_client.mjs SDK URL TOKEN: lists, reads, writes and is refused as one agent; prints what it saw.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [line, url, token] = process.argv.slice(2);
// The packages live in .cache/node, where this program is started, and not beside it.
const load = (name) => import(pathToFileURL(createRequire(join(process.cwd(), "x.js")).resolve(name)).href);

const clients = {
  sdk1: async () => ({
    ...(await load("@modelcontextprotocol/sdk/client/index.js")),
    ...(await load("@modelcontextprotocol/sdk/client/streamableHttp.js")),
  }),
  client2: () => load("@modelcontextprotocol/client"),
};
const { Client, StreamableHTTPClientTransport } = await clients[line]();
const connect = async (bearer) => {
  const client = new Client({ name: "typescript", version: "1" });
  const headers = bearer ? { Authorization: `Bearer ${bearer}` } : {};
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
};

const client = await connect(token);
const call = async (name, args) => JSON.parse((await client.callTool({ name, arguments: args })).content[0].text);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const { version } = await call("get_node", { nodeId: "root" });
const note = { parentNodeId: "root", payloadType: "Note", payloadProps: { name: line }, versionToken: version, idempotencyKey: line };
const written = await call("add_child", note);
const again = await call("add_child", note);
const stale = await call("remove_node", { nodeId: written.nodeId, versionToken: version });
const unknown = await call("no_such_tool", {});
await client.close();
const refused = await connect("wrong").then(() => "connected", (error) => `refused: ${error.message}`);
console.log(JSON.stringify({
  tools,
  once: written.nodeId === again.nodeId,
  stale: stale.error.code,
  unknown: unknown.error.code,
  refused,
}));
process.exit(0);
