"""Who came in: the first use of every token, and the operator who signs in."""

from __future__ import annotations

import logging
from collections import OrderedDict

import anyio
import anyio.to_thread

from toolgrove.web.identity import Lookup, Principal
from toolgrove.web.project import Project

log = logging.getLogger("toolgrove.serve")
AWAY = 1800.0
"""After so many seconds without a request, the operator's next one is a new sign-in."""
_PLACES = 1_000


class Arrivals:
    """Notices them as requests pass, and records them on the side: no request waits for a file."""

    def __init__(self, project: Project, lookup: Lookup) -> None:
        self._project, self._lookup = project, lookup
        self._last: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._waiting: list[tuple[Principal, str, bool]] = []
        self._came = anyio.Event()

    def saw(self, user: Principal, source: str) -> None:
        """A request came with a good token from this address."""
        signs_in = user.is_operator and self._is_back(user, source)
        if signs_in or self._lookup.is_first(user):
            self._waiting.append((user, source, signs_in))
            self._came.set()

    async def follow(self) -> None:
        """Put arrivals on record until cancelled."""
        while True:
            await self._came.wait()
            self._came = anyio.Event()
            waiting, self._waiting = self._waiting, []
            for user, source, signs_in in waiting:
                await self._record(user, source, signs_in)

    async def _record(self, user: Principal, source: str, signs_in: bool) -> None:
        try:
            await anyio.to_thread.run_sync(lambda: self._project.tokens.use(user.token, source=source))
        except OSError as problem:
            log.warning("The first use of a token cannot be noted: %s", problem)
        await self._project.recorder.collect()
        if signs_in:
            await self._project.recorder.record("sign_in", "sign_in", by="operator", details={"from": source})

    def _is_back(self, user: Principal, source: str) -> bool:
        place = (user.token, source)
        now = self._project.clock.monotonic()
        before = self._last.get(place)
        self._last[place] = now
        self._last.move_to_end(place)
        if len(self._last) > _PLACES:
            self._last.popitem(last=False)
        return before is None or now - before >= AWAY
