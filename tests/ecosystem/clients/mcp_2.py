import sys

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from visit import HEADERS, URL, run, visit


async def main() -> None:
    async with (
        create_mcp_http_client(headers=HEADERS) as http,
        Client(streamable_http_client(URL, http_client=http), mode=sys.argv[4]) as client,
    ):
        await visit([tool.name for tool in (await client.list_tools()).tools], client.call_tool)


run(main())
