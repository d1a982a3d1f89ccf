"""What happened, told outwards: to the stream of a run and to listeners, for whom nothing waits."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pydantic.alias_generators import to_camel, to_snake

log = logging.getLogger("toolgrove")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    timestamp: float

    def to_json(self) -> dict[str, Any]:
        """The event as a stream carries it: `type`, then its facts; what is not known is left out."""
        kind, keys = _spelt(type(self))
        form: dict[str, Any] = {"type": kind}
        for name, key in keys:
            value = getattr(self, name)
            if value is not None and key != "timestamp":
                form[key] = list(value) if isinstance(value, tuple) else value
        moment = datetime.datetime.fromtimestamp(self.timestamp, datetime.UTC)
        return {**form, "timestamp": moment.isoformat(timespec="milliseconds")}


_spellings: dict[type[Any], tuple[str, list[tuple[str, str]]]] = {}


def _spelt(kind: type[Any]) -> tuple[str, list[tuple[str, str]]]:
    """The name of a kind of event and of its facts, as a stream writes them; found out once."""
    if kind not in _spellings:
        keys = [(field.name, to_camel(field.name)) for field in fields(kind)]
        _spellings[kind] = (to_snake(kind.__name__), keys)
    return _spellings[kind]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolStarted(_Told):
    """A call of a run is on its way."""

    call_id: str
    tool: str
    agent: str
    receipt: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolProgress(_Told):
    """A call tells how far it is."""

    call_id: str
    tool: str
    agent: str
    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSucceeded(_Told):
    """A call returned its result, which only the stream of its own run carries."""

    call_id: str
    tool: str
    agent: str
    receipt: str = ""
    replayed: bool = False
    duration: float = 0.0
    result: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFailed(_Told):
    """A call was refused or failed; `error` is what the agent saw, and whether trying again can help."""

    call_id: str
    tool: str
    agent: str
    error: Mapping[str, Any]
    receipt: str = ""
    duration: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFinished(_Told):
    """The last event of every run, exactly once."""

    agent: str
    receipt: str
    succeeded: int
    failed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeChanged(_Told):
    """A commit is in the journal and visible to every agent."""

    agent: str
    tool: str
    node_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolChanged(_Told):
    """The next resolution may give agents other tools."""

    revision: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalRequested(_Told):
    """A call waits in the inbox for a person; `rule` is why."""

    approval_id: str
    tool: str
    agent: str
    rule: str
    receipt: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalDecided(_Told):
    """A person decided about a call; one who decided in another process is heard of when the call comes back."""

    approval_id: str
    tool: str
    agent: str
    approved: bool
    by: str
    reason: str = ""


Event = (
    ToolStarted
    | ToolProgress
    | ToolSucceeded
    | ToolFailed
    | RunFinished
    | TreeChanged
    | PoolChanged
    | ApprovalRequested
    | ApprovalDecided
)
Listener = Callable[[Event], None]


class Listeners:
    """Whoever wants to hear of events; what one of them makes of an event never becomes part of a call."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def add(self, listener: Listener) -> None:
        """Tell this one as well from now on."""
        self._listeners.append(listener)

    def tell(self, event: Event) -> None:
        """Tell all of them."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                log.exception("a listener failed")
