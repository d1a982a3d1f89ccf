"""Asks a gateway to do something, and hears how it goes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolgrove.control.door import first_line, knock
from toolgrove.control.note import Note
from toolgrove.control.wire import Wire
from toolgrove.errors import GroveError

if TYPE_CHECKING:
    from toolgrove.types import Client

_KINDS = {
    code: type("Told", (GroveError,), {"code": code})
    for code in ("invalid_argument", "not_found", "forbidden", "conflict", "rate_limited", "internal")
}
GONE = "The gateway ended before it answered; what it was asked may have been done. 'toolgrove audit' tells."


class Gateway(NamedTuple):
    """A gateway that was found, and the state folder where."""

    folder: Path
    note: Note

    async def ask(self, what: str, client: Client | None = None, **given: Any) -> Any:
        """What the gateway answers; meanwhile the client hears of progress, and is asked."""
        async with self._line(what, given) as wire:
            while True:
                said = await _said(wire)
                if "result" in said:
                    return said["result"]
                if "progress" in said and client is not None:
                    await client.progress(*said["progress"])
                elif "ask" in said:
                    await wire.send({"answer": await client.elicit(*said["ask"]) if client is not None else None})

    async def follow(self, what: str, **given: Any) -> AsyncIterator[Any]:
        """What the gateway tells, until it has nothing more to tell."""
        async with self._line(what, given) as wire:
            while "event" in (said := await _said(wire)):
                yield said["event"]

    @asynccontextmanager
    async def _line(self, what: str, given: dict[str, Any]) -> AsyncIterator[Wire]:
        with knock(self.note) as connection:
            connection.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(connection, first_line(self.folder, self.note, what, **given))
            yield Wire(connection)


async def _said(wire: Wire) -> dict[str, Any]:
    """The next message; what went wrong there goes wrong here."""
    try:
        line = await wire.line()
    except ConnectionError:
        line = b""
    if not line:
        raise GroveError(GONE)
    said: dict[str, Any] = json.loads(line)
    if "error" in said:
        facts = dict(said["error"])
        raise _KINDS.get(facts.pop("code"), GroveError)(facts.pop("message"), **facts)
    return said
