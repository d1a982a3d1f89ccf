/**
 * A development server for the Explorer: dist/explorer.html under its real CSP, a fake API,
 * and as much of MCP 2026-07-28 as the page speaks.
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

const summary = ({ name, description, annotations, tags, requiresApproval = false, streaming = false }) => ({
  name,
  description,
  annotations,
  tags,
  requiresApproval,
  streaming,
});
const detail = (tool) => ({
  ...summary(tool),
  inputSchema: tool.inputSchema,
  ...(tool.outputSchema ? { outputSchema: tool.outputSchema } : {}),
  documentation: tool.documentation ?? null,
  examples: tool.examples ?? [],
});

const PROTOCOL = "2026-07-28";
const META = "io.modelcontextprotocol/";

/** Why the request is not one of 2026-07-28, or null: its headers must say what its body says. */
function mismatch(headers, { method, params }) {
  if (!headers.accept?.includes("application/json") || !headers.accept.includes("text/event-stream"))
    return "Accept must name JSON and event streams";
  if (headers["mcp-protocol-version"] !== PROTOCOL || params._meta[`${META}protocolVersion`] !== PROTOCOL)
    return "Unsupported protocol version";
  if (!params._meta[`${META}clientCapabilities`]) return "_meta lacks the client's capabilities";
  if (headers["mcp-method"] !== method) return "Mcp-Method does not match the body";
  if (method === "tools/call" && decodeHeader(headers["mcp-name"]) !== params.name)
    return "Mcp-Name does not match the body";
  return null;
}

function decodeHeader(value) {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value);
  return encoded ? Buffer.from(encoded[1], "base64").toString("utf8") : value;
}

/** Starts the server; the returned object changes what it offers while it runs. Without `mcp` it only has plain calls. */
export async function start({ port = 0, prefix = "/explorer", allowExecute = true, mcp = true, tools = TOOLS } = {}) {
  const state = { tools, allowExecute, listeners: new Set(), cancelled: 0, calls: [] };

  const json = (response, status, body) => {
    response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };

  /** The text of a tool's output. */
  async function output(tool, args, call) {
    if (tool.raw) return tool.raw();
    return JSON.stringify(tool.stream ? await tool.stream(args, call) : tool.run(args));
  }

  async function plainCall(request, response, tool) {
    const text = await body(request);
    if (!state.allowExecute) return json(response, 403, { error: "Tool execution is disabled" });
    if (!tool) return json(response, 404, { error: "Tool not found" });
    const args = JSON.parse(text);
    state.calls.push({ tool: tool.name, args, text });
    try {
      const silent = { progress: () => undefined, wait: () => undefined, ask: () => ({ action: "decline" }) };
      return json(response, 200, `{"result":${await output(tool, args, silent)}}`);
    } catch (error) {
      return json(response, error.message.startsWith("Input validation failed") ? 400 : 500, { error: error.message });
    }
  }

  async function endpoint(request, response) {
    const text = await body(request);
    const message = JSON.parse(text);
    const refusal = mismatch(request.headers, message);
    if (refusal)
      return json(response, 400, { jsonrpc: "2.0", id: message.id, error: { code: -32020, message: refusal } });
    if (message.method === "subscriptions/listen") return listen(response);
    const { name, arguments: args, inputResponses, _meta } = message.params;
    const tool = state.tools.find((each) => each.name === name);
    state.calls.push({ tool: name, args, text });
    let open = true;
    response.on("close", () => {
      if (!response.writableEnded) state.cancelled += 1;
      open = false;
    });
    const write = (written) => {
      if (!response.headersSent)
        response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
      if (open) response.write(`event: message\r\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...written })}\r\n\r\n`);
    };
    const finish = (result) => {
      if (!response.headersSent) return json(response, 200, { jsonrpc: "2.0", id: message.id, result });
      write({ id: message.id, result });
      return response.end();
    };
    const call = {
      progress: (progress, total, note) =>
        write({
          method: "notifications/progress",
          params: { progressToken: _meta.progressToken, progress, ...(total === null ? {} : { total }), message: note },
        }),
      wait: (milliseconds) =>
        new Promise((resolve, reject) =>
          setTimeout(() => (open ? resolve() : reject(new Error("gone"))), milliseconds),
        ),
      ask: (question, requestedSchema) => {
        if (inputResponses) return inputResponses.answer;
        throw Object.assign(new Error("asks"), { question: { message: question, requestedSchema } });
      },
    };
    try {
      if (!tool) throw new Error(`Module not found: ${name}`);
      await call.wait(30);
      const content = [{ type: "text", text: await output(tool, args, call) }];
      return finish({
        resultType: "complete",
        content,
        isError: false,
        ...(tool.outputSchema ? { structuredContent: JSON.parse(content[0].text) } : {}),
      });
    } catch (error) {
      if (!error.question)
        return finish({ resultType: "complete", content: [{ type: "text", text: error.message }], isError: true });
      return finish({
        resultType: "input_required",
        inputRequests: { answer: { method: "elicitation/create", params: error.question } },
        requestState: "sealed",
      });
    }
  }

  function listen(response) {
    const write = (message) =>
      response.write(`event: message\r\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\r\n\r\n`);
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    write({
      method: "notifications/subscriptions/acknowledged",
      params: { notifications: { toolsListChanged: true } },
    });
    const listener = {
      changed: () => write({ method: "notifications/tools/list_changed" }),
      destroy: () => response.destroy(),
    };
    state.listeners.add(listener);
    response.on("close", () => state.listeners.delete(listener));
  }

  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const path = pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : null;
    if (mcp && pathname === "/mcp" && request.method === "POST") return endpoint(request, response);
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
    if (path === "/info")
      return json(response, 200, {
        name: "apcore-mcp",
        version: "0.1.0",
        allowExecute: state.allowExecute,
        mcpPath: mcp ? "../mcp" : null,
      });
    if (path === "/tools") return json(response, 200, state.tools.map(summary));
    const match = path.match(/^\/tools\/([^/]+)(\/call)?$/);
    const tool = match && state.tools.find((each) => each.name === decodeURIComponent(match[1]));
    if (match?.[2] && request.method === "POST") return plainCall(request, response, tool);
    if (tool) return json(response, 200, detail(tool));
    return json(response, 404, { error: match ? `Tool '${decodeURIComponent(match[1])}' not found` : "Not found" });
  });

  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}${prefix}/`,
    state,
    change(next) {
      state.tools = next;
      for (const listener of state.listeners) listener.changed();
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
  const server = await start({
    port: Number(flags.find((flag) => /^\d+$/.test(flag)) ?? 8123),
    allowExecute: !flags.includes("--no-execute"),
    ...(flags.includes("--empty") ? { tools: [] } : {}),
  });
  console.log(server.url);
}
