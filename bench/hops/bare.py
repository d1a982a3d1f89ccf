"""A bare SDK server with one tool that does nothing, answering in plain JSON.

KIND is `empty`, the SDK on the HTTP server that it installs; `even`, the same on the gateway's HTTP server; or `lean`,
that without the tracing that nobody listens to.
"""

import asyncio
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route

from bench.subjects.sdk import Endpoint
from mcp_serve.http_server import run_http
from mcp_serve.signals import Stop
from toolgrove.cli.serve import listen

SCHEMA = {"type": "object", "properties": {"nodeId": {"type": "string"}}, "required": ["nodeId"]}


def http(port: str, era: str, kind: str) -> None:
    manager = StreamableHTTPSessionManager(_server(kind), json_response=True)
    app = Starlette(routes=[Route("/mcp", Endpoint(manager))], lifespan=lambda app: manager.run())
    if kind == "empty":
        uvicorn.run(app, port=int(port), log_config=None, access_log=False, http="h11", loop="asyncio")
    else:
        asyncio.run(_as_the_gateway(app, int(port)))


async def _as_the_gateway(app: Starlette, port: int) -> None:
    async with app.router.lifespan_context(app):
        with listen("127.0.0.1", port) as listening:
            await run_http(app, asyncio.sleep, listening, Stop())


def _server(kind: str) -> Server[Any]:
    tool = types.Tool(name="get_node", description="Does nothing.", input_schema=SCHEMA)

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[])

    server: Server[Any] = Server(
        "bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=lambda name: SCHEMA
    )
    if kind == "lean":
        server.middleware.clear()
    return server
