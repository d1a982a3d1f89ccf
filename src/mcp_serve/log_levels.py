"""How much of a tool's log a client hears: since 2026-07-28 as the request says, before as its session does."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp.server.session import ServerSession
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_serve.plain import Hearing
from mcp_serve.sdk_internals import connection_state
from mcp_serve.wire import logged

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
UNASKED = "info"
"""What a client of the older eras hears before it says what it wants."""
_KEY = "mcp_serve/logLevel"


def set_level(session: ServerSession, level: str) -> None:
    """Remember what the client of a session wants to hear."""
    connection_state(session)[_KEY] = level


def wanted_level(session: ServerSession, meta: Mapping[str, Any] | None) -> str | None:
    """The level that the client asked for; None if it did not."""
    if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
        asked = (meta or {}).get(LOG_LEVEL_META_KEY)
    else:
        asked = connection_state(session).get(_KEY)
    return asked if asked in LEVELS else None


def is_heard(level: str, session: ServerSession, meta: Mapping[str, Any] | None) -> bool:
    """Whether the client is sent a message of this level; since 2026-07-28 only one who asked is sent any."""
    wanted = wanted_level(session, meta)
    if wanted is None and session.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return False
    return level in LEVELS and LEVELS.index(level) >= LEVELS.index(wanted or UNASKED)


def hearing_of(session: ServerSession, say: Callable[[bytes], Awaitable[None]]) -> Hearing:
    """What the client of a session of the older era hears on the lane, where `say` sends it a message."""

    async def log(level: str, data: Any, logger: str) -> None:
        if is_heard(level, session, None):
            await say(logged(level, data, logger))

    return Hearing(wanted_level(session, None), log)
