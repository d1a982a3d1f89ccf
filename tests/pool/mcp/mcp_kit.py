"""What the tests of the MCP source share: real servers over both transports, and a hand to call their tools."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from ports import free_port
from toolgrove.call import Chain
from toolgrove.call.scrub import ScrubStep
from toolgrove.config import McpServerConfig, SecretConfig
from toolgrove.errors import GroveError
from toolgrove.pool.host import Resolve, resolve_host
from toolgrove.pool.mcp import McpSource
from toolgrove.pool.offer import Offer
from toolgrove.pool.secrets import Secrets
from toolgrove.store.state import MemoryPins
from toolgrove.types import Call, Caller, Client, Clock, Result, Tool
from waiting import DEADLINE, wait_until
from warm.command import Process, python

UPSTREAM = Path(__file__).with_name("sdk_upstream.py")
_STEP = 0.03
CALLER = Caller(agent="a", session="a", role="editor")


class Journal:
    """What a server wrote down since the test began."""

    def __init__(self, path: Path, start: int | None = None) -> None:
        self.path = path
        self._start = start if start is not None else path.stat().st_size if path.exists() else 0

    def of(self, kind: str) -> list[list[Any]]:
        text = self.path.read_bytes()[self._start :].decode() if self.path.exists() else ""
        lines = [json.loads(line) for line in text.splitlines()]
        return [line[1:] for line in lines if line[0] == kind]

    def calls(self) -> list[str]:
        return [name for (name,) in self.of("called")]

    def requests(self) -> list[tuple[str, dict[str, str]]]:
        return [(method, headers) for method, headers in self.of("request")]


@contextlib.contextmanager
def web(path: Path, port: int = 0, *more: str, program: Path = UPSTREAM) -> Iterator[int]:
    """The server over HTTP with its journal; the port where it listens."""
    port = port or free_port()
    with Process(python(str(program), str(path), str(port), *more), stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: _listens(port))
            yield port
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def over_http(port: int, **more: Any) -> dict[str, Any]:
    return {"url": f"http://127.0.0.1:{port}/mcp", **more}


def over_stdio(journal: Journal, **more: Any) -> dict[str, Any]:
    command, *arguments = python(str(UPSTREAM), str(journal.path))
    return {"command": command, "args": arguments, **more}


def script(code: str, **more: Any) -> dict[str, Any]:
    """A server of a few lines that needs no SDK."""
    return {"command": sys.executable, "args": ["-I", "-S", "-c", code], **more}


class Hand:
    """Calls the tools of one source as an agent that was resolved at one moment would, with nobody to refuse it."""

    def __init__(self, source: McpSource, secrets: Secrets) -> None:
        self.source = source
        self._chain = Chain((ScrubStep(secrets),), source.call)
        self.changes = 0
        self.offers: dict[str, Offer] = {}

    def changed(self) -> None:
        self.changes += 1

    async def resolve(self) -> dict[str, Offer]:
        """Look at what is offered; what is called from now on is what was seen here."""
        self.offers = {offer.own_name: offer for offer in await self.source.discover()}
        return self.offers

    def tool(self, own_name: str) -> Tool:
        tool = self.offers[own_name].tool
        assert tool is not None, self.offers[own_name]
        return tool

    async def ok(self, own_name: str, client: Client | None = None, **arguments: Any) -> Result:
        tool = self.tool(own_name)
        call = Call(id="c1", name=tool.spec.name, tool=tool, arguments=arguments, caller=CALLER, client=client)
        return await self._chain(call)

    async def refused(self, own_name: str, **arguments: Any) -> dict[str, Any]:
        try:
            result = await self.ok(own_name, **arguments)
        except GroveError as error:
            facts: dict[str, Any] = error.to_json()["error"]
            return {**facts, "retryable": error.retryable}
        raise AssertionError(f"it went well: {result}")

    async def text(self, own_name: str, **arguments: Any) -> str:
        return str((await self.ok(own_name, **arguments))["content"][0]["text"])


@asynccontextmanager
async def running(
    config: dict[str, Any],
    *,
    pins: MemoryPins | None = None,
    environ: Mapping[str, str] | None = None,
    scopes: Mapping[str, SecretConfig] | None = None,
    clock: Clock | None = None,
    name: str = "up",
    resolve: Resolve = resolve_host,
) -> AsyncIterator[Hand]:
    """A source that is being run, once it has answered; nothing in here may take longer than the deadline."""
    secrets = Secrets(scopes or {}, environ=os.environ if environ is None else environ)
    settings = McpServerConfig.model_validate(config)
    pins = pins or MemoryPins()
    hand = Hand(McpSource(name, settings, secrets=secrets, pins=pins, clock=clock, resolve=resolve), secrets)
    with anyio.fail_after(DEADLINE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hand.source.run, hand.changed)
            yield hand
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def ready(config: dict[str, Any], **options: Any) -> AsyncIterator[Hand]:
    """The same with its tools resolved, as soon as the server is up."""
    async with running(config, **options) as hand:
        await eventually_ready(hand)
        yield hand


async def eventually_ready(hand: Hand) -> None:
    """Resolve as soon as the server offers anything; one over HTTP may still be starting."""
    while True:
        with contextlib.suppress(Exception):
            if await hand.resolve():
                return
        await anyio.sleep(_STEP)


class Watcher:
    """A client that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, float | None, str | None]] = []

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append((progress, total, message))

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        raise AssertionError("nobody asks")
