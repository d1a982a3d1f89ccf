"""Work that is begun on the spot is, to itself, work in a task from its first step to its last."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from mcp_serve.eager import Beginner, Rest

pytestmark = pytest.mark.anyio
SAID: ContextVar[str] = ContextVar("SAID", default="nothing")


async def nothing() -> None:
    """Work that does nothing."""


async def begun(beginner: Beginner, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Begin work as a protocol does, outside of any task; the first is only there to make a task ready."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[Any] = loop.create_future()
    loop.call_soon(lambda: first.set_result(beginner.begin(nothing)))
    if isinstance(rest := await first, Rest):
        await rest.work()
    await asyncio.sleep(0)
    then: asyncio.Future[Any] = loop.create_future()
    loop.call_soon(lambda: then.set_result(beginner.begin(work)))
    return await then


async def to_its_end(rest: Rest[Any]) -> Any:
    ends: list[Any] = []

    async def carrying() -> None:
        ends.append(await rest.work())

    await rest.go_on(carrying())
    return ends[0]


async def test_work_that_does_not_wait_ends_at_once_in_the_name_of_a_task() -> None:
    beginner = Beginner()

    async def work() -> object:
        return asyncio.current_task()

    assert isinstance(await begun(beginner, work), asyncio.Task)
    beginner.close()


async def test_work_that_waits_goes_on_in_the_task_in_which_it_began() -> None:
    beginner, go = Beginner(), asyncio.Event()

    async def work() -> bool:
        before = asyncio.current_task()
        async with asyncio.timeout(60):
            await go.wait()
        return before is not None and asyncio.current_task() is before

    rest = await begun(beginner, work)
    assert isinstance(rest, Rest)
    go.set()
    assert await to_its_end(rest) is True
    beginner.close()


async def test_work_that_is_cancelled_while_it_waits_hears_of_it_there() -> None:
    beginner, heard = Beginner(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.set()
            raise

    rest = await begun(beginner, work)

    async def carrying() -> None:
        await rest.work()

    task = rest.go_on(carrying())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard.is_set()
    beginner.close()


async def test_what_work_raises_is_raised_where_its_rest_is_awaited() -> None:
    beginner = Beginner()

    async def work() -> None:
        raise ValueError("no")

    rest = await begun(beginner, work)
    with pytest.raises(ValueError, match="no"):
        await to_its_end(rest)
    beginner.close()


async def test_what_work_leaves_in_its_context_does_not_reach_the_next() -> None:
    beginner = Beginner()

    async def says() -> str:
        SAID.set("a secret")
        return SAID.get()

    async def hears() -> str:
        return SAID.get()

    assert await begun(beginner, says) == "a secret"
    heard = await begun(beginner, hears)
    assert (await to_its_end(heard) if isinstance(heard, Rest) else heard) == "nothing"
    assert SAID.get() == "nothing"
    beginner.close()


async def test_work_that_is_dropped_before_it_began_was_never_there() -> None:
    async def work() -> None:
        raise AssertionError("nobody begins it")

    rest = Beginner().begin(work)  # there is no task to begin it in yet, and this one is another's
    assert isinstance(rest, Rest)
    del rest  # a coroutine that nobody awaited would fail this test


async def test_work_that_cancels_the_task_in_which_it_began_hears_of_it_where_it_waits() -> None:
    beginner, heard = Beginner(), asyncio.Event()

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.set()
            raise

    loop = asyncio.get_running_loop()
    made: asyncio.Future[asyncio.Task[None]] = loop.create_future()

    async def carried(rest: Rest[None]) -> None:
        await rest.work()

    def begin() -> None:
        rest = beginner.begin(work)
        assert isinstance(rest, Rest)
        made.set_result(rest.go_on(carried(rest)))

    await begun(beginner, nothing)
    loop.call_soon(begin)
    task = await made
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard.is_set()
    beginner.close()


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_work_comes_to_its_end_though_the_spare_task_was_cancelled_before(turns: int) -> None:
    beginner, go = Beginner(), asyncio.Event()
    idle: list[asyncio.Task[Any]] = []

    async def spare() -> None:
        task = asyncio.current_task()
        assert task is not None
        idle.append(task)

    async def work() -> str:
        await go.wait()
        return "done"

    await begun(beginner, spare)
    loop = asyncio.get_running_loop()
    made: asyncio.Future[Rest[str] | str] = loop.create_future()

    def begin() -> None:
        made.set_result(beginner.begin(work))

    def cancel() -> None:
        idle[0].cancel()
        if turns == 0:
            begin()

    loop.call_soon(cancel)
    for _ in range(turns):
        await asyncio.sleep(0)
    if turns:
        loop.call_soon(begin)
    rest = await made
    assert isinstance(rest, Rest)
    go.set()
    assert await to_its_end(rest) == "done"
    beginner.close()
