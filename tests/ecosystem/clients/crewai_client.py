import asyncio

from crewai_tools import MCPServerAdapter
from visit import HEADERS, URL, run, visit

with MCPServerAdapter({"url": URL, "transport": "streamable-http", "headers": HEADERS}, connect_timeout=120) as listed:
    tools = {tool.name: tool for tool in listed}
    run(visit(tools, lambda name, arguments: asyncio.to_thread(tools[name].run, **arguments)))
