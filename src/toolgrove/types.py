"""What the parts of Toolgrove say to each other; knows no tree, no pool and no transport."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Arguments = dict[str, Any]
Result = dict[str, Any]
Schema = Mapping[str, Any]
Role = Literal["reader", "editor"]
Concurrency = Literal["tree", "node"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotations:
    """What a tool does to the world; the names are apcore's, so that one mapper serves both."""

    readonly: bool = False
    destructive: bool = False
    idempotent: bool = False
    requires_approval: bool = False
    open_world: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSpec:
    """A tool as an agent sees it."""

    name: str
    description: str
    input_schema: Schema
    output_schema: Schema
    annotations: Annotations
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who calls, and what that agent may do."""

    agent: str
    session: str
    role: Role = "reader"
    read_only: bool = False
    write_root: str | None = None
    concurrency: Concurrency = "tree"

    @property
    def may_write(self) -> bool:
        """Whether any mutating tool is open to this caller."""
        return self.role == "editor" and not self.read_only


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A tool as the chain runs it; `mutates` is the operator's word, never a foreign annotation."""

    spec: ToolSpec
    source: Source
    mutates: bool
    targets: tuple[str, ...] = ()
    gate: WriteGate | None = None


@dataclass(kw_only=True, slots=True)
class Call:
    """One call on its way through the chain."""

    id: str
    name: str
    tool: Tool | None
    arguments: Arguments
    caller: Caller
    idempotency: IdempotencyClaim | None = None
    settle: Settle | None = None
    settled: bool = False
    replayed: bool = False
    targets: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    started: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class IdempotencyClaim:
    """The key of a call and the hash of what it asks for."""

    key: str
    request: str


Settle = Callable[["Call", Result, Any], Awaitable[None]]
Next = Callable[[Call], Awaitable[Result]]
Step = Callable[[Call, Next], Awaitable[Result]]


class Source(Protocol):
    """Where tools come from; `call` runs one that the chain let through."""

    @property
    def name(self) -> str: ...

    def tools(self) -> Sequence[Tool]: ...

    async def call(self, call: Call) -> Result: ...


class WriteGate(Protocol):
    """Lets one writer at a time through, and only with a current version."""

    def writing(self, call: Call) -> AbstractAsyncContextManager[None]: ...


class Clock(Protocol):
    """Wall time for records, monotonic time for durations and windows."""

    def wall(self) -> float: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's own clock."""

    wall = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
