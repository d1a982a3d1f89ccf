"""Whether the list of tools is younger than the last word that it changed."""

from __future__ import annotations

import anyio


class ToolListFreshness:
    """The lister waits for something to do; callers wait until it is done."""

    def __init__(self) -> None:
        self._heard = 0
        self._listed = 0
        self._word = anyio.Event()
        self._done = anyio.Event()

    def stale(self) -> None:
        """Note that the tools may have changed: later calls wait for the next list."""
        self._heard += 1
        self._word.set()

    def look(self) -> None:
        """See whether the server still answers; calls need not wait for that."""
        self._word.set()

    async def word(self, patience: float) -> None:
        """Wait for such a word, but not forever: some servers change and do not say so."""
        with anyio.move_on_after(patience):
            await self._word.wait()

    def begin(self) -> int:
        """Start to list; what is heard from now on makes the list stale again."""
        self._word = anyio.Event()
        return self._heard

    def finish(self, mark: int) -> None:
        """The list is here, or never will be."""
        self._listed = mark
        self._done.set()
        self._done = anyio.Event()

    def reset(self) -> None:
        """Let all waiting calls go: this connection has nothing more to say."""
        self.finish(self.begin())

    async def wait(self) -> None:
        """Until all that was heard so far is in the list."""
        mark = self._heard
        while self._listed < mark:
            await self._done.wait()
