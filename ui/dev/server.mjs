/**
 * A development server for the Explorer: dist/explorer.html under its real CSP, and a fake API.
 * Loopback only, no dependencies. `npm run dev-server -- 8123`
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { TOOLS } from "./tools.mjs";

const PAGE = new URL("../dist/explorer.html", import.meta.url);
const sha256 = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

/** The policy the Python server sends: two hashes and nothing else that could run. */
export function policy(html) {
  const script = html.match(/<script type="module">([\s\S]*?)<\/script>/)[1];
  const style = html.match(/<style>([\s\S]*?)<\/style>/)[1];
  return [
    "default-src 'none'",
    `script-src ${sha256(script)}`,
    `style-src ${sha256(style)}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

const summary = ({ name, description, annotations, tags, requiresApproval = false, streaming = false }) => ({ name, description, annotations, tags, requiresApproval, streaming });
const detail = (tool) => ({
  ...summary(tool),
  inputSchema: tool.inputSchema,
  ...(tool.outputSchema ? { outputSchema: tool.outputSchema } : {}),
  documentation: tool.documentation ?? null,
  examples: tool.examples ?? [],
});

/** Starts the server; the returned object changes what it offers while it runs. */
export async function start({ port = 0, prefix = "/explorer", allowExecute = true, tools = TOOLS } = {}) {
  const state = { tools, allowExecute, listeners: new Set(), cancelled: 0, calls: [] };

  const json = (response, status, body) => {
    response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };

  async function stream(request, response, action) {
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    let open = true;
    response.on("close", () => {
      if (!response.writableEnded) state.cancelled += 1;
      open = false;
    });
    const send = (event, data) => open && response.write(`event: ${event}\ndata: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
    const wait = (milliseconds) => new Promise((resolve, reject) => setTimeout(() => (open ? resolve() : reject(new Error("gone"))), milliseconds));
    try {
      await action(send, wait);
    } catch (error) {
      send("error", { error: error.message, status: error.status ?? 500 });
    }
    response.end();
  }

  async function call(request, response, tool) {
    const text = await body(request);
    if (!state.allowExecute) return json(response, 403, { error: "Tool execution is disabled" });
    if (!tool) return json(response, 404, { error: "Tool not found" });
    const args = JSON.parse(text);
    state.calls.push({ tool: tool.name, text });
    const streamed = (request.headers.accept ?? "").includes("text/event-stream");
    if (!streamed) {
      try {
        return json(response, 200, tool.raw ? `{"result":${tool.raw()}}` : { result: tool.run(args) });
      } catch (error) {
        return json(response, error.status ?? 500, { error: error.message });
      }
    }
    return stream(request, response, async (send, wait) => {
      if (tool.stream) return tool.stream(args, send, wait);
      await wait(30);
      return send("result", tool.raw ? `{"result":${tool.raw()}}` : { result: tool.run(args) });
    });
  }

  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const path = pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : null;
    if (pathname === prefix) {
      response.writeHead(307, { Location: `${prefix}/` });
      return response.end();
    }
    if (path === null) return json(response, 404, { error: "Not found" });
    if (path === "/") {
      const html = readFileSync(fileURLToPath(PAGE), "utf8");
      response.writeHead(200, {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": policy(html),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
      });
      return response.end(html);
    }
    if (path === "/info") return json(response, 200, { name: "apcore-mcp", version: "0.1.0", transport: "streamable-http", mcpPath: "/mcp", allowExecute: state.allowExecute });
    if (path === "/tools") return json(response, 200, state.tools.map(summary));
    if (path === "/events") {
      response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
      response.write(": hello\n\n");
      state.listeners.add(response);
      return response.on("close", () => state.listeners.delete(response));
    }
    const answer = path.match(/^\/calls\/([^/]+)$/);
    if (answer && request.method === "POST") {
      const reply = JSON.parse(await body(request));
      const asked = state.tools.find((tool) => tool.answer);
      return stream(request, response, (send, wait) => asked.answer(reply, send, wait));
    }
    const match = path.match(/^\/tools\/([^/]+)(\/call)?$/);
    const tool = match && state.tools.find((each) => each.name === decodeURIComponent(match[1]));
    if (match?.[2] && request.method === "POST") return call(request, response, tool);
    if (tool) return json(response, 200, detail(tool));
    return json(response, 404, { error: match ? `Tool '${decodeURIComponent(match[1])}' not found` : "Not found" });
  });

  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}${prefix}/`,
    state,
    change(next) {
      state.tools = next;
      for (const listener of state.listeners) listener.write("event: changed\ndata: {}\n\n");
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function body(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const flags = process.argv.slice(2);
  const server = await start({ port: Number(flags.find((flag) => /^\d+$/.test(flag)) ?? 8123), allowExecute: !flags.includes("--no-execute"), ...(flags.includes("--empty") ? { tools: [] } : {}) });
  console.log(server.url);
}
