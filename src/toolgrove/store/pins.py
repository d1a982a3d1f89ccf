"""Pins: the definition of a foreign tool that was accepted, and the one last seen if it differs."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from toolgrove.errors import Conflict, NotFound, closest
from toolgrove.types import Clock, SystemClock

FIRST_USE = "first use"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """What was accepted for one tool of one server, and what the server says now if that is something else."""

    server: str
    own_name: str
    hash: str
    definition: Mapping[str, Any]
    pinned_at: float
    pinned_by: str = FIRST_USE
    seen_hash: str = ""
    seen_definition: Mapping[str, Any] | None = None
    seen_at: float | None = None

    @property
    def changed(self) -> bool:
        """Whether the server now says something else than what was accepted."""
        return self.seen_definition is not None

    def diff(self) -> str:
        """What the server changed, line by line; empty if nothing."""
        if self.seen_definition is None:
            return ""
        name = f"{self.server}/{self.own_name}"
        lines = difflib.unified_diff(
            _lines(self.definition), _lines(self.seen_definition), f"{name} (pinned)", f"{name} (seen)", lineterm=""
        )
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The pin as a person's tools read it."""
        return {
            "server": self.server,
            "tool": self.own_name,
            "state": "changed" if self.changed else "pinned",
            "hash": self.hash,
            "pinnedAt": self.pinned_at,
            "pinnedBy": self.pinned_by,
            "seenHash": self.seen_hash or None,
            "seenAt": self.seen_at,
            "diff": self.diff() or None,
        }


def _lines(definition: Mapping[str, Any]) -> list[str]:
    # ASCII, so that a character that cannot be seen shows as its escape.
    return json.dumps(definition, indent=2, sort_keys=True).splitlines()


class Pins(Protocol):
    """Keeps pins; a process that accepts one is heard by all that share the store."""

    def of(self, server: str) -> Mapping[str, Pin]: ...

    def list(self) -> Sequence[Pin]: ...

    def pin(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any], *, by: str = FIRST_USE) -> None:
        """Accept this very definition."""

    def saw(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any]) -> None:
        """Keep a definition that differs from the pinned one, until someone looks at it."""

    def accept(self, server: str, own_name: str, hash: str, *, by: str) -> Pin:
        """Pin the definition last seen, provided that it is the one with this hash."""

    def forget(self, server: str, own_name: str) -> None:
        """Drop a pin: the next definition counts as first use."""


class PinNotFound(NotFound):
    """No tool of that server has a pin."""

    def __init__(self, *, server: str, own_name: str, known: Sequence[str]) -> None:
        name = f"{server}/{own_name}"
        near = closest(name, known)
        hint = f" Did you mean {near!r}?" if near else ""
        super().__init__(f"There is no pin for {name!r}.{hint} 'toolgrove pins' lists all.", reason="pin")


class PinMoved(Conflict):
    """The definition to accept is not the one that the server has now."""

    def __init__(self, *, server: str, own_name: str, given: str, seen: str) -> None:
        now = f"the server now offers {seen}" if seen else "nothing waits to be accepted"
        super().__init__(
            f"{server}/{own_name} has no definition {given} to accept: {now}. Look at the difference again.",
            reason="pin_moved",
            seen=seen or None,
        )


def seen(pin: Pin, hash: str, definition: Mapping[str, Any], now: float) -> Pin:
    """The pin with what the server says at this moment."""
    if hash == pin.hash:
        return replace(pin, seen_hash="", seen_definition=None, seen_at=None)
    return replace(pin, seen_hash=hash, seen_definition=definition, seen_at=now)


def accepted(pin: Pin, hash: str, by: str, now: float) -> Pin:
    """The pin moved to the definition that was seen; hashes may be shortened, since people type them."""
    definition = pin.seen_definition
    if definition is None or len(hash) < 8 or not pin.seen_hash.startswith(hash):
        raise PinMoved(server=pin.server, own_name=pin.own_name, given=hash, seen=pin.seen_hash)
    return Pin(
        server=pin.server, own_name=pin.own_name, hash=pin.seen_hash, definition=definition, pinned_at=now, pinned_by=by
    )


class MemoryPins:
    """Pins of a process that may forget."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._pins: dict[str, dict[str, Pin]] = {}

    def of(self, server: str) -> Mapping[str, Pin]:
        """The pins of a server by its own tool names."""
        return dict(self._pins.get(server, {}))

    def list(self) -> Sequence[Pin]:
        """Every pin, by server and name."""
        return [self._pins[server][name] for server in sorted(self._pins) for name in sorted(self._pins[server])]

    def pin(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any], *, by: str = FIRST_USE) -> None:
        """Accept this very definition."""
        self._keep(
            Pin(
                server=server,
                own_name=own_name,
                hash=hash,
                definition=definition,
                pinned_at=self._clock.wall(),
                pinned_by=by,
            )
        )

    def saw(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any]) -> None:
        """Keep a definition that differs from the pinned one, until someone looks at it."""
        self._keep(seen(self._get(server, own_name), hash, definition, self._clock.wall()))

    def accept(self, server: str, own_name: str, hash: str, *, by: str) -> Pin:
        """Pin the definition last seen, provided that it is the one with this hash."""
        pin = accepted(self._get(server, own_name), hash, by, self._clock.wall())
        self._keep(pin)
        return pin

    def forget(self, server: str, own_name: str) -> None:
        """Drop a pin: the next definition counts as first use."""
        self._get(server, own_name)
        del self._pins[server][own_name]

    def _keep(self, pin: Pin) -> None:
        self._pins.setdefault(pin.server, {})[pin.own_name] = pin

    def _get(self, server: str, own_name: str) -> Pin:
        pin = self._pins.get(server, {}).get(own_name)
        if pin is None:
            raise PinNotFound(server=server, own_name=own_name, known=[f"{p.server}/{p.own_name}" for p in self.list()])
        return pin
