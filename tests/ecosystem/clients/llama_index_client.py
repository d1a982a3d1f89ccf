from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from visit import HEADERS, URL, run, visit


async def main() -> None:
    specification = McpToolSpec(client=BasicMCPClient(URL, headers=HEADERS, timeout=60))
    tools = {tool.metadata.name: tool for tool in await specification.to_tool_list_async()}
    await visit(tools, lambda name, arguments: tools[name].acall(**arguments))


run(main())
