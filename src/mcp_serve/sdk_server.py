"""The SDK's server over an endpoint: lists, calls and tells of changes whatever does not take the lane."""

import asyncio
from collections.abc import Awaitable
from functools import partial
from secrets import token_hex
from typing import Any, Literal, TypeVar

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from mcp_serve.answer import Refusal
from mcp_serve.calls import ANSWER_WITHIN, Channel, Question, Returned, User
from mcp_serve.discovery import announced
from mcp_serve.log_levels import is_heard, set_level, wanted_level
from mcp_serve.parts import Parts
from mcp_serve.prompts import NotGiven
from mcp_serve.protocol import MODERN
from mcp_serve.resources import NotRead
from mcp_serve.sdk_forms import tool_of
from mcp_serve.sdk_internals import (
    AnnouncingServer,
    connection_of,
    drop_idle_tracing,
    is_traced,
    schema_lookup,
    when_connection_ends,
)
from mcp_serve.sessions import OpenSession
from mcp_serve.table import Json
from mcp_serve.verbatim import keep_contents, keep_definition, keep_entry, keep_result, verbatim
from mcp_serve.watches import Bus, Watches

NEWS_WITHIN = 5.0
"""Seconds after which a client that does not read misses a change: it must not hold up the others."""
_ELICITATION = types.ClientCapabilities(elicitation=types.ElicitationCapability())
Context = ServerRequestContext[Any, Any]
Changing = Literal["tools", "resources", "prompts"]
"""The lists that clients are told to read again."""
_EVENTS: dict[Changing, ServerEvent] = {
    "tools": ToolsListChanged(),
    "resources": ResourcesListChanged(),
    "prompts": PromptsListChanged(),
}
_Listed = TypeVar("_Listed", bound=BaseModel)


