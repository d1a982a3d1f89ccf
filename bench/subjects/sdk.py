"""A bare `mcp` server with the same tools: as its documentation shows it, or `lean`, with the settings the bridge uses.

The bridge answers 2026-07-28 requests as plain JSON and drops the tracing middleware when nobody collects spans.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from apcore import Registry
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from apcore_mcp.server.factory import MCPServerFactory

WAITING = 64


def tools_of(registry: Registry) -> list[types.Tool]:
    return MCPServerFactory().build_tools(registry)


def result_of(arguments: dict[str, Any]) -> types.CallToolResult:
    output = {"sum": arguments["a"] + arguments["b"]}
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(output))], structured_content=output)


def server_of(registry: Registry, lean: bool) -> Server[Any]:
    tools = {tool.name: tool for tool in tools_of(registry)}

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(tools.values()))

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return result_of(params.arguments or {})

    server: Server[Any] = Server(
        "bare",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: tools[name].input_schema,
    )
    if lean:
        server.middleware.clear()
    return server


class Endpoint:
    """One session manager at one path."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)


def http(registry: Registry, port: int, *, lean: bool = False) -> None:
    server = server_of(registry, lean)
    if not lean:
        app = server.streamable_http_app()
    else:
        streams = StreamableHTTPSessionManager(server)
        plain = StreamableHTTPSessionManager(server, json_response=True)

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            async with streams.run(), plain.run():
                yield

        app = Starlette(routes=[Route("/mcp", Endpoint(streams)), Route("/json", Endpoint(plain))], lifespan=lifespan)
    uvicorn.run(app, port=port, log_config=None, access_log=False, http="h11", loop="asyncio")


def stdio(registry: Registry, *, lean: bool = False) -> None:
    server = server_of(registry, lean)

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


@asynccontextmanager
async def memory(registry: Registry, *, lean: bool = False) -> AsyncIterator[Any]:
    async with connected(server_of(registry, lean)) as streams:
        yield streams


@asynccontextmanager
async def connected(server: Server[Any]) -> AsyncIterator[Any]:
    """The client's end of a connection to the server: put, take, and the translation from and to plain JSON."""
    questions, read = anyio.create_memory_object_stream[Any](WAITING)
    write, answers = anyio.create_memory_object_stream[Any](WAITING)
    async with read, write, anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, read, write, server.create_initialization_options())
        yield questions.send, answers.receive, wrap, unwrap
        tasks.cancel_scope.cancel()


def wrap(message: dict[str, Any]) -> SessionMessage:
    model = types.JSONRPCRequest if "id" in message else types.JSONRPCNotification
    return SessionMessage(model.model_validate(message))


def unwrap(received: Any) -> dict[str, Any]:
    plain: dict[str, Any] = received.message.model_dump(by_alias=True, mode="json", exclude_none=True)
    return plain
