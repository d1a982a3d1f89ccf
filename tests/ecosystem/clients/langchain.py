from langchain_mcp_adapters.client import MultiServerMCPClient
from visit import HEADERS, URL, run, visit


async def main() -> None:
    client = MultiServerMCPClient({"grove": {"transport": "streamable_http", "url": URL, "headers": HEADERS}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    await visit(tools, lambda name, arguments: tools[name].ainvoke(arguments))


run(main())
