"""`unless_gone`: work that ends with its connection, and only then."""

import asyncio
import gc
import weakref

import pytest
from starlette.types import Message

from mcp_serve import presence
from mcp_serve.presence import unless_gone

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _watch_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "WATCH_AFTER", 0.0)


class Connection:
    """A request whose client can go away."""

    def __init__(self) -> None:
        self.is_watched = asyncio.Event()
        self.is_gone = asyncio.Event()

    async def receive(self) -> Message:
        self.is_watched.set()
        await self.is_gone.wait()
        return {"type": "http.disconnect"}


async def test_work_ends_when_its_client_goes_away() -> None:
    connection = Connection()
    ended = asyncio.Event()

    async def work() -> str:
        connection.is_gone.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    assert await unless_gone(connection.receive, work()) is None
    assert ended.is_set()


async def test_work_that_has_answered_goes_on_to_its_end() -> None:
    connection = Connection()
    answered = False
    tidied = asyncio.Event()

    async def work() -> str:
        nonlocal answered
        await connection.is_watched.wait()
        answered = True
        connection.is_gone.set()  # to the server, an answered request looks like a lost one
        for _ in range(10):
            await asyncio.sleep(0)
        tidied.set()
        return "done"

    assert await unless_gone(connection.receive, work(), lambda: answered) == "done"
    assert tidied.is_set()


async def test_a_client_that_goes_away_after_the_end_cancels_nothing() -> None:
    connection = Connection()

    async def work() -> str:
        await connection.is_watched.wait()
        return "done"

    assert await unless_gone(connection.receive, work()) == "done"
    connection.is_gone.set()
    for _ in range(10):
        await asyncio.sleep(0)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_the_watch_lives_as_long_as_the_work_and_no_longer() -> None:
    connection = Connection()
    watchers: list[weakref.ref[asyncio.Task[object]]] = []

    async def work() -> str:
        await connection.is_watched.wait()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        watchers.extend(weakref.ref(task) for task in others if "watch" in str(task.get_coro()))
        del others
        gc.collect()  # a task that nobody holds may go
        assert watchers[0]() is not None
        return "done"

    await unless_gone(connection.receive, work())
    await asyncio.sleep(0)
    watcher = watchers[0]()
    assert watcher is None or watcher.done()


async def test_cancelling_the_request_itself_is_not_swallowed() -> None:
    connection = Connection()

    async def request() -> None:
        await unless_gone(connection.receive, asyncio.Event().wait())

    task = asyncio.create_task(request())
    await connection.is_watched.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