class SdkServer:
    """Answers what the SDK asks, from the parts of an endpoint."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tools = parts.tools
        self._refuse = parts.refuse
        self._prompts = parts.prompts
        self._resources = parts.resources
        self._logger = parts.logger
        self._calls = parts.calls
        self._listing = parts.listing
        self._opened, self._under_way = parts.sessions, parts.under_way
        logs, prompts = parts.logs, parts.prompts
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop that serves clients which want to hear of changes; None while there are none."""
        self._changed: set[Changing] = set()
        self._sessions: set[ServerSession] = set()
        self._bus = Bus()
        self._listening = ListenHandler(self._bus)
        self._watches = Watches(self._resources, self._in_time)
        self.server: Server[Any] = AnnouncingServer(
            parts.name,
            adjust=self._adjusted,
            version=parts.version,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscribe_resource=self._subscribe if parts.watches else None,
            on_unsubscribe_resource=self._unsubscribe if parts.watches else None,
            on_list_prompts=None if prompts is None else self._list_prompts,
            on_get_prompt=None if prompts is None else self._get_prompt,
            on_completion=None if prompts is None else self._complete,
            on_subscriptions_listen=self._listen,
            **schema_lookup(self._header_schema),
        )
        self.server.add_notification_handler("notifications/initialized", types.NotificationParams, self._remember)
        if logs is not None:
            self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        self.server.add_notification_handler(
            "notifications/cancelled", types.CancelledNotificationParams, self._cancelled
        )
        drop_idle_tracing(self.server)
        security = RequestStateSecurity(keys=[parts.state_key], ttl=ANSWER_WITHIN, bind_principal=_user_id)
        self.server.middleware.append(RequestStateBoundary(security, default_audience=parts.name))
        self.server.middleware.append(verbatim)
        self._as_made = self._handling()
        self._is_traced = is_traced(self.server)

    @property
    def is_as_made(self) -> bool:
        """Whether nobody added to what handles plain requests, nor traces them."""
        return self._handling() == self._as_made and not self._is_traced

    def _handling(self) -> tuple[object, ...]:
        """What the SDK hands plain requests to."""
        handler = self.server.get_request_handler
        methods = ("tools/call", "tools/list", "ping", "server/discover")
        return *map(handler, methods), *self.server.middleware

    def close(self) -> None:
        """Tell of no more changes."""
        self._listening.close()

    def changed(self, *lists: Changing) -> None:
        """Tell every client, once per burst, on the loop that serves them; callable from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            is_announcing = bool(self._changed)
            self._changed.update(lists)  # before the call: the loop's thread may be quicker than this one
            if not is_announcing:
                self._loop.call_soon_threadsafe(self._announce)

    def _announce(self) -> None:
        changed, self._changed = sorted(self._changed, reverse=True), set()
        published = [self._bus.publish(_EVENTS[one]) for one in changed]
        told = [self._in_time(_told(session, changed)) for session in self._sessions]
        self._sending = asyncio.gather(*published, *told)

    async def _in_time(self, telling: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(NEWS_WITHIN):
                await telling
        except Exception:
            self._logger.warning("A client could not be told of a change", exc_info=True)

    async def _listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> Any:
        self._loop = asyncio.get_running_loop()
        wanted = params.notifications.resource_subscriptions
        if not wanted:
            return await self._listening(ctx, params)
        async with self._watches.stream(wanted, _user(ctx), ctx.meta or {}) as watched:
            honored = params.notifications.model_copy(update={"resource_subscriptions": watched})
            return await self._listening(ctx, params.model_copy(update={"notifications": honored}))

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        try:
            await self._watches.subscribe(
                connection_of(ctx.session), ctx.session, params.uri, _user(ctx), ctx.meta or {}
            )
        except NotRead as refused:
            raise _not_read(refused, params.uri) from None
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._watches.unsubscribe(connection_of(ctx.session), params.uri)
        return types.EmptyResult()

    async def _remember(self, ctx: Context, params: types.NotificationParams) -> None:
        self._loop = asyncio.get_running_loop()
        self._sessions.add(ctx.session)
        self._open(ctx)
        when_connection_ends(ctx.session, partial(self._sessions.discard, ctx.session))
        when_connection_ends(ctx.session, partial(self._watches.forget, connection_of(ctx.session)))

    def _open(self, ctx: Context) -> None:
        """Let the lane know of a session."""
        session_id = _session_id(ctx)
        opened = self._opened[session_id] = OpenSession(ctx.session, _user_id(ctx))

        def close() -> None:
            if self._opened.get(session_id) is opened:
                del self._opened[session_id]
            opened.under_way.end()

        when_connection_ends(ctx.session, close)

    async def _cancelled(self, ctx: Context, params: types.CancelledNotificationParams) -> None:
        """Cancel what is on the lane; the SDK has cancelled what is with it."""
        opened = self._opened.get(_session_id(ctx))
        under_way = self._under_way if ctx.request is None else None if opened is None else opened.under_way
        if under_way is not None and params.request_id is not None:
            under_way.cancel(params.request_id)

    def _header_schema(self, name: str) -> Json | None:
        entry = self._tools.entry(name)
        return None if entry is None else entry.header_schema

    async def _list_tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        page = self._listing.page(params.cursor)
        if page is None:
            raise MCPError(types.INVALID_PARAMS, "There is no such page of the list any more: list from the start")
        for entry in page.entries:
            keep_definition(entry, modern=ctx.protocol_version in MODERN_PROTOCOL_VERSIONS)
        return types.ListToolsResult(
            tools=[tool_of(entry.tool) for entry in page.entries], next_cursor=page.next_cursor
        )

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        channel = _channel(ctx)
        if params.request_state is None:
            outcome = await self._calls.begin(params.name, params.arguments, channel, _user(ctx))
        else:
            answer = (params.input_responses or {}).get("answer")
            returned = Returned(params.request_state, _answered(answer), answer is not None)
            outcome = await self._calls.resume(returned, channel, _user(ctx))
        if isinstance(outcome, Question):
            return _asked(outcome)
        given = self._refuse(outcome.text) if isinstance(outcome, Refusal) else outcome
        return keep_result(given) if isinstance(given, dict) else given

    async def _list_resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        listed = [_kept(types.Resource, one, "uri") for one in await self._resources.listed()]
        return types.ListResourcesResult(resources=[one for one in listed if one is not None])

    async def _list_templates(self, ctx: Context, params: Any) -> types.ListResourceTemplatesResult:
        listed = [_kept(types.ResourceTemplate, one, "uriTemplate") for one in await self._resources.templates()]
        return types.ListResourceTemplatesResult(resource_templates=[one for one in listed if one is not None])

    def announced(self) -> Json:
        """What clients of the newer era are told to ask for, whoever added it."""
        told: Json = self.server.get_capabilities(protocol_version=MODERN).model_dump(
            by_alias=True, mode="json", exclude_none=True
        )
        return told

    def _adjusted(self, found: types.ServerCapabilities) -> types.ServerCapabilities:
        """Clients are told to ask only for what there is."""
        told = announced(self._parts)
        ours = {"resources", "logging"} if self._prompts is None else {"resources", "logging", "prompts", "completions"}
        kept: dict[str, Any] = dict.fromkeys(ours - told.keys())
        if found.resources is not None and "resources" in told:
            kept["resources"] = found.resources.model_copy(update={"subscribe": told["resources"]["subscribe"]})
        return found.model_copy(update=kept)

    async def _set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        set_level(ctx.session, params.level)
        return types.EmptyResult()

    async def _list_prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        offered = [] if self._prompts is None else await self._prompts.listed()
        listed = [_kept(types.Prompt, one, "name") for one in offered]
        return types.ListPromptsResult(prompts=[one for one in listed if one is not None])

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        try:
            if self._prompts is None:
                raise NotGiven
            keep_contents(await self._prompts.get(params.name, params.arguments or {}, _user(ctx), ctx.meta or {}))
        except NotGiven as refused:
            if refused.reason is None:
                raise MCPError(types.INVALID_PARAMS, "Prompt not found", {"name": params.name}) from None
            raise MCPError(types.INTERNAL_ERROR, refused.reason, refused.data) from None
        return types.GetPromptResult(messages=[])

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        asked = params.model_dump(by_alias=True, exclude_none=True, mode="json", include={"ref", "argument", "context"})
        try:
            if self._prompts is None:
                raise NotGiven
            keep_contents(await self._prompts.complete(asked, _user(ctx), ctx.meta or {}))
        except NotGiven as refused:
            if refused.reason is None:
                raise MCPError(types.INVALID_PARAMS, "Nothing to complete", {"ref": asked["ref"]}) from None
            raise MCPError(types.INTERNAL_ERROR, refused.reason, refused.data) from None
        return types.CompleteResult(completion=types.Completion(values=[]))

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        try:
            keep_contents(await self._resources.read(params.uri, _user(ctx), ctx.meta or {}))
        except NotRead as refused:
            raise _not_read(refused, params.uri) from None
        return types.ReadResourceResult(contents=[])


async def _told(session: ServerSession, changed: list[Changing]) -> None:
    if "tools" in changed:
        await session.send_tool_list_changed()
    if "resources" in changed:
        await session.send_resource_list_changed()
    if "prompts" in changed:
        await session.send_prompt_list_changed()


def _not_read(refused: NotRead, uri: str) -> MCPError:
    if refused.reason is None:
        return MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return MCPError(types.INTERNAL_ERROR, refused.reason, refused.data)


def _kept(kind: type[_Listed], wire: Json, name: str) -> _Listed | None:
    """An entry of a list, sent as it is; None for one that clients cannot read, since some refuse the whole list."""
    try:
        entry = kind.model_validate(wire)
    except ValidationError:
        return None
    keep_entry(wire[name], wire)
    return entry


def _answered(answer: Any) -> Json | None:
    """What the user said, in the form of the wire."""
    if not isinstance(answer, types.ElicitResult):
        return None
    said: Json = answer.model_dump(by_alias=True, exclude_none=True, mode="json", include={"action", "content"})
    return said


def _asked(question: Question) -> types.InputRequiredResult:
    params: types.ElicitRequestParams
    if question.url is None:
        params = types.ElicitRequestFormParams(message=question.message, requested_schema=question.schema)
    else:
        params = types.ElicitRequestURLParams(message=question.message, url=question.url)
    asked: Any = {"answer": types.ElicitRequest(params=params)}
    return types.InputRequiredResult(input_requests=asked, request_state=question.id)


def _channel(ctx: Context) -> Channel:
    session = ctx.session
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def ask(question: Json) -> Json:
        message, url = question["message"], question.get("url")
        if url is None:
            schema = question["requestedSchema"]
            answer = await session.elicit_form(message, schema, related_request_id=ctx.request_id)
        else:
            answer = await session.elicit_url(message, url, token_hex(8), related_request_id=ctx.request_id)
        return _answered(answer) or {"action": "cancel"}

    async def send_log(level: Any, data: Any, logger: str) -> None:
        if not is_heard(level, session, ctx.meta):
            return
        params = types.LoggingMessageNotificationParams(level=level, data=data, logger=logger)
        await session.send_notification(types.LoggingMessageNotification(params=params), ctx.request_id)

    client = session.client_capabilities
    elicitation = None if client is None else client.elicitation
    return Channel(
        send_progress=session.report_progress,
        wants_chunks=ctx.meta is not None and "progress_token" in ctx.meta,
        can_answer=(is_modern or session.can_send_request) and session.check_client_capability(_ELICITATION),
        ask=None if is_modern else ask,
        meta=ctx.meta,
        modern=is_modern,
        can_open=elicitation is not None and elicitation.url is not None,
        log_level=wanted_level(session, ctx.meta),
        send_log=send_log,
    )


def _user(ctx: Context) -> User | None:
    """The user that an authentication middleware in front of us put on the request."""
    scope = getattr(ctx.request, "scope", {})
    user = scope.get("user")
    if user is None or not user.is_authenticated:
        return None
    return User(user.display_name, tuple(scope["auth"].scopes))


def _session_id(ctx: Context) -> str | None:
    headers = getattr(ctx.request, "headers", {})
    session: str | None = headers.get("mcp-session-id")
    return session


def _user_id(ctx: Context) -> str | None:
    """Who asked must answer."""
    user = _user(ctx)
    return None if user is None else user.id


IS_LOADED = True
"""Last, so that nobody takes it for loaded while it is not."""
