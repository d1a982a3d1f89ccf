from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from visit import HEADERS, URL, run, visit


async def main() -> None:
    async with streamablehttp_client(URL, headers=HEADERS) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        await visit([tool.name for tool in (await session.list_tools()).tools], session.call_tool)


run(main())
