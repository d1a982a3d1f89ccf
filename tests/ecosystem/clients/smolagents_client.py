import asyncio

from smolagents import ToolCollection
from visit import HEADERS, URL, run, visit

parameters = {"url": URL, "transport": "streamable-http", "headers": HEADERS}
with ToolCollection.from_mcp(parameters, trust_remote_code=True, structured_output=True) as collection:
    tools = {tool.name: tool for tool in collection.tools}
    run(visit(tools, lambda name, arguments: asyncio.to_thread(tools[name], **arguments)))
