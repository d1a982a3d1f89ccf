"""Pins: the definition of a foreign tool that was accepted, and the one that waits for a person if it differs."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from toolgrove.errors import PinMoved
from toolgrove.store.state.deeds import Deed

FIRST_USE = "first use"
PinState = Literal["pinned", "changed", "pending", "refused"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin:
    """What was accepted for one tool of one server, and what the server says now if that is something else.

    Without a `hash` nothing was ever accepted.
    """

    server: str
    own_name: str
    hash: str
    definition: Mapping[str, Any]
    pinned_at: float
    pinned_by: str = FIRST_USE
    seen_hash: str = ""
    seen_definition: Mapping[str, Any] | None = None
    seen_at: float | None = None
    refused_hash: str = ""
    refused_by: str = ""

    @property
    def changed(self) -> bool:
        """Whether the server now says something other than what was accepted."""
        return self.seen_definition is not None

    @property
    def state(self) -> PinState:
        """Whether a definition waits for a person, and of which kind it is."""
        if not self.changed:
            return "pinned"
        if self.refused_hash == self.seen_hash:
            return "refused"
        return "changed" if self.hash else "pending"

    def diff(self) -> str:
        """What the server changed, line by line: all of it where nothing was accepted, empty if nothing."""
        if self.seen_definition is None:
            return ""
        name = f"{self.server}/{self.own_name}"
        accepted = _lines(self.definition) if self.hash else []
        before = f"{name} ({'pinned' if self.hash else 'nothing accepted yet'})"
        lines = difflib.unified_diff(accepted, _lines(self.seen_definition), before, f"{name} (seen)", lineterm="")
        return "\n".join(lines)


def _lines(definition: Mapping[str, Any]) -> list[str]:
    # ASCII, so that a character that cannot be seen shows as its escape.
    return json.dumps(definition, indent=2, sort_keys=True).splitlines()


class Pins(Protocol):
    """Keeps pins; a process that accepts one is heard by all that share the store."""

    def of(self, server: str) -> Mapping[str, Pin]: ...

    def list(self) -> Sequence[Pin]: ...

    def knows(self, server: str) -> bool:
        """Whether the server was ever met."""

    def met(self, server: str) -> None:
        """Remember that the server gave a list, so that no later one is taken for the first."""

    def pin(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any], *, by: str = FIRST_USE) -> None:
        """Accept this very definition."""

    def saw(self, server: str, own_name: str, hash: str, definition: Mapping[str, Any]) -> None:
        """Keep a definition that differs from the pinned one, or is the first, until someone looks at it."""

    def withdraw(self, server: str, own_name: str) -> None:
        """Take an acceptance back that no person gave; the definition waits."""

    def accept(self, server: str, own_name: str, hash: str, *, by: str) -> Pin:
        """Pin the definition last seen, provided that it is the one with this hash."""

    def refuse(self, server: str, own_name: str, hash: str, *, by: str) -> Pin:
        """Keep the definition last seen out, provided that it is the one with this hash."""

    def forget(self, server: str, own_name: str, *, by: str = "") -> None:
        """Drop a pin: the next definition waits for a person."""


def unseen(server: str, own_name: str) -> Pin:
    """The pin of a tool of which nothing is accepted yet."""
    return Pin(server=server, own_name=own_name, hash="", definition={}, pinned_at=0.0)


def pin_deed(verb: Literal["accepted", "refused", "forgotten"], pin: Pin, *, by: str, at: float) -> Deed:
    """What somebody decided about a definition."""
    hash = pin.refused_hash if verb == "refused" else pin.hash
    tool = f"{pin.server}/{pin.own_name}"
    return Deed(kind="pin", operation=f"pin.{verb}", at=at, by=by, targets=(tool,), details={"hash": hash})


def seen(pin: Pin, hash: str, definition: Mapping[str, Any], now: float) -> Pin:
    """The pin with what the server says at this moment."""
    if hash == pin.hash:
        return replace(pin, seen_hash="", seen_definition=None, seen_at=None)
    return replace(pin, seen_hash=hash, seen_definition=definition, seen_at=now)


def accepted(pin: Pin, hash: str, by: str, now: float) -> Pin:
    """The pin moved to the definition that was seen; hashes may be shortened, since people type them."""
    definition = _looked_at(pin, hash)
    return Pin(
        server=pin.server, own_name=pin.own_name, hash=pin.seen_hash, definition=definition, pinned_at=now, pinned_by=by
    )


def refused(pin: Pin, hash: str, by: str) -> Pin:
    """The pin as it was, with the refusal of the definition that was seen."""
    _looked_at(pin, hash)
    return replace(pin, refused_hash=pin.seen_hash, refused_by=by)


def withdrawn(pin: Pin, now: float) -> Pin:
    """The pin before anything was accepted, with its definition as the one that waits."""
    if not pin.hash or pin.pinned_by != FIRST_USE:
        return pin
    return seen(unseen(pin.server, pin.own_name), pin.hash, pin.definition, now)


def _looked_at(pin: Pin, hash: str) -> Mapping[str, Any]:
    definition = pin.seen_definition
    if definition is None or len(hash) < 8 or not pin.seen_hash.startswith(hash):
        raise PinMoved(server=pin.server, own_name=pin.own_name, given=hash, seen=pin.seen_hash)
    return definition
