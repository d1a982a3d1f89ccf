"""What the parts of Toolgrove say to each other; knows no tree, no pool and no transport."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Arguments = dict[str, Any]
Result = dict[str, Any]
Schema = Mapping[str, Any]
Role = Literal["reader", "editor"]
Concurrency = Literal["tree", "node"]
Kind = Literal["builtin", "extension", "mcp", "http"]


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
    """Who calls, how deep in a chain of sub-agents, and what that agent may do."""

    agent: str
    session: str
    depth: int = 0
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
    """A tool as the chain runs it.

    `definition` is the hash of all that its source says about it, `approval` the rule of the source by which
    every call needs one. `mutates` may rest on a foreign annotation only where that takes a freedom away.
    """

    spec: ToolSpec
    source: Source
    mutates: bool
    kind: Kind = "builtin"
    own_name: str = ""
    definition: str = ""
    approval: str | None = None
    targets: tuple[str, ...] = ()


class Client(Protocol):
    """Whoever waits for the result: hears of progress and, where there is a person, can be asked."""

    async def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None: ...


class Ceiling(Protocol):
    """The most that an agent which another one spawns can have."""

    @property
    def agent(self) -> str: ...

    def covers(self, name: str) -> bool: ...

    def mark(self) -> str:
        """A text that tells this ceiling from others."""


@dataclass(kw_only=True, slots=True)
class Call:
    """One call on its way through the chain.

    `approval` is the rule by which it needs one; `receipt` the hash of the resolution that it rests on;
    `content` the MCP content blocks of a result, where its source speaks MCP; `error` what it failed with.
    """

    id: str
    name: str
    tool: Tool | None
    arguments: Arguments
    caller: Caller
    approval: str | None = None
    receipt: str = ""
    ceiling: Ceiling | None = None
    client: Client | None = None
    content: list[dict[str, Any]] | None = None
    error: Mapping[str, Any] | None = None
    idempotency: IdempotencyClaim | None = None
    settle: Settle | None = None
    settled: bool = False
    replayed: bool = False
    targets: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    started: float = 0.0
    duration: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class IdempotencyClaim:
    """The key of a call and the hash of what it asks for."""

    key: str
    request: str


Settle = Callable[["Call", Result, Any], Awaitable[None]]
Next = Callable[[Call], Awaitable[Result]]
Step = Callable[[Call, Next], Awaitable[Result]]


class Source(Protocol):
    """Where tools come from; `call` runs one that the chain let through.

    It returns the result, or raises a GroveError that says what to do next.
    """

    @property
    def name(self) -> str: ...

    async def call(self, call: Call) -> Result: ...


class Clock(Protocol):
    """Wall time for records, monotonic time for durations and windows."""

    def wall(self) -> float: ...

    def monotonic(self) -> float: ...


class SystemClock:
    """The machine's own clock."""

    wall = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
