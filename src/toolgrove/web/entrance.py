"""The edge of the gateway for plain requests that need not pass through the app: the same checks, by the head alone."""

from __future__ import annotations

from collections.abc import Callable

from mcp_serve.guard import Hosts
from mcp_serve.lane import Line
from mcp_serve.plain import Head
from mcp_serve.shortcut import Entry
from toolgrove.store.state import OPERATOR
from toolgrove.web.identity import Holder, Principal, bearer

_ANYBODY = Principal(OPERATOR)


class Entrance:
    """Lets in whom the app would let in; without a `holder` of tokens, everybody is the operator."""

    def __init__(
        self,
        hosts: Hosts,
        holder: Holder | None,
        came: Callable[[Principal, str], None],
        line: Callable[[str, Principal], Line | None],
    ) -> None:
        self._hosts, self._holder, self._came, self._line = hosts, holder, came, line

    def __call__(self, path: str, head: Head, source: str) -> Entry | None:
        given = head.given
        if not self._hosts.welcomes(given.get(b"host"), given.get(b"origin")):
            return None
        if self._holder is None:
            line = self._line(path, _ANYBODY)
            return None if line is None else Entry(line, _ANYBODY.user)
        token = bearer(given.get(b"authorization", b""))
        try:
            user = None if token is None else self._holder(token)
        except OSError:  # the app tells of it
            return None
        line = None if user is None else self._line(path, user)
        if user is None or line is None:
            return None
        self._came(user, source)
        return Entry(line, user.user)
