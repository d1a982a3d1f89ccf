"""Which definitions of one source are accepted without a person, and which wait for one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgrove.config import PinMode
from toolgrove.pool import metadata
from toolgrove.pool.offer import Standing
from toolgrove.store.state import FIRST_USE, Pin, Pins
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.pool")


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A tool as the server lists it; without a problem it may enter the pool once its digest is the pinned one.

    `whole` is the hash of all that the server says, `digest` that of what is pinned. `early` is what belongs to the
    first contact, `mentions` are words that could be names of tools. `instructing` reads like an instruction to the
    model, and `spoken_of` are the tools of others that it speaks of.
    """

    whole: str
    digest: str
    raw: Mapping[str, Any]
    problems: Sequence[str] = ()
    mentions: Mapping[str, str] = field(default_factory=dict)
    instructing: tuple[str, ...] = ()
    spoken_of: tuple[str, ...] = ()
    early: bool = False

    @property
    def suspicions(self) -> tuple[str, ...]:
        """Why a person should look at it, wherever it comes from."""
        return (*self.instructing, *self.spoken_of)


class PinPolicy:
    """`firstUse` accepts what a server has at first contact and what looks harmless; `ask` accepts nothing by itself.

    First contact is the first list that a server ever gave to this project, and what it says within the start-up
    budget after it.
    """

    def __init__(
        self, server: str, *, pins: Pins, mode: PinMode, clock: Clock, window: float = 0.0, volatile: Sequence[str] = ()
    ) -> None:
        self._server = server
        self._pins = pins
        self._asks = mode == "ask"
        self._volatile = frozenset(volatile)
        self._window = window
        self._clock = clock
        self._trusting_until: float | None = None
        self._accepted: set[str] = set()

    def is_first_contact(self) -> bool:
        """Whether a list that comes in now belongs to the first contact."""
        now = self._clock.monotonic()
        if self._trusting_until is None:
            first = not self._pins.knows(self._server)
            self._trusting_until = now + self._window if first else now
            return first
        return now < self._trusting_until

    def digest(self, raw: Mapping[str, Any], *, suspicious: bool) -> str:
        """The hash to pin: without the volatile parts, unless there is something to see in them."""
        if self._volatile and not suspicious:
            raw = {key: value for key, value in raw.items() if key not in self._volatile}
        return metadata.definition_hash(raw)

    def judge(self, listed: Mapping[str, Listed]) -> Mapping[str, Pin]:
        """The pins, brought up to date with what the server says now."""
        pins = self._pins.of(self._server)
        moved = [self._judge(name, one, pins.get(name)) for name, one in listed.items() if not one.problems]
        if not self._pins.knows(self._server):
            self._pins.met(self._server)
        return self._pins.of(self._server) if any(moved) else pins

    def _judge(self, name: str, one: Listed, pin: Pin | None) -> bool:
        """Whether a pin had to be written."""
        server, pins = self._server, self._pins
        if pin is not None and pin.hash == one.digest:
            if pin.pinned_by == FIRST_USE and not self._is_harmless(one):
                log.warning("server %s: the definition of %s waits for a person; see 'toolgrove pins'", server, name)
                pins.withdraw(server, name)
                return True
            if pin.changed:
                pins.saw(server, name, one.digest, one.raw)
            return pin.changed
        if pin is not None and pin.hash and self._is_volatile_alone(one, pin):
            pins.pin(server, name, one.digest, one.raw, by=pin.pinned_by)
            return True
        if self._accepts(one, pin):
            self._accepted.add(one.whole)
            pins.pin(server, name, one.digest, one.raw)
            return True
        if pin is not None and pin.seen_hash == one.digest:
            return False
        held = "waits for a person" if pin is None or not pin.hash else "changed and is quarantined"
        log.warning("server %s: the definition of %s %s; see 'toolgrove pins'", server, name, held)
        pins.saw(server, name, one.digest, one.raw)
        return True

    def _accepts(self, one: Listed, pin: Pin | None) -> bool:
        """Whether nobody needs to look; what a person decided or dropped stays with people."""
        if not one.early or not self._is_harmless(one) or one.whole in self._accepted:
            return False
        return pin is None or (pin.pinned_by == FIRST_USE and not pin.refused_hash)

    def _is_harmless(self, one: Listed) -> bool:
        return not self._asks and not one.suspicions

    def _is_volatile_alone(self, one: Listed, pin: Pin) -> bool:
        """Whether the pin was made under another setting of `volatile`, for what counts as the same now."""
        return not one.suspicions and self.digest(pin.definition, suspicious=False) == one.digest

    def standing(self, one: Listed, pin: Pin | None) -> tuple[Standing, str]:
        """How a definition stands, and why if it is not ready."""
        if pin is not None and pin.hash == one.digest:
            return "ready", ""
        kept_out: Standing = "quarantined" if pin is not None and pin.hash else "pending"
        if pin is not None and pin.refused_hash == one.digest:
            return kept_out, f"its definition was refused by {pin.refused_by}: 'toolgrove pins' shows it"
        if kept_out == "quarantined":
            return kept_out, "its definition changed since it was pinned: review it with 'toolgrove pins'"
        return kept_out, f"{self._why_pending(one)}: review it with 'toolgrove pins'"

    def _why_pending(self, one: Listed) -> str:
        if one.suspicions:
            return f"its {one.suspicions[0]}"
        if self._asks:
            return "nobody accepted it yet"
        return "nobody accepted it yet, and tools that appear after the first contact wait"

    def is_decided(self, listed: Mapping[str, Listed]) -> bool:
        """Whether somebody accepted one of these definitions meanwhile."""
        pins = self._pins.of(self._server)
        return any(pins[name].hash == one.digest for name, one in listed.items() if name in pins)
