"""What a server tells by itself about what it offers beside tools: handed on a few times a second at most."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from toolgrove.types import Listed

log = logging.getLogger("toolgrove.pool")
_PAUSE = 0.25


class News:
    """The same word said many times in a row is handed on once; each says that something may have changed."""

    def __init__(self) -> None:
        self._followers: dict[object, Callable[[Listed], None]] = {}
        self._waiting: dict[str, Callable[[], None]] = {}
        self._word = anyio.Event()

    def follow(self, tell: Callable[[Listed], None]) -> Callable[[], None]:
        """Hear which list of the server may have changed, until the answer is called."""
        key = object()
        self._followers[key] = tell

        def end() -> None:
            self._followers.pop(key, None)

        return end

    def list_changed(self, what: Listed) -> None:
        """Tell of a changed list soon."""
        self.soon(f"list {what}", lambda: [tell(what) for tell in list(self._followers.values())])

    def soon(self, key: str, tell: Callable[[], object]) -> None:
        """Call this soon, once for all that is said under the key until then."""
        self._waiting[key] = lambda: _safely(tell)
        self._word.set()

    async def run(self) -> None:
        """Hand on what is told, until we are cancelled."""
        while True:
            await self._word.wait()
            self._word = anyio.Event()
            waiting, self._waiting = self._waiting, {}
            for tell in waiting.values():
                tell()
            await anyio.sleep(_PAUSE)


def _safely(tell: Callable[[], object]) -> None:
    try:
        tell()
    except Exception:  # one who cannot be told keeps nobody else from hearing
        log.exception("a change at a server could not be told")
