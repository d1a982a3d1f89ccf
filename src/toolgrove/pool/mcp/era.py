"""The two eras of the protocol: one with a handshake, one where every request says it all."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Protocol

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from toolgrove.pool.mcp.jsonrpc import Message

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
CLIENT = {"name": "toolgrove", "version": version("toolgrove")}
_META = "io.modelcontextprotocol/"
_TRACE = TraceContextTextMapPropagator()


class Party(Protocol):
    """For whom a request is made: what it wants to hear, and which kinds of question it answers."""

    @property
    def log_level(self) -> str | None: ...

    @property
    def modes(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Era:
    """What is spoken with a server: the version, and what each request carries because of it."""

    version: str
    modern: bool

    def params(self, params: Message, token: int | None = None, party: Party | None = None) -> Message:
        """The parameters of a request with its envelope; `token` asks for progress."""
        meta: Message = {} if token is None else {"progressToken": token}
        if self.modern:
            meta |= {
                f"{_META}protocolVersion": self.version,
                f"{_META}clientInfo": CLIENT,
                f"{_META}clientCapabilities": {} if party is None else capabilities(party.modes),
            }
            if party is not None and party.log_level is not None:
                meta[f"{_META}logLevel"] = party.log_level
        if trace.get_current_span().get_span_context().is_valid:
            _TRACE.inject(meta)
        return {**params, "_meta": meta} if meta else params

    def headers(self, method: str, name: str | None = None) -> dict[str, str]:
        """What HTTP mirrors from the body."""
        headers = {"mcp-protocol-version": self.version}
        if self.modern:
            headers["mcp-method"] = method
            if name is not None:
                headers["mcp-name"] = header_value(name)
        return headers


MODERN_ERA = Era(version=MODERN, modern=True)


def opening(*, elicitation: bool) -> Message:
    """The parameters of `initialize`."""
    offered = capabilities(("form", "url") if elicitation else ())
    return {"protocolVersion": HANDSHAKE[-1], "capabilities": offered, "clientInfo": CLIENT}


def capabilities(modes: Iterable[str]) -> Message:
    """What a server may ask of us: questions of these kinds, and nothing else."""
    asked: Message = {mode: {} for mode in modes}
    return {"elicitation": asked} if asked else {}


_PLAIN = re.compile(r"[\x20-\x7e]*")
_WRAPPED = re.compile(r"=\?base64\?.*\?=")


def header_value(text: str) -> str:
    """A text as a header carries it; what would not survive the way is wrapped."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


Mirrors = tuple[tuple[tuple[str, ...], str], ...]


def mirrors(schema: Mapping[str, Any]) -> Mirrors:
    """Which arguments a tool wants to see as headers too: their path and the header's name."""
    return tuple(_marked(schema, ()))


def _marked(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if not isinstance(schema, Mapping) or len(path) > 32:
        return
    name = schema.get("x-mcp-header")
    if path and isinstance(name, str):
        yield path, f"mcp-param-{name.lower()}"
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for key, inner in properties.items():
            yield from _marked(inner, (*path, str(key)))


def mirrored(wanted: Mirrors, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The headers that repeat such arguments for one call."""
    for path, header in wanted:
        value: Any = arguments
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            yield header, "true" if value else "false"
        elif isinstance(value, str | int | float):
            yield header, header_value(str(value))
