"""Who works on the workspace, and when: short work at once on the event loop, long work in a thread beside it.

A tree that a thread reads stays as it is: who wants to change it waits a moment for the reader, and then changes a
copy. A long change works on a copy from the start, while other changes wait in line.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from toolgrove.tree.tree import Tree

_READS = 2
_PATIENCE = 0.1
Out = TypeVar("Out")


class Turns:
    """The line of changes, and the trees that threads read."""

    def __init__(self) -> None:
        self.line = anyio.Lock()
        """Who holds it is the only one to change anything; a change in place, which waits for nothing, needs no place
        in it while it is empty."""
        self._readers: dict[Tree, int] = {}
        self._given_back: anyio.Event | None = None
        # More threads would take turns with each other and with the event loop, and none would be done sooner.
        self._reading = anyio.CapacityLimiter(_READS)
        self._changing = anyio.CapacityLimiter(1)

    def is_read(self, tree: Tree) -> bool:
        """Whether a thread reads a tree."""
        return tree in self._readers

    async def given_back(self, tree: Tree) -> bool:
        """Wait a moment for those who read a tree; whether nobody does any more."""
        with anyio.move_on_after(_PATIENCE):
            while tree in self._readers:
                self._given_back = self._given_back or anyio.Event()
                await self._given_back.wait()
        return tree not in self._readers

    def read(self, tree: Tree, work: Callable[[], Out]) -> Awaitable[Out]:
        """Work in a thread on a tree that, from now on, nobody changes."""
        self._readers[tree] = self._readers.get(tree, 0) + 1
        return self._reads(tree, work)

    async def _reads(self, tree: Tree, work: Callable[[], Out]) -> Out:
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._reading)
        finally:
            self._readers[tree] -= 1
            if not self._readers[tree]:
                del self._readers[tree]
            if self._given_back is not None:
                self._given_back.set()
                self._given_back = None

    async def change(self, work: Callable[[], Out]) -> Out:
        """Work in a thread on a copy that nobody else knows."""
        return await anyio.to_thread.run_sync(work, limiter=self._changing)
