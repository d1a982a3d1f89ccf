"""What happened, told outwards; listeners hear it, nothing waits for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSucceeded:
    """A call returned its result."""

    call_id: str
    tool: str
    agent: str
    timestamp: float
    replayed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFailed:
    """A call was refused or failed; `error` is what the agent saw."""

    call_id: str
    tool: str
    agent: str
    timestamp: float
    error: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeChanged:
    """A commit is in the journal and visible to every agent."""

    agent: str
    tool: str
    node_ids: tuple[str, ...]
    timestamp: float


Event = ToolSucceeded | ToolFailed | TreeChanged
Listener = Callable[[Event], None]
