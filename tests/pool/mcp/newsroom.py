"""An MCP server that talks by itself, on the official SDK, both eras: `python newsroom.py JOURNAL [PORT]`.

Every subscription and every end of one is a line of the journal. Tools make it tell of changes, log and ask.
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
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from mcp_serve.sdk_internals import AnnouncingServer

TOOLS = ("touch", "grow", "crash", "ask", "open", "sample", "speak", "hang")
FORM: Any = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
MODERN = "2026-07-28"
SCHEMA: Any = {"type": "object", "properties": {"uri": {"type": "string"}, "text": {"type": "string"}}}
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


def said(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def asked(ctx: Any, params: Any) -> Any:
    """Ask in the way of the era; the result tells what was answered, and what the client had announced."""
    able = ctx.session.client_capabilities
    can = sorted(able.model_dump(exclude_none=True)) if able is not None else []
    url = (params.arguments or {}).get("uri", "")
    question: Any = types.ElicitRequestFormParams(message="How large?", requested_schema=FORM)
    if params.name == "open":
        question = types.ElicitRequestURLParams(message="Sign here.", url=url, elicitation_id="e1")
    request: Any = types.ElicitRequest(params=question)
    if params.name == "sample":
        text: Any = types.SamplingMessage(role="user", content=types.TextContent(text="Say all you know."))
        request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[text], max_tokens=9))
    if ctx.protocol_version == MODERN:
        answer = (params.input_responses or {}).get("q")
        if answer is None:
            return types.InputRequiredResult(input_requests={"q": request}, request_state="s1")
        return said(json.dumps([can, params.request_state, answer.action, answer.content]))
    kind: Any = types.CreateMessageResult if params.name == "sample" else types.ElicitResult
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        answer = await ctx.session.send_request(request, kind, metadata=related)
    except MCPError as refused:
        return said(json.dumps([can, refused.error.code, refused.error.message]))
    return said(json.dumps([can, "s1", answer.action, answer.content]))


async def call_tool(ctx: Any, params: Any) -> Any:
    if params.name == "crash":
        os._exit(3)
    if params.name in ("ask", "open", "sample"):
        return await asked(ctx, params)
    if params.name == "speak":
        note("wants progress", bool(ctx.meta and "progress_token" in ctx.meta))
        text = (params.arguments or {}).get("text", "")
        for level in ("debug", "info", "error"):
            await ctx.session.send_log_message(level, f"{level} {text}", "desk", related_request_id=ctx.request_id)
    if params.name == "hang":
        note("hanging")
        await anyio.sleep_forever()
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
    return said("done")


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


async def set_level(ctx: Any, params: Any) -> types.EmptyResult:
    note("level", params.level)
    return types.EmptyResult()


async def initialized(ctx: Any, params: Any) -> None:
    sessions.append(ctx.session)


server: Server[Any] = AnnouncingServer(
    "newsroom",
    adjust=lambda found: found,
    instructions=f"Call touch first. The key is {os.environ.get('KEY', 'none')}.",
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
server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
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
