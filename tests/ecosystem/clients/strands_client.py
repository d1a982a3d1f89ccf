import asyncio

from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from strands.tools.mcp import MCPClient
from visit import HEADERS, URL, run, visit

client = MCPClient(lambda: streamable_http_client(URL, http_client=create_mcp_http_client(headers=HEADERS)))
with client:
    names = [tool.tool_name for tool in client.list_tools_sync()]
    run(visit(names, lambda name, arguments: asyncio.to_thread(client.call_tool_sync, "1", name, arguments)))
