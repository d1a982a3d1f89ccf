"""A well-behaved MCP server on the official SDK, both eras: `python sdk_upstream.py JOURNAL [PORT [sse]]`.

Without a port it speaks stdio, with `sse` the old HTTP+SSE. Every HTTP request and every cancelled call is a line of
the journal.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ImageContent,
    InputRequiredResult,
    ListResourcesResult,
    ListToolsResult,
    NotificationParams,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from mcp_serve.sdk_internals import schema_lookup

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
TERMS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
MIRRORED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}

journal = sys.argv[1]
bus = InMemorySubscriptionBus()
sessions: list[Any] = []
words = {"echo": "Says it again."}


def note(*parts: object) -> None:
    with open(journal, "a", encoding="utf-8") as file:
        file.write(json.dumps(parts) + "\n")


def said(text: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], **more)


async def add(ctx: Any, a: int, b: int) -> CallToolResult:
    return said(str(a + b), structured_content={"sum": a + b})


async def lie(ctx: Any) -> CallToolResult:
    return said("three", structured_content={"sum": "three"})


async def echo(ctx: Any, text: str = "") -> CallToolResult:
    return said(text)


async def picture(ctx: Any) -> CallToolResult:
    return CallToolResult(content=[ImageContent(data=PIXEL, mime_type="image/png"), TextContent(text="a pixel")])


async def steps(ctx: Any, text: str = "") -> CallToolResult:
    for number in (1, 2, 3):
        await ctx.session.report_progress(number, 3, f"step {number}{text}")
    return said("done")


async def hang(ctx: Any) -> CallToolResult:
    note("hanging")
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        note("cancelled")
        raise
    return said("never")


async def environment(ctx: Any) -> CallToolResult:
    return said(json.dumps(dict(os.environ)))


async def crash(ctx: Any) -> CallToolResult:
    os._exit(3)


async def fail(ctx: Any, text: str = "") -> CallToolResult:
    return said(text or "the disk is full", is_error=True)


async def refuse(ctx: Any) -> CallToolResult:
    error = {"code": "not_found", "message": "There is no such page.", "page": 7}
    return said("no page", structured_content={"error": error}, is_error=True)


async def remove(ctx: Any) -> CallToolResult:
    return said("gone")


async def region(ctx: Any, region: str = "") -> CallToolResult:
    return said(region)


async def ask(ctx: Any) -> InputRequiredResult:
    params = ElicitRequestFormParams(message="Sure?", requested_schema={"type": "object", "properties": {}})
    return InputRequiredResult(input_requests={"sure": ElicitRequest(params=params)})


async def reword(ctx: Any, text: str = "") -> CallToolResult:
    words["echo"] = text
    await changed()
    return said("reworded")


async def forget_sessions(ctx: Any) -> CallToolResult:
    note("forgetting")
    manager._server_instances.clear()
    return said("forgotten")


async def changed() -> None:
    await bus.publish(ToolsListChanged())
    for session in sessions:
        await session.send_tool_list_changed()


TOOLS: dict[str, tuple[Callable[..., Awaitable[Any]], dict[str, Any], dict[str, Any]]] = {
    "add": (add, TERMS, {"output_schema": SUM}),
    "lie": (lie, TEXT, {"output_schema": SUM}),
    "echo": (echo, TEXT, {"annotations": ToolAnnotations(read_only_hint=True)}),
    "picture": (picture, TEXT, {}),
    "steps": (steps, TEXT, {}),
    "hang": (hang, TEXT, {}),
    "environment": (environment, TEXT, {}),
    "crash": (crash, TEXT, {}),
    "fail": (fail, TEXT, {}),
    "refuse": (refuse, TEXT, {}),
    "remove": (remove, TEXT, {"annotations": ToolAnnotations(destructive_hint=True)}),
    "region": (region, MIRRORED, {}),
    "ask": (ask, TEXT, {}),
    "reword": (reword, TEXT, {}),
    "forget_sessions": (forget_sessions, TEXT, {}),
}


async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
    tools = [
        Tool(name=name, description=words.get(name, f"The tool {name}."), input_schema=schema, **more)
        for name, (_, schema, more) in TOOLS.items()
    ]
    return ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")


async def list_resources(ctx: Any, params: Any) -> ListResourcesResult:
    memo = Resource(uri="memo://one", name="one", mime_type="text/plain")
    return ListResourcesResult(resources=[memo], ttl_ms=0, cache_scope="private")


async def read_resource(ctx: Any, params: Any) -> ReadResourceResult:
    note("read", params.uri)
    if params.uri == "memo://hang":
        await anyio.sleep_forever()
    if params.uri != "memo://one":
        raise MCPError(INVALID_PARAMS, "Resource not found")
    memo = TextResourceContents(uri=params.uri, mime_type="text/plain", text="remember")
    return ReadResourceResult(contents=[memo], ttl_ms=0, cache_scope="private")


async def call_tool(ctx: Any, params: Any) -> Any:
    note("called", params.name)
    return await TOOLS[params.name][0](ctx, **(params.arguments or {}))


async def initialized(ctx: Any, params: Any) -> None:
    sessions.append(ctx.session)


class Upstream(Server[Any]):
    """Tells both eras that its tools may change; over HTTP the SDK does not by itself."""

    def create_initialization_options(self, *args: Any, **kwargs: Any) -> Any:
        options = super().create_initialization_options(*args, **kwargs)
        assert options.capabilities.tools is not None
        options.capabilities.tools.list_changed = True
        return options


server = Upstream(
    "upstream",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_subscriptions_listen=ListenHandler(bus),
    **schema_lookup(lambda name: TOOLS[name][1]),
)
server.add_notification_handler("notifications/initialized", NotificationParams, initialized)
manager = StreamableHTTPSessionManager(server)
old_transport = SseServerTransport("/messages/")


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await receive()
        async with manager.run():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    note("request", scope["method"], headers)
    await manager.handle_request(scope, receive, send)


async def old_app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    note("request", scope["method"], {name.decode(): value.decode() for name, value in scope["headers"]})
    if scope["method"] == "GET":
        async with old_transport.connect_sse(scope, receive, send) as (read, write):
            await server.run(read, write, server.create_initialization_options())
    else:
        await old_transport.handle_post_message(scope, receive, send)


async def over_stdio() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    if len(sys.argv) > 2:
        import uvicorn

        serves = old_app if sys.argv[3:] == ["sse"] else app
        uvicorn.run(serves, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", timeout_graceful_shutdown=1)
    else:
        anyio.run(over_stdio)
