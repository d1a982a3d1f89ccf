from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from visit import HEADERS, URL, run, visit


async def main() -> None:
    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=URL, headers=HEADERS, timeout=60))
    tools = {tool.name: tool for tool in await toolset.get_tools()}
    for tool in tools.values():
        assert tool._get_declaration() is not None  # what a model is shown

    async def call(name, arguments):
        return await tools[name]._run_async_impl(args=arguments, tool_context=None, credential=None)

    await visit(tools, call)
    await toolset.close()


run(main())
