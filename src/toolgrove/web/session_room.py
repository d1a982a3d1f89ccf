"""How many sessions of the older protocol eras a gateway keeps: one too many ends the one that was idle longest."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolgrove.web.identity import Principal

MOST = 2_000
"""Of all agents together. One takes about 65 kB, so that all of them stay within some 130 MB."""
OF_ONE = 1_000
"""Of one token."""


@dataclass(eq=False, kw_only=True, slots=True)
class _Place:
    user: Principal
    end: Callable[[], Awaitable[object]]
    requests: int = 0
    """How many are under way in it; a stream that a client listens to is one of them."""


class SessionRoom:
    """Knows every session of a gateway, the one that was used longest ago first."""

    def __init__(self) -> None:
        self._places: OrderedDict[bytes, _Place] = OrderedDict()
        self._of: Counter[Principal] = Counter()

    def take(self, session: bytes, user: Principal, end: Callable[[], Awaitable[object]]) -> None:
        """A session was opened; `end` ends it as its client would."""
        if session not in self._places:
            self._places[session] = _Place(user=user, end=end)
            self._of[user] += 1

    def leave(self, session: bytes) -> None:
        """A session has ended."""
        place = self._places.pop(session, None)
        if place is not None:
            self._of[place.user] -= 1
            if not self._of[place.user]:
                del self._of[place.user]

    def begin(self, session: bytes | None) -> None:
        """A request came to a session."""
        if session is not None and session in self._places:
            self._places[session].requests += 1

    def finish(self, session: bytes | None) -> None:
        """It was answered; the session is the one that was used last."""
        if session is not None and session in self._places:
            self._places[session].requests -= 1
            self._places.move_to_end(session)

    def is_full(self, user: Principal) -> bool:
        """Whether there is no room for another session of this token, and none that could make room."""
        is_at_limit = self._of[user] >= OF_ONE or len(self._places) >= MOST
        return is_at_limit and self._idle(user if self._of[user] >= OF_ONE else None) is None

    async def make_room(self, user: Principal) -> None:
        """End those that are too many, the longest idle first: the token's own, where it has too many itself."""
        while self._of[user] > OF_ONE or len(self._places) > MOST:
            session = self._idle(user if self._of[user] > OF_ONE else None)
            if session is None:
                return
            place = self._places[session]
            self.leave(session)
            await place.end()

    def _idle(self, user: Principal | None) -> bytes | None:
        places = self._places.items()
        return next((key for key, one in places if not one.requests and user in (None, one.user)), None)
