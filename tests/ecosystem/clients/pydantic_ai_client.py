from fastmcp.client.transports import StreamableHttpTransport
from pydantic_ai.mcp import MCPToolset
from visit import HEADERS, URL, run, visit


async def main() -> None:
    async with MCPToolset(StreamableHttpTransport(URL, headers=HEADERS)) as toolset:
        await visit([tool.name for tool in await toolset.list_tools()], toolset.direct_call_tool)


run(main())
