"""The shortcut: the lane without ASGI, for requests that come whole, behind a head that was read before."""

from collections.abc import Callable
from typing import NamedTuple

from mcp_serve.calls import User
from mcp_serve.guard import Hosts
from mcp_serve.heads import Heads
from mcp_serve.lane import Line, Reply, reply
from mcp_serve.plain import Head
from mcp_serve.switch import is_open
from mcp_serve.whole import Header


class Entry(NamedTuple):
    """Where a request goes that is let in, and who asks."""

    line: Line
    user: User | None


Enter = Callable[[str, Head, str], Entry | None]
"""Lets a request in by its path, its head and the address that it comes from, exactly where the app would.

None where the app must answer: it refuses what is to be refused, in its own words, and keeps the record of it.
"""


def everybody(hosts: Hosts, at: Callable[[str], Line | None]) -> Enter:
    """Lets in everybody who asks for us by a name that is welcome, at the addresses of lines."""

    def enter(path: str, head: Head, source: str) -> Entry | None:
        line = at(path) if hosts.welcomes(head.given.get(b"host"), head.given.get(b"origin")) else None
        return None if line is None else Entry(line, None)

    return enter


class Shortcut:
    """Knows the heads that were let in, and checks each request again; whatever is odd is left to the app."""

    def __init__(self, enter: Enter) -> None:
        self._enter = enter
        self._heads = Heads()
        self.is_open = is_open()

    def reply(self, data: bytes, source: str) -> Reply | None:
        """What answers the one request that the data is; None where the app must."""
        found = self._heads.find(data)
        if found is None:
            return None
        known, body = found
        entry = self._enter(known.path, known.head, source)
        return None if entry is None else reply(known.head, body, *entry)

    def learn(self, data: bytes, method: bytes, target: bytes, headers: list[Header], source: str) -> None:
        """Remember the head at the beginning of the data, unless it is that of a stranger."""
        read = self._heads.read(data, method, target, headers)
        if read is not None and self._enter(read[1].path, read[1].head, source) is not None:
            self._heads.keep(*read)
