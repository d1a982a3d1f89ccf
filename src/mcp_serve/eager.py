"""Work that is begun on the spot, since most of it ends there; only what has to wait is carried on by a task.

From Python 3.12 on asyncio can begin a task at once, but makes one for each piece of work; here they share a spare one.
"""

import asyncio
import contextvars
import types
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Work = Coroutine[Any, Any, T]


class Rest(Generic[T]):
    """Work that did not end at once: `work` is what is left of it, for the task that `go_on` gives."""

    def __init__(self, work: Work[T], spare: "_Spare | None" = None) -> None:
        self.work = work
        self._spare = spare

    def go_on(self, carrying: Work[None]) -> "asyncio.Task[None]":
        """The task in which the work was begun; it goes on with what awaits the rest of it."""
        if self._spare is None:
            return asyncio.get_running_loop().create_task(carrying)
        return self._spare.carry(carrying)


class Beginner:
    """Begins work in the name of a spare task; while that is not ready, work waits for a task of its own."""

    def __init__(self) -> None:
        self._spare: _Spare | None = None

    def begin(self, work: Work[T]) -> T | Rest[T]:
        """The result of the work, or the rest of it; what it raises is raised by its rest."""
        spare, self._spare = self._spare, None
        if spare is None or not spare.is_ready or asyncio.current_task() is not None:
            self._spare = spare or _Spare()
            return Rest(work)
        try:
            waits_for = spare.step(work)
        except StopIteration as end:
            self._spare = spare.if_as_new()
            result: T = end.value
            return result
        except (Exception, asyncio.CancelledError) as error:
            return Rest(_raising(error), spare)
        return Rest(_resumed(work, waits_for), spare)

    def close(self) -> None:
        """Let the spare task end."""
        if self._spare is not None:
            self._spare.end()
            self._spare = None


class _Spare:
    """A task that waits for work that was begun in its name, in its context."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._as_new = self._context.copy()
        self._given: asyncio.Future[Work[None] | None] = self._loop.create_future()
        self.is_ready = False
        self._task = self._loop.create_task(self._carry(), context=self._context)

    def step(self, work: Work[Any]) -> Any:
        """Run the work until it waits, and say what for; to the work, it runs in the task."""
        _enter_task(self._loop, self._task)
        try:
            return self._context.run(work.send, None)
        finally:
            _leave_task(self._loop, self._task)

    def carry(self, work: Work[None]) -> "asyncio.Task[None]":
        """Run the work to its end."""
        if self._task.done():  # it was cancelled while it was idle, so its work is too
            task = self._loop.create_task(work)
            task.cancel()
            return task
        self._given.set_result(work)
        return self._task

    def if_as_new(self) -> "_Spare | None":
        """Itself for the next work, unless the last one left something behind."""
        if self._context == self._as_new and not self._task.cancelling():
            return self
        self.end()
        return None

    def end(self) -> None:
        if not self._given.done():
            self._given.set_result(None)

    async def _carry(self) -> None:
        self.is_ready = True
        try:
            await self._given
        except asyncio.CancelledError:
            if self._given.cancelled() or (work := self._given.result()) is None:
                raise
            self._task.uncancel()
            self._task.cancel()  # where the work waits
            return await work
        work = self._given.result()
        if work is not None:
            await work


@types.coroutine
def _resumed(work: Work[T], waits_for: Any) -> Generator[Any, Any, T]:
    """The rest of work that waits for something already."""
    while True:
        try:
            value = yield waits_for
        except BaseException as error:
            step: Callable[[], Any] = partial(work.throw, error)
        else:
            step = partial(work.send, value)
        try:
            waits_for = step()
        except StopIteration as end:
            result: T = end.value
            return result


async def _raising(error: BaseException) -> Any:
    raise error
