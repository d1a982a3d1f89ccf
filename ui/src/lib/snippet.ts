/** The same call, written for elsewhere. */
import type { CallRequest } from "./call";
import { printJson, printPython } from "./json-print";
import { toolCall } from "./mcp-request";

export interface CallSite extends CallRequest {
  /** Address of the MCP endpoint. */
  mcpUrl: string;
}

export function curl(site: CallSite): string {
  const { headers, body } = toolCall(site);
  return curlOf(site.mcpUrl, headers, printJson(body, 2));
}

/** For a server that has no MCP endpoint of this kind. */
export function plainCurl(callUrl: string, { args }: CallRequest): string {
  return curlOf(callUrl, { "Content-Type": "application/json" }, printJson(args, 2));
}

export function python({ mcpUrl, tool, args }: CallSite): string {
  const literal = printPython(args).replace(/\n/g, "\n        ");
  return `import asyncio

from mcp import Client


async def main() -> None:
    async with Client(${JSON.stringify(mcpUrl)}) as client:
        arguments = ${literal}
        result = await client.call_tool(${JSON.stringify(tool.name)}, arguments)
        print(result)


asyncio.run(main())
`;
}

export function jsonRpc(site: CallSite): string {
  return printJson(toolCall(site).body, 2);
}

function curlOf(url: string, headers: Record<string, string>, body: string): string {
  const lines = Object.entries(headers).map(([name, value]) => `  -H ${shell(`${name}: ${value}`)}`);
  return [`curl -N ${shell(url)}`, ...lines, `  --data-raw ${shell(body)}`].join(" \\\n");
}

function shell(text: string): string {
  return `'${text.replace(/'/g, `'\\''`)}'`;
}
