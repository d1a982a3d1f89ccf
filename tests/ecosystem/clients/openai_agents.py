import json

from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerStreamableHttp, MCPUtil
from agents.tool_context import ToolContext
from visit import HEADERS, URL, run, visit


async def main() -> None:
    params = {"url": URL, "headers": HEADERS, "timeout": 60}
    async with MCPServerStreamableHttp(params=params, client_session_timeout_seconds=60) as server:
        agent = Agent(name="visitor", mcp_servers=[server])
        listed = await MCPUtil.get_all_function_tools([server], False, RunContextWrapper(context=None), agent)
        tools = {tool.name: tool for tool in listed}

        async def call(name, arguments):
            text = json.dumps(arguments)
            context = ToolContext(context=None, tool_name=name, tool_call_id="1", tool_arguments=text)
            return await tools[name].on_invoke_tool(context, text)

        await visit(tools, call)


run(main())
