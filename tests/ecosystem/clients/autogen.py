from autogen_core import CancellationToken
from autogen_ext.tools.mcp import StreamableHttpServerParams, mcp_server_tools
from visit import HEADERS, URL, run, visit


async def main() -> None:
    listed = await mcp_server_tools(StreamableHttpServerParams(url=URL, headers=HEADERS, timeout=60))
    tools = {tool.name: tool for tool in listed}
    await visit(tools, lambda name, arguments: tools[name].run_json(arguments, CancellationToken()))


run(main())
