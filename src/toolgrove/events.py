"""What happened, published to the stream of a run and to listeners; nothing waits for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol

from pydantic.alias_generators import to_camel, to_snake

from toolgrove.notation.times import to_milliseconds

log = logging.getLogger("toolgrove")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Timestamped:
    timestamp: float

    def to_json(self) -> dict[str, Any]:
        """The event as a stream carries it: `type`, then its facts; what is not known is left out."""
        kind, keys = _spelt(type(self))
        facts: dict[str, Any] = {"type": kind}
        for name, key in keys:
            value = getattr(self, name)
            if value is not None and key != "timestamp":
                facts[key] = list(value) if isinstance(value, tuple) else value
        return {**facts, "timestamp": to_milliseconds(self.timestamp)}


_spellings: dict[type[Any], tuple[str, list[tuple[str, str]]]] = {}


def _spelt(kind: type[Any]) -> tuple[str, list[tuple[str, str]]]:
    """The name of a kind of event and of its facts, as a stream writes them; worked out once."""
    if kind not in _spellings:
        derived = [name for name in ("agent", "depth") if isinstance(getattr(kind, name, None), property)]
        names = [*derived, *(field.name for field in fields(kind))]
        _spellings[kind] = (to_snake(kind.__name__), [(name, to_camel(name)) for name in names])
    return _spellings[kind]


@dataclass(frozen=True, kw_only=True, slots=True)
class _OfAgent(_Timestamped):
    """Whose doing it is: `chain` names the agents from the outermost to this one, `run_id` the outermost run."""

    chain: tuple[str, ...]
    run_id: str
    parent_call_id: str | None = None

    @property
    def agent(self) -> str:
        return self.chain[-1]

    @property
    def depth(self) -> int:
        """How many agents are above it."""
        return len(self.chain) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class _OfCall(_OfAgent):
    """One call; `by` is who made it for the agent, where the agent did not call itself."""

    call_id: str
    tool: str
    by: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolStarted(_OfCall):
    """A call of a run, or of a sub-agent in it, is on its way."""

    receipt: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolProgress(_OfCall):
    """A call reports how far it is."""

    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSucceeded(_OfCall):
    """A call returned its result, which only the stream of its own run carries."""

    receipt: str = ""
    replayed: bool = False
    duration: float = 0.0
    result: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFailed(_OfCall):
    """A call was refused or failed; `error` says why, and whether trying again can help.

    Where a tool of an MCP server says itself that it failed, the stream of its own run carries that `result`.
    A sub-agent that does not exist, or whose run failed, is reported so too: as a `spawn_agents` call of its own.
    """

    error: Mapping[str, Any]
    receipt: str = ""
    duration: float = 0.0
    result: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Text(_OfAgent):
    """The model of a run, or of a sub-agent in it, says something; a long answer comes in pieces."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelUsed(_OfAgent):
    """How many tokens a model read and wrote for one answer; a run adds them up and tells the sum at its end."""

    model: str
    input: int
    output: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFinished(_OfAgent):
    """The last event of every run, exactly once; `delegated` counts the calls of its sub-agents at any depth.

    `tool_calls` counts all of them. A run with a model has `usage` as well, and its answer as `output`, or `error`.
    """

    receipt: str
    outcome: Literal["success", "failure"]
    output: str | None = None
    error: Mapping[str, Any] | None = None
    succeeded: int
    failed: int
    delegated: Mapping[str, int]
    tool_calls: int
    usage: Mapping[str, Mapping[str, int]] | None = None
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeChanged(_OfCall):
    """A commit is in the journal and visible to every agent; `elsewhere` where another replica made it."""

    node_ids: tuple[str, ...]
    elsewhere: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolChanged(_Timestamped):
    """The next resolution may give agents other tools."""

    revision: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigurationRead(_Timestamped):
    """The project file was read again; one that is not accepted leaves the last good one in force."""

    accepted: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _OfApproval(_OfAgent):
    """About a call that needs a person; whose it is, and in which run, is that of the call that asked first."""

    approval_id: str
    tool: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalRequested(_OfApproval):
    """A call waits in the inbox for a person; `rule` is why, `asked_by` who acted as the agent if not it itself."""

    rule: str
    receipt: str = ""
    asked_by: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalDecided(_OfApproval):
    """A person decided about a call; a decision made in another process is published when the call comes back."""

    approved: bool
    by: str
    reason: str = ""
    lasts: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalRevoked(_OfApproval):
    """A person took back an approval that was not used up."""

    by: str


Event = (
    ToolStarted
    | ToolProgress
    | ToolSucceeded
    | ToolFailed
    | Text
    | ModelUsed
    | RunFinished
    | TreeChanged
    | PoolChanged
    | ConfigurationRead
    | ApprovalRequested
    | ApprovalDecided
    | ApprovalRevoked
)
Listener = Callable[[Event], None]
Tally = Callable[[str, str, float], None]
"""Counts a call that succeeded: of which agent and tool, and how many seconds it took."""


class Heard(Protocol):
    """What can be listened to."""

    def listen(self, listener: Listener, *kinds: type[Event]) -> Callable[[], None]: ...

    def tally(self, tally: Tally) -> None: ...


class Listeners:
    """All who hear of events; what a listener does with one never becomes part of a call.

    Most calls succeed, and most who want to know that only count them, which takes no event.
    """

    def __init__(self) -> None:
        self._listeners: list[tuple[Listener, tuple[type[Event], ...]]] = []
        self._by_kind: dict[type[Event], tuple[Listener, ...]] = {}
        self._tallies: list[Tally] = []

    def add(self, listener: Listener, *kinds: type[Event]) -> Callable[[], None]:
        """Have this listener called for every event from now on, or for those kinds; call the result to end that."""
        entry = (listener, kinds)
        self._listeners.append(entry)
        self._by_kind = {}

        def end() -> None:
            self._listeners.remove(entry)
            self._by_kind = {}

        return end

    def tally(self, tally: Tally) -> None:
        """Have calls that succeed counted."""
        self._tallies.append(tally)

    def hear(self, kind: type[Event]) -> bool:
        """Whether anybody wants to hear of such an event."""
        return bool(self._who_hear(kind))

    def count(self, agent: str, tool: str, seconds: float) -> None:
        """Have a call counted that succeeded."""
        for tally in self._tallies:
            try:
                tally(agent, tool, seconds)
            except Exception:
                log.exception("a tally failed")

    def publish(self, event: Event) -> None:
        """Hand an event to every listener; one that fails is logged, and the others hear of it all the same."""
        for listener in self._who_hear(type(event)):
            try:
                listener(event)
            except Exception:
                log.exception("a listener failed")

    def _who_hear(self, kind: type[Event]) -> tuple[Listener, ...]:
        who = self._by_kind.get(kind)
        if who is None:
            who = tuple(listener for listener, kinds in self._listeners if not kinds or kind in kinds)
            self._by_kind[kind] = who
        return who
