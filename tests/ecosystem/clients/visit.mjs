// node visit.mjs CLIENT URL TOKEN CALLS FOLDER: lists, makes the calls and prints what its user would have seen.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [which, url, token, calls, folder] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const resolve = createRequire(join(folder, "x.js")).resolve;
const load = (name) => import(pathToFileURL(resolve(name)).href);

const sdk = async ({ Client, StreamableHTTPClientTransport }) => {
  const client = new Client({ name: "visitor", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  return { names, call: (name, args) => client.callTool({ name, arguments: args }) };
};

const clients = {
  "typescript-1": async () =>
    sdk({
      ...(await load("@modelcontextprotocol/sdk/client/index.js")),
      ...(await load("@modelcontextprotocol/sdk/client/streamableHttp.js")),
    }),
  "typescript-2": async () => sdk(await load("@modelcontextprotocol/client")),
  vercel: async () => {
    const { createMCPClient } = await load("@ai-sdk/mcp");
    const client = await createMCPClient({ transport: { type: "http", url, headers } });
    const tools = await client.tools();
    return { names: Object.keys(tools), call: (name, args) => tools[name].execute(args, { toolCallId: "1", messages: [] }) };
  },
  mastra: async () => {
    const { MCPClient } = await load("@mastra/mcp");
    const client = new MCPClient({ servers: { grove: { url: new URL(url), requestInit: { headers } } } });
    const tools = await client.listTools();
    const names = Object.keys(tools).map((name) => name.replace(/^grove_/, ""));
    return { names, call: (name, args) => tools[`grove_${name}`].execute(args, {}) };
  },
};

const { names, call } = await clients[which]();
const seen = [];
for (const [name, args] of JSON.parse(calls)) {
  seen.push(await Promise.resolve().then(() => call(name, args)).then(JSON.stringify, (error) => `raised ${error.message}`));
}
console.log(JSON.stringify({ tools: names.sort(), seen }));
process.exit(0);
