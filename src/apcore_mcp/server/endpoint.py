"""One MCP server over a tool table: what every transport serves, in both protocol eras."""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from secrets import token_bytes
from typing import Any, Protocol

import mcp_types as types
from apcore import Identity
from mcp.server import Server, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry import trace

from apcore_mcp.server.calls import ANSWER_WITHIN, Calls, Channel, Question, Run
from apcore_mcp.server.factory import Entry

logger = logging.getLogger(__name__)

DOCS = "docs://"
_ELICITATION = types.ClientCapabilities(elicitation=types.ElicitationCapability())
Context = ServerRequestContext[Any, Any]


class ToolTable(Protocol):
    """The tools to serve, by name; may change at any time."""

    def entries(self) -> Mapping[str, Entry]: ...

    def entry(self, name: str) -> Entry | None: ...


class Endpoint:
    """Lists, calls, documents and announces the tools of one table."""

    def __init__(self, name: str, version: str, tools: ToolTable, run: Run) -> None:
        self._tools, self.calls, self._announcing = tools, Calls(run), False
        self.loop: asyncio.AbstractEventLoop | None = None
        self._sessions: set[ServerSession] = set()
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self.server: Server[Any] = Server(
            name,
            version=version,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self.listen,
            get_tool_input_schema=lambda tool: entry.tool.input_schema if (entry := tools.entry(tool)) else None,
        )
        changes = NotificationOptions(tools_changed=True, resources_changed=True)
        announce_changes = partial(self.server.create_initialization_options, changes)
        self.server.create_initialization_options = announce_changes  # type: ignore[method-assign]
        self.server.add_notification_handler("notifications/initialized", types.NotificationParams, self._remember)
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            self.server.middleware.clear()  # spans that nobody collects cost up to a third of a call
        principal = lambda ctx: getattr(_identity(ctx), "id", None)  # noqa: E731 - who asked must answer
        security = RequestStateSecurity(keys=[token_bytes(32)], ttl=ANSWER_WITHIN, bind_principal=principal)
        self.server.middleware.append(RequestStateBoundary(security, default_audience=name))

    async def drain(self, seconds: float) -> None:
        """Stop telling of changes, and let the running calls end."""
        self.listen.close()
        await self.calls.drain(seconds)

    def tools_changed(self) -> None:
        """Tell every client, once per burst, on the loop that serves them; callable from any thread."""
        if self.loop is not None and not self.loop.is_closed() and not self._announcing:
            self._announcing = True  # before the call: the loop's thread may be quicker than this one
            self.loop.call_soon_threadsafe(self._announce)

    def _announce(self) -> None:
        self._announcing = False
        published = self._bus.publish(ToolsListChanged()), self._bus.publish(ResourcesListChanged())
        self._sending = asyncio.gather(*published, *map(self._notify, self._sessions))

    async def _notify(self, session: ServerSession) -> None:
        try:
            async with asyncio.timeout(5):  # a client that does not read must not hold the others
                await session.send_tool_list_changed()
                await session.send_resource_list_changed()
        except Exception:
            logger.warning("A client could not be told that the tools changed", exc_info=True)

    async def _remember(self, ctx: Context, params: types.NotificationParams) -> None:
        self._sessions.add(ctx.session)
        # The SDK has no public way from a session to the end of its connection.
        ctx.session._connection.exit_stack.callback(self._sessions.discard, ctx.session)

    async def _list_tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[entry.tool for entry in self._tools.entries().values()])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        channel = _channel(ctx)
        if params.request_state is not None:
            answer = (params.input_responses or {}).get("answer")
            outcome = await self.calls.resume(params.request_state, accepted(answer), channel, answer is not None)
        else:
            outcome = await self.calls.begin(params.name, params.arguments, channel, _identity(ctx))
        if not isinstance(outcome, Question):
            return outcome
        form = types.ElicitRequestFormParams(message=outcome.message, requested_schema=outcome.schema)
        asked: Any = {"answer": types.ElicitRequest(params=form)}
        return types.InputRequiredResult(input_requests=asked, request_state=outcome.id)

    async def _list_resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        documented = [name for name, entry in self._tools.entries().items() if entry.descriptor.documentation]
        resources = [types.Resource(uri=DOCS + name, name=name, mime_type="text/plain") for name in documented]
        return types.ListResourcesResult(resources=resources)

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        entry = self._tools.entry(params.uri.removeprefix(DOCS)) if params.uri.startswith(DOCS) else None
        text = entry.descriptor.documentation if entry else None
        if not text:
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": params.uri})
        content = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[content])


def accepted(answer: Any) -> Any | None:
    """What the user entered, or None unless the user accepted."""
    return (answer.content or {}) if isinstance(answer, types.ElicitResult) and answer.action == "accept" else None


def _channel(ctx: Context) -> Channel:
    session, modern = ctx.session, ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def ask(message: str, schema: Any) -> Any | None:
        return accepted(await session.elicit_form(message, schema, related_request_id=ctx.request_id))

    wants_chunks = ctx.meta is not None and "progress_token" in ctx.meta
    can_answer = (modern or session.can_send_request) and session.check_client_capability(_ELICITATION)
    return Channel(session.report_progress, wants_chunks, can_answer, None if modern else ask, ctx.meta)


def _identity(ctx: Context) -> Identity | None:
    """The user that an authentication middleware in front of us put on the request."""
    scope = getattr(ctx.request, "scope", {})
    known = "user" in scope and scope["user"].is_authenticated
    return Identity(id=scope["user"].display_name, roles=tuple(scope["auth"].scopes)) if known else None
