"""What a source offers to the pool: each tool with its standing, and the source's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from toolgrove.types import Call, Kind, Result, Tool

Standing = Literal["ready", "unvalidated", "quarantined", "pending", "unavailable", "masked"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """One tool of a source. Only a ready one has a `tool`; any other has the reason why not.

    `mentions` are the words in a foreign definition that could be names of tools, each with its place. One that is
    masked is left out by the operator and holds no name. `also` are names that it would have without the operator's
    word, by which it can be forbidden but not given; `formerly` is an older spelling, by which it can be both.
    """

    name: str
    own_name: str
    source: str
    kind: Kind
    standing: Standing = "ready"
    reason: str = ""
    tool: Tool | None = None
    mentions: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    also: tuple[str, ...] = ()
    formerly: str = ""


class OfferedDefinition(NamedTuple):
    """A prompt or a resource as its server lists it, looked through; `mentions` are as those of a tool."""

    definition: dict[str, Any]
    mentions: Mapping[str, str]


class Unavailable(Exception):
    """A source cannot say what it offers; the message is fit for the receipt."""


class PoolSource(Protocol):
    """A source in the pool.

    `run` keeps it alive until it is cancelled, calls `changed` whenever `discover` may answer otherwise, and never
    raises; all sources are cancelled at once, so each may take a moment to end what it started. `discover` raises
    Unavailable; the pool bounds its time. `last_known` names the tools of a source that did not answer yet.
    """

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    async def run(self, changed: Callable[[], None]) -> None: ...

    async def discover(self) -> Sequence[Offer]: ...

    def last_known(self) -> Sequence[Offer]: ...

    async def call(self, call: Call) -> Result: ...


@runtime_checkable
class Noticing(Protocol):
    """A source that can need something of the operator, also while it is up."""

    @property
    def notice(self) -> str:
        """What the operator should do though the source answers; empty if nothing."""

    @property
    def takes_login(self) -> bool:
        """Whether a person can log in to it."""


@runtime_checkable
class Speaking(Protocol):
    """A source that says something of its own: how it wants to be used, and what it logs."""

    @property
    def instructions(self) -> str:
        """Its word on how it wants to be used, for the operator to read; a model never sees it."""

    @property
    def messages(self) -> Mapping[str, int]:
        """How much it logged, by level."""


@runtime_checkable
class Restarting(Protocol):
    """A source that is connected to something which can be started again."""

    @property
    def last_words(self) -> Sequence[str]:
        """The last lines of its error output, fit for the operator's eyes."""

    def restart(self) -> None:
        """Connect anew, at once."""


@runtime_checkable
class Distrusting(Protocol):
    """A source whose definitions are somebody else's: those that speak of the tools of others wait for a person."""

    def distrust(self, flags: Mapping[str, tuple[str, ...]]) -> bool:
        """Hear, by own name, what is suspicious; whether that is news, so that it must be asked again."""
