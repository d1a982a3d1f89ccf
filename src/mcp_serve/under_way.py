"""Requests under way on the lane, so that their clients can cancel them, and the end of a session can end them."""

import asyncio
from collections.abc import Awaitable
from typing import Literal

Why = Literal["cancelled", "ended"]


class Stopped(Exception):
    """A request was stopped: its client cancelled it, or its session ended."""

    def __init__(self, why: Why) -> None:
        super().__init__(why)
        self.why = why


class UnderWay:
    """Knows the task of each request, by the id that its client gave it, within one connection or session."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[object]] = {}
        self._stopped: dict[asyncio.Task[object], Why] = {}

    def __contains__(self, number: int | str) -> bool:
        return str(number) in self._tasks

    async def follow(self, number: int | str, work: Awaitable[bytes]) -> bytes:
        """The result of the work, which can be stopped meanwhile; raises Stopped then."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is answered in a task")
        key = str(number)
        self._tasks[key] = task
        try:
            return await work
        except asyncio.CancelledError:
            why = self._stopped.pop(task, None)
            if why is None or task.uncancel():
                raise
            raise Stopped(why) from None
        finally:
            del self._tasks[key]
            self._stopped.pop(task, None)

    def cancel(self, number: int | str) -> None:
        """The client does not want the answer any more."""
        self._stop(str(number), "cancelled")

    def end(self) -> None:
        """The session is over, and all that is under way in it."""
        for key in list(self._tasks):
            self._stop(key, "ended")

    def _stop(self, key: str, why: Why) -> None:
        task = self._tasks.get(key)
        if task is not None and task not in self._stopped:
            self._stopped[task] = why
            task.cancel()
