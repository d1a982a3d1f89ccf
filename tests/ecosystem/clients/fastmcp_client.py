from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from visit import HEADERS, URL, run, visit


async def main() -> None:
    async with Client(StreamableHttpTransport(URL, headers=HEADERS)) as client:
        await visit([tool.name for tool in await client.list_tools()], client.call_tool)


run(main())
