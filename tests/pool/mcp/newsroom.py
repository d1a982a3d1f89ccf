"""An MCP server whose offers change, on the official SDK, both eras: `python newsroom.py JOURNAL [PORT]`.

Every subscription and every end of one is a line of the journal. Tools of its own make it tell of changes.
"""

import json
import os
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
)

from mcp_serve.sdk_internals import AnnouncingServer

TOOLS = ("touch", "grow", "crash")
SCHEMA: Any = {"type": "object", "properties": {"uri": {"type": "string"}}}
bus = InMemorySubscriptionBus()
listening = ListenHandler(bus)
sessions: list[Any] = []
offered = ["one"]
FRESH: Any = {"ttl_ms": 0, "cache_scope": "private"}


def note(*parts: object) -> None:
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        file.write(json.dumps(parts) + "\n")


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    tools = [types.Tool(name=name, description=f"Does {name}.", input_schema=SCHEMA) for name in TOOLS]
    return types.ListToolsResult(tools=tools, **FRESH)


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    note("listed")
    return types.ListResourcesResult(resources=[types.Resource(uri=f"memo://{x}", name=x) for x in offered], **FRESH)


async def read_resource(ctx: Any, params: Any) -> types.ReadResourceResult:
    text = types.TextResourceContents(uri=params.uri, text="remember")
    return types.ReadResourceResult(contents=[text], **FRESH)


async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[types.Prompt(name=name) for name in offered], **FRESH)


async def get_prompt(ctx: Any, params: Any) -> types.GetPromptResult:
    return types.GetPromptResult(messages=[])


async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
    if params.name == "crash":
        os._exit(3)
    if params.name == "touch":
        uri = (params.arguments or {})["uri"]
        await bus.publish(ResourceUpdated(uri))
        for session in sessions:
            await session.send_resource_updated(uri)
    if params.name == "grow":
        offered.append("two")
        await bus.publish(ResourcesListChanged())
        await bus.publish(PromptsListChanged())
        for session in sessions:
            await session.send_resource_list_changed()
            await session.send_prompt_list_changed()
    return types.CallToolResult(content=[types.TextContent(text="done")])


async def subscribe(ctx: Any, params: Any) -> types.EmptyResult:
    note("watch", params.uri)
    return types.EmptyResult()


async def unsubscribe(ctx: Any, params: Any) -> types.EmptyResult:
    note("unwatch", params.uri)
    return types.EmptyResult()


async def listen(ctx: Any, params: Any) -> Any:
    uris = params.notifications.resource_subscriptions or ()
    for uri in uris:
        note("watch", uri)
    try:
        return await listening(ctx, params)
    finally:
        for uri in uris:
            note("unwatch", uri)


async def initialized(ctx: Any, params: Any) -> None:
    sessions.append(ctx.session)


server: Server[Any] = AnnouncingServer(
    "newsroom",
    adjust=lambda found: found,
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=listen,
)
server.add_notification_handler("notifications/initialized", types.NotificationParams, initialized)
manager = StreamableHTTPSessionManager(server)


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await receive()
        async with manager.run():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await manager.handle_request(scope, receive, send)


async def over_stdio() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    if len(sys.argv) > 2:
        import uvicorn

        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", timeout_graceful_shutdown=1)
    else:
        anyio.run(over_stdio)
