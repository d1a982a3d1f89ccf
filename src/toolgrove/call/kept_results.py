"""Large results that were cut: each kept for a while, for the agent and the session that asked."""

from __future__ import annotations

from collections import OrderedDict
from secrets import token_hex
from typing import Any, NamedTuple

from toolgrove.types import Caller, Clock

LASTS = 3600.0
PER_SESSION = 16
BYTES = 64 * 1024**2
LARGEST = 16 * 1024**2


class _Kept(NamedTuple):
    owner: tuple[tuple[str, ...], str]
    value: Any
    size: int
    until: float


class KeptResults:
    """Bounded in number, in size and in time; the oldest go first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._size = 0

    def keep(self, caller: Caller, value: Any, size: int) -> str | None:
        """Keep a value of so many characters; the id to ask for it with, or None for one that is too large."""
        if size > LARGEST:
            return None
        self._forget_old()
        owner = (caller.chain, caller.session)
        own = [key for key, one in self._kept.items() if one.owner == owner]
        for key in own[: max(len(own) - PER_SESSION + 1, 0)]:
            self._drop(key)
        while self._kept and self._size + size > BYTES:
            self._drop(next(iter(self._kept)))
        result_id = f"res_{token_hex(8)}"
        self._kept[result_id] = _Kept(owner, value, size, self._clock.monotonic() + LASTS)
        self._size += size
        return result_id

    def get(self, caller: Caller, result_id: str) -> Any:
        """What was kept for this agent in this session; raises KeyError for what is not there."""
        self._forget_old()
        found = self._kept[result_id]
        if found.owner != (caller.chain, caller.session):
            raise KeyError(result_id)
        return found.value

    def _forget_old(self) -> None:
        now = self._clock.monotonic()
        while self._kept and next(iter(self._kept.values())).until <= now:  # all last equally long
            self._drop(next(iter(self._kept)))

    def _drop(self, key: str) -> None:
        self._size -= self._kept.pop(key).size
