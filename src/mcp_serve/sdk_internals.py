"""What we rely on in the MCP SDK without a promise; tests/unit/test_dependency_insides.py says what moved."""

import asyncio
import inspect
import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import ServerCapabilities
from starlette.types import Scope

from mcp_serve.table import Json
from mcp_serve.tracing import is_collected

_TRACING = "OpenTelemetryMiddleware"
_TAKES_SCHEMAS = "get_tool_input_schema" in inspect.signature(Server.__init__).parameters


class AnnouncingServer(Server[Any]):
    """Says at the handshake that it tells of changed lists; the SDK asks without arguments, which would deny it.

    `adjust` has the last word about what is announced.
    """

    def __init__(self, *args: Any, adjust: Callable[[ServerCapabilities], ServerCapabilities], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._adjust = adjust

    def get_capabilities(self, *args: Any, **keywords: Any) -> ServerCapabilities:
        """What clients are told that they can ask for."""
        return self._adjust(super().get_capabilities(*args, **keywords))

    def create_initialization_options(self, *args: Any, **keywords: Any) -> InitializationOptions:
        """What `initialize` answers, lists that change included."""
        changes = NotificationOptions(tools_changed=True, resources_changed=True, prompts_changed=True)
        return super().create_initialization_options(changes, *args[1:], **keywords)


def schema_lookup(find: Callable[[str], Json | None]) -> dict[str, Any]:
    """The argument of `Server` that spares it a whole `tools/list` at each call, where it takes one (from 2.3)."""
    return {"get_tool_input_schema": find} if _TAKES_SCHEMAS else {}


def drop_idle_tracing(server: Server[Any]) -> None:
    """Take the SDK's tracing out while nobody collects spans: they cost up to a third of a call."""
    if not is_collected():
        server.middleware[:] = [each for each in server.middleware if type(each).__name__ != _TRACING]


def is_traced(server: Server[Any]) -> bool:
    """Whether somebody collects the SDK's spans, one of each request: those must pass through it."""
    return any(type(each).__name__ == _TRACING for each in server.middleware)


def when_connection_ends(session: ServerSession, call: Callable[[], object]) -> None:
    """Call this at the end of the connection; the SDK has no public way from a session to there."""
    session._connection.exit_stack.callback(call)


def connection_of(session: ServerSession) -> Hashable:
    """What stays the same over all requests of a connection, unlike the session, of which each request has its own."""
    return session._connection


def connection_state(session: ServerSession) -> dict[str, Any]:
    """What is remembered for all requests of a connection."""
    return session._connection.state


def transport_of(manager: StreamableHTTPSessionManager, session: str) -> StreamableHTTPServerTransport | None:
    """What holds a session that is still open; None where it ended, or is about to."""
    transport = manager._server_instances.get(session)
    if transport is None or transport.is_terminated:
        return None
    idle = transport.idle_scope
    return None if idle is not None and idle.cancel_called else transport


@contextmanager
def in_use(transport: StreamableHTTPServerTransport, idle: float) -> Iterator[None]:
    """Keep a session from ending as idle, as the SDK does while it answers a request in it."""
    scope = transport.idle_scope
    # An SDK before 2.3 has no such count: each of its requests only puts the end off.
    transport._requests_in_flight = getattr(transport, "_requests_in_flight", 0) + 1
    if scope is not None:
        scope.deadline = math.inf
    try:
        yield
    finally:
        transport._requests_in_flight -= 1
        if scope is not None and not transport._requests_in_flight and _is_in_loop():
            scope.deadline = anyio.current_time() + idle


def _is_in_loop() -> bool:
    """Whether a loop is running; what was left behind by one that ended is closed outside of any."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def owned(scope: Scope) -> Scope:
    """The request by a user of the SDK's own kind: only for those does a session belong to who opened it."""
    user: Any = scope.get("user")
    if user is None or not user.is_authenticated or isinstance(user, AuthenticatedUser):
        return scope
    return {**scope, "user": AuthenticatedUser(AccessToken(token="", client_id=user.display_name, scopes=[]))}
