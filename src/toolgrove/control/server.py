"""Answers commands of this machine, and serves clients over stdio that are carried here."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream

from toolgrove.control import note as notes
from toolgrove.control.note import Note
from toolgrove.control.place import UNIX, loopback_socket, unix_socket
from toolgrove.control.wire import Wire
from toolgrove.errors import GroveError
from toolgrove.types import Client

log = logging.getLogger("toolgrove.control")
MAX_CONNECTIONS = 256
ANSWERING = 0.6
"""Seconds of those that calls have in which the ones that were cut off are answered."""
_LOOK = 0.02

Answerer = Callable[[str, dict[str, Any], Client], Any]
"""Does what a command asks for: an awaitable of the result, or an async iterator of events."""


class Carried(Protocol):
    """Serves a client that talks over a connection as others do over stdin and stdout."""

    def check(self, agent: str) -> None:
        """Raise what stands against serving this agent."""

    def serve(self, agent: str, connection: socket.socket, stopped: asyncio.Event) -> Awaitable[None]:
        """Serve until either side ends."""


class Control:
    """The control socket of one project; whoever can open it is the user that the gateway runs as."""

    def __init__(self, answer: Answerer, carried: Carried, *, cut_off: Callable[[], None]) -> None:
        self._answer, self._carried, self._cut_off = answer, carried, cut_off
        self.instance = secrets.token_hex(16)
        self._token = ""
        self._calls = 0
        self._open = 0
        self._stopped = asyncio.Event()

    @asynccontextmanager
    async def listening(self, folder: Path, file: Path, address: str, *, unix: bool = UNIX >= 0) -> AsyncIterator[Note]:
        """Answer commands, and leave the note that leads them here."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        async with AsyncExitStack() as stack:
            listening = _listening(stack, folder, unix=unix)
            listening.setblocking(False)
            note = Note(file=str(file), address=address, pid=os.getpid(), instance=self.instance)
            if listening.family == UNIX:
                note = note._replace(socket=listening.getsockname())
            else:
                self._token = secrets.token_urlsafe(32)
                notes.write_token(folder, self._token)
                note = note._replace(port=listening.getsockname()[1])
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(self._accept, listening, tasks)
            notes.write(folder, note)
            try:
                yield note
            finally:
                notes.remove(folder, self.instance)
                self._stopped.set()
                tasks.cancel_scope.cancel()

    async def drain(self, seconds: float) -> None:
        """Take nothing new, and let what is under way end; what does not is cut off in time to be told so."""
        self._stopped.set()
        for seconds_now, last in ((max(0.0, seconds - ANSWERING), False), (ANSWERING, True)):
            with anyio.move_on_after(seconds_now):
                while self._calls:  # noqa: ASYNC110 (a look is enough for so short a time)
                    await anyio.sleep(_LOOK)
            if self._calls and not last:
                self._cut_off()

    async def _accept(self, listening: socket.socket, tasks: anyio.abc.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listening)
            connection.setblocking(False)
            if self._open >= MAX_CONNECTIONS or not _is_ours(connection):
                connection.close()
                continue
            tasks.start_soon(self._attend, connection)

    async def _attend(self, connection: socket.socket) -> None:
        self._open += 1
        try:
            with connection:
                await self._take(Wire(connection))
        except (OSError, ValueError):  # gone, or no command of ours: nobody is there to be told
            pass
        except Exception:
            log.exception("a command was not answered")
        finally:
            self._open -= 1

    async def _take(self, wire: Wire) -> None:
        asked = json.loads(await wire.line())
        if not isinstance(asked, dict) or not secrets.compare_digest(str(asked.get("token", "")), self._token):
            return
        do, given = asked.get("do"), asked.get("with")
        if asked.get("instance") != self.instance or not isinstance(do, str) or not isinstance(given, dict):
            await wire.send({"stale": True})
        elif do == "hello":
            await wire.send({"result": self.instance})
        elif self._stopped.is_set():
            await wire.send({"error": {"code": "internal", "message": "The gateway is shutting down. Try again soon."}})
        elif do == "stdio":
            await self._carry(wire, str(given.get("agent")))
        else:
            await self._do(wire, do, given)

    async def _carry(self, wire: Wire, agent: str) -> None:
        try:
            self._carried.check(agent)
        except GroveError as error:
            await wire.send(error.to_json())
            return
        await wire.send({"result": agent})
        self._calls += 1
        try:
            await self._carried.serve(agent, wire.connection, self._stopped)
        finally:
            self._calls -= 1

    async def _do(self, wire: Wire, do: str, given: dict[str, Any]) -> None:
        """Do it while whoever asked is there; their answers to questions come in between."""
        said, hear = anyio.create_memory_object_stream[Any](16)
        async with anyio.create_task_group() as tasks:

            async def listen() -> None:
                with suppress(OSError, ValueError):
                    while line := await wire.line():
                        await said.send(json.loads(line))
                tasks.cancel_scope.cancel()

            tasks.start_soon(listen)
            await wire.send(await self._answered(do, given, _Remote(wire, hear), wire))
            tasks.cancel_scope.cancel()
        said.close()
        hear.close()

    async def _answered(self, do: str, given: dict[str, Any], client: Client, wire: Wire) -> Mapping[str, Any]:
        try:
            answering = self._answer(do, given, client)
            if hasattr(answering, "__aiter__"):
                async for event in answering:
                    await wire.send({"event": event})
                return {"result": None}
            self._calls += 1
            try:
                return {"result": await answering}
            finally:
                self._calls -= 1
        except GroveError as error:
            return error.to_json()
        except (OSError, ValueError) as problem:
            return {"error": {"code": "invalid_argument", "message": str(problem)}}
        except Exception:
            log.exception("the command %s failed", do)
            return {"error": {"code": "internal", "message": "It failed in the gateway; the gateway's log says why."}}


class _Remote:
    """The person at the command's terminal, as a call in the gateway sees them."""

    def __init__(self, wire: Wire, hear: MemoryObjectReceiveStream[Any]) -> None:
        self._wire, self._hear = wire, hear

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self._wire.send({"progress": [progress, total, message]})

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        await self._wire.send({"ask": [message, schema]})
        return (await self._hear.receive()).get("answer")


def _listening(stack: AsyncExitStack, folder: Path, *, unix: bool) -> socket.socket:
    """A Unix socket, or loopback where there is none: not every system has them, nor every disk."""
    if unix:
        with suppress(OSError):
            return stack.enter_context(unix_socket(folder))
    return stack.enter_context(loopback_socket())


def _is_ours(connection: socket.socket) -> bool:
    """Whether the other side runs as the same user, or as root; where the system cannot say, the file's mode counts."""
    if sys.platform == "win32" or connection.family != UNIX or not hasattr(socket, "SO_PEERCRED"):
        return True
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return user in (os.geteuid(), 0)
