/** The same call, written for elsewhere. */
import { type JsonObject, toJson } from "./json";
import { printJson, printPython } from "./json-print";

export interface CallSite {
  /** Address of the call on this page's own API. */
  callUrl: string;
  /** Address of the MCP endpoint. */
  mcpUrl: string;
  tool: string;
  args: JsonObject;
}

export function curl({ callUrl, args }: CallSite): string {
  return [`curl -X POST ${shell(callUrl)}`, `  -H 'Content-Type: application/json'`, `  --data-raw ${shell(printJson(args, 2))}`].join(" \\\n");
}

export function python({ mcpUrl, tool, args }: CallSite): string {
  const literal = printPython(args).replace(/\n/g, "\n        ");
  return `import asyncio

from mcp import Client


async def main() -> None:
    async with Client(${JSON.stringify(mcpUrl)}) as client:
        arguments = ${literal}
        result = await client.call_tool(${JSON.stringify(tool)}, arguments)
        print(result)


asyncio.run(main())
`;
}

export function jsonRpc({ tool, args }: CallSite): string {
  return printJson(toJson({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool, arguments: args } }), 2);
}

function shell(text: string): string {
  return `'${text.replace(/'/g, `'\\''`)}'`;
}
