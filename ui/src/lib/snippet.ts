/** The same call, written for elsewhere. */
import type { CallRequest } from "./call";
import { printJson, printPython } from "./json-print";
import { toolCall } from "./mcp-request";

export interface CallSite extends CallRequest {
  /** Address of the MCP endpoint. */
  mcpUrl: string;
  /** Whether the endpoint lets nobody in without a token. */
  needsToken?: boolean;
}

export function curl(site: CallSite): string {
  const { headers, body } = toolCall(site);
  return curlOf(
    site.mcpUrl,
    { ...headers, ...(site.needsToken && { Authorization: "Bearer TOKEN" }) },
    printJson(body, 2),
  );
}

/** For a server that has no MCP endpoint of this kind. */
export function plainCurl(callUrl: string, { args }: CallRequest): string {
  return curlOf(callUrl, { "Content-Type": "application/json" }, printJson(args, 2));
}

export function python({ mcpUrl, tool, args, needsToken = false }: CallSite): string {
  const literal = printPython(args).replace(/\n/g, "\n        ");
  return needsToken
    ? pythonWithToken(mcpUrl, tool.name, literal)
    : `import asyncio

from mcp import Client


async def main() -> None:
    async with Client(${JSON.stringify(mcpUrl)}) as client:
        arguments = ${literal}
        result = await client.call_tool(${JSON.stringify(tool.name)}, arguments)
        print(result)


asyncio.run(main())
`;
}

function pythonWithToken(mcpUrl: string, tool: string, literal: string): string {
  return `import asyncio

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    headers = {"Authorization": "Bearer TOKEN"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(${JSON.stringify(mcpUrl)}, http_client=http)) as client,
    ):
        arguments = ${literal}
        result = await client.call_tool(${JSON.stringify(tool)}, arguments)
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
