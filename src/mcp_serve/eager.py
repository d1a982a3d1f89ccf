"""Work that is begun on the spot, since most of it ends there; only what has to wait is carried on by a task.

From Python 3.12 on asyncio can begin a task at once, but makes one for each piece of work; here they share a spare one.
Work is handed over as what makes it: a coroutine that nobody comes to await would be one too many.
"""

import asyncio
import contextvars
import types
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Begun = Coroutine[Any, Any, T]
Work = Callable[[], Begun[T]]


class Rest(Generic[T]):
    """Work that did not end at once: `work` makes what is left of it, for the task that `go_on` gives."""

    def __init__(self, work: Work[T], spare: "_Spare | None" = None) -> None:
        self.work = work
        self._spare = spare

    def go_on(self, carrying: Begun[None]) -> "asyncio.Task[None]":
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
        spare = self._spare
        if spare is None or spare.is_over:
            spare = self._spare = _Spare()
        if not spare.is_ready or not spare.enter():
            return Rest(work)
        self._spare = None
        try:
            begun, waits_for = spare.step(work)
        except StopIteration as end:
            self._spare = spare.if_as_new()
            result: T = end.value
            return result
        except (Exception, asyncio.CancelledError) as error:
            return Rest(partial(_raising, error), spare)
        return Rest(partial(_resumed, begun, waits_for), spare)

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
        self._woken: asyncio.Future[None] = self._loop.create_future()
        self._work: Begun[None] | None = None
        self.is_ready = False
        self._task = self._loop.create_task(self._carry(), context=self._context)

    @property
    def is_over(self) -> bool:
        """Whether it takes no work any more: it was cancelled while it was idle."""
        return self._woken.done() or self._task.done()

    def enter(self) -> bool:
        """Be the task that runs; False where another one does."""
        try:
            _enter_task(self._loop, self._task)
        except RuntimeError:
            return False
        return True

    def step(self, work: Work[T]) -> tuple[Begun[T], Any]:
        """Begin the work, and say what it waits for; to the work, it runs in the task, which was entered before."""
        try:
            begun = work()
            return begun, self._context.run(begun.send, None)
        finally:
            _leave_task(self._loop, self._task)

    def carry(self, work: Begun[None]) -> "asyncio.Task[None]":
        """Run the work to its end."""
        self._work = work
        self.end()
        return self._task

    def if_as_new(self) -> "_Spare | None":
        """Itself for the next work, unless the last one left something behind."""
        if self._context == self._as_new and not self._task.cancelling():
            return self
        self.end()
        return None

    def end(self) -> None:
        if not self._woken.done():  # work may have cancelled the task in which it was begun
            self._woken.set_result(None)

    async def _carry(self) -> None:
        self.is_ready = True
        try:
            await self._woken
        except asyncio.CancelledError:
            if self._work is None:
                raise
            self._task.uncancel()
            self._task.cancel()  # where the work waits
        if self._work is not None:
            await self._work


@types.coroutine
def _resumed(work: Begun[T], waits_for: Any) -> Generator[Any, Any, T]:
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
