"""One budget for stopping: who shares it, and who may not outlast it."""

import asyncio
import logging
import threading

import pytest

from mcp_serve import signals
from mcp_serve.hooks import hooks
from mcp_serve.signals import GRACE, LAST_WORDS, Stop
from waiting import DEADLINE

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("NFR-REL-001")]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_the_budget_is_that_of_the_specification_and_begins_when_we_are_told_to_stop() -> None:
    clock = Clock()
    stop = Stop(clock=clock)
    clock.now = 100.0
    assert (GRACE, stop.left()) == (5.0, 5.0)
    stop.set()
    clock.now = 101.5
    stop.set()  # by the next of those who notice the end; the budget does not begin again
    assert stop.is_set()
    assert stop.left() == 3.5
    assert stop.left(LAST_WORDS) == pytest.approx(3.5 - LAST_WORDS)
    clock.now = 107.0
    assert stop.left() == 0.0


async def test_a_signal_counts_from_its_arrival_even_if_the_loop_is_busy() -> None:
    clock = Clock()
    stop = Stop(clock=clock)
    stop.begin()
    clock.now = 2.0
    assert not stop.is_set()
    stop.set()
    assert stop.left() == 3.0


async def test_when_the_budget_is_used_up_whoever_may_end_the_process_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signals, "GRACE", 0.01)
    over = threading.Event()
    Stop(at_last=over.set).set()
    assert await asyncio.to_thread(over.wait, DEADLINE)


async def test_a_last_hook_that_never_ends_is_cancelled_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(signals, "GRACE", LAST_WORDS)
    stop = Stop()
    ended: list[str] = []

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    with caplog.at_level(logging.WARNING):
        async with hooks(None, never, stop):
            stop.set()
    await asyncio.sleep(0)
    assert ended == ["cancelled"]
    assert [record.getMessage() for record in caplog.records] == ["A hook did not end in time, and was cancelled."]


async def test_a_first_hook_that_waits_for_something_ends_when_the_server_is_told_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signals, "GRACE", LAST_WORDS)
    stop = Stop()

    async def never() -> None:
        stop.set()
        await asyncio.Event().wait()

    async with hooks(never, None, stop):
        assert stop.is_set()


async def test_what_a_hook_raises_is_raised() -> None:
    async def fail() -> None:
        raise LookupError("no database")

    with pytest.raises(LookupError, match="no database"):
        async with hooks(fail, None, Stop()):
            pass
