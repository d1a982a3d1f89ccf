"""What the tests of HTTP tools share: an upstream that counts, and a hand that calls a source without a gate."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc

from grove_kit import ManualClock
from toolgrove.call import Chain
from toolgrove.call.scrub import ScrubStep
from toolgrove.config import HttpToolConfig, SecretConfig
from toolgrove.errors import GroveError
from toolgrove.pool.http import HttpSource, Network
from toolgrove.pool.secrets import Secrets
from toolgrove.types import Call, Caller, Result, Tool

DEADLINE = 20.0


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request as it came over the wire."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Send = Callable[[bytes], Awaitable[None]]
Reply = Callable[[Seen, Send], Awaitable[None]]


@dataclass
class Upstream:
    """A server that keeps every request, and how many connections brought them."""

    reply: Reply
    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, stream: anyio.abc.SocketStream) -> None:
        self.connections += 1
        async with stream:
            try:
                while (seen := await _read(stream)) is not None:
                    self.seen.append(seen)
                    await self.reply(seen, stream.send)
            except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError):
                return


async def _read(stream: anyio.abc.SocketStream) -> Seen | None:
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            data += await stream.receive()
        except anyio.EndOfStream:
            return None
    head, _, body = data.partition(b"\r\n\r\n")
    line, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += await stream.receive()
    return Seen(method=method, target=target, headers=headers, body=body)


def answer(
    status: int = 200, body: bytes = b"{}", content_type: str | None = "application/json", **headers: str
) -> bytes:
    """A whole response; header names are written with underscores."""
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
    lines += [f"content-type: {content_type}"] if content_type is not None else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def always(response: bytes) -> Reply:
    async def reply(seen: Seen, send: Send) -> None:
        await send(response)

    return reply


def by_path(table: Mapping[str, bytes]) -> Reply:
    async def reply(seen: Seen, send: Send) -> None:
        await send(table.get(seen.target, answer(404)))

    return reply


@asynccontextmanager
async def upstream(reply: Reply | bytes, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Upstream]:
    server = Upstream(reply if callable(reply) else always(reply))
    listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    server.port = listener.extra(anyio.abc.SocketAttribute.local_port)
    with anyio.fail_after(DEADLINE):
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, server.handle)
            try:
                yield server
            finally:
                tasks.cancel_scope.cancel()


class Resolver:
    """Names lead where the test says, one answer after the other; the last one stays."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def network(*answers: Sequence[str]) -> Network:
    return Network(resolve=Resolver(*answers))


def no_secrets(**environ: str) -> Secrets:
    return Secrets({}, environ=environ)


def scoped(scopes: Mapping[str, Sequence[str]], **environ: str) -> Secrets:
    """Secrets of which each names the tools that may use it."""
    sections = {name: SecretConfig(tools=tuple(tools)) for name, tools in scopes.items()}
    return Secrets(sections, environ=environ)


def source(
    name: str = "t", *, secrets: Secrets | None = None, network: Network | None = None, **entry: Any
) -> HttpSource:
    """A source that may reach this machine, unless told otherwise."""
    config = HttpToolConfig.model_validate({"allowPrivate": True, **entry})
    return HttpSource(name, config, secrets or no_secrets(), network=network, clock=ManualClock())


async def tools(source: HttpSource) -> dict[str, Tool]:
    """The ready tools of a source; one that is not ready fails the test with its reason."""
    offers = await source.discover()
    assert [offer.reason for offer in offers if offer.tool is None] == []
    return {offer.name: offer.tool for offer in offers if offer.tool is not None}


async def call(source: HttpSource, arguments: dict[str, Any] | None = None, tool: str | None = None) -> Result:
    """Call a tool as if every step of the gate had let it through."""
    found = await tools(source)
    return await invoke(source, found[tool or source.name], arguments)


async def invoke(source: HttpSource, tool: Tool, arguments: dict[str, Any] | None = None) -> Result:
    caller = Caller(agent="a", session="a", role="editor")
    result = await source.call(
        Call(id="c1", name=tool.spec.name, tool=tool, arguments=dict(arguments or {}), caller=caller)
    )
    json.dumps(result, allow_nan=False, ensure_ascii=False).encode()
    return result


async def scrubbed(source: HttpSource, secrets: Secrets, arguments: dict[str, Any]) -> Result:
    """The result of a call as the chain hands it on."""
    tool = (await tools(source))[source.name]
    caller = Caller(agent="a", session="a", role="editor")
    chain = Chain((ScrubStep(secrets),), source.call)
    return await chain(Call(id="c1", name=tool.spec.name, tool=tool, arguments=arguments, caller=caller))


async def failure(source: HttpSource, arguments: dict[str, Any] | None = None, tool: str | None = None) -> GroveError:
    """The error of a call that must fail."""
    try:
        result = await call(source, arguments, tool)
    except GroveError as error:
        json.dumps(error.to_json(), allow_nan=False, ensure_ascii=False).encode()
        return error
    raise AssertionError(f"the call succeeded: {result}")


def inputs(*required: str, **properties: Any) -> dict[str, Any]:
    """A schema of string arguments, or of the given ones."""
    strings = {name: {"type": "string"} for name in required}
    return {"type": "object", "properties": strings | properties, "required": list(required)}
