"""Leaving: everything that was started ends, in bounded time, whatever it does to stay."""

from __future__ import annotations

import anyio
import pytest

from faults.kit import Journal, alive, answers, fake, project, running
from waiting import eventually

pytestmark = pytest.mark.anyio


async def test_twenty_servers_that_ignore_every_polite_sign_are_ended_together(journal: Journal) -> None:
    """One after the other would take longer than the deadline of the test."""
    async with running({f"s{number}": fake("ignore_eof", journal) for number in range(20)}, budget=60.0) as grove:
        agent = await grove.agent("a")
        await answers(agent, "s19")
    assert len(journal.pids) == 20
    assert not [pid for pid in journal.pids if alive(pid)]


@pytest.mark.parametrize("mode", ["grandchild", "healthy"])
async def test_what_a_server_started_itself_ends_with_it(mode: str, journal: Journal) -> None:
    async with running({"up": fake(mode, journal)}) as grove:
        agent = await grove.agent("a")
        await agent.call("up_grandchild")
        assert len(journal.pids) == (3 if mode == "grandchild" else 2)
        assert all(alive(pid) for pid in journal.pids)
    assert not [pid for pid in journal.pids if alive(pid)]


async def test_a_grandchild_that_holds_the_pipes_does_not_hide_a_crash(journal: Journal) -> None:
    async with running({"up": fake(journal=journal, timeout=3600)}) as grove:
        agent = await grove.agent("a")
        await agent.call("up_grandchild")
        assert (await agent.call("up_crash"))["error"]["reason"] == "upstream_unavailable"
    assert not [pid for pid in journal.pids if alive(pid)]


async def test_a_call_in_flight_does_not_keep_the_grove_open(journal: Journal) -> None:
    results = []

    async with anyio.create_task_group() as tasks, running({"up": fake(journal=journal, timeout=3600)}) as grove:
        agent = await grove.agent("a")

        async def hang() -> None:
            results.append(await agent.call("up_hang"))

        tasks.start_soon(hang)
        await journal.wrote("hangs")
    assert results[0]["error"]["code"] == "internal"
    assert not [pid for pid in journal.pids if alive(pid)]


async def test_a_call_after_the_end_is_an_answer_too(journal: Journal) -> None:
    async with running({"up": fake(journal=journal)}) as grove:
        agent = await grove.agent("a")
    with anyio.fail_after(10):
        assert (await agent.call("up_echo", {"text": "x"}))["error"]["code"] == "internal"
    assert not [pid for pid in journal.pids if alive(pid)]


async def test_cancelling_everything_ends_every_server(journal: Journal) -> None:
    with anyio.CancelScope() as scope:
        async with running(
            {f"s{number}": fake(mode, journal) for number, mode in enumerate(("healthy", "ignore_eof"))}
        ):
            await journal.wrote("received", 2)
            scope.cancel()
            await anyio.sleep_forever()
    assert len(journal.pids) == 2
    assert not [pid for pid in journal.pids if alive(pid)]


async def test_a_server_that_writes_without_end_while_it_is_ended_is_ended(journal: Journal) -> None:
    async with anyio.create_task_group() as tasks, running({"up": fake(journal=journal, timeout=3600)}) as grove:
        agent = await grove.agent("a")
        tasks.start_soon(agent.call, "up_endless")
        await journal.wrote("endless")
    assert not [pid for pid in journal.pids if alive(pid)]


async def test_a_server_taken_out_of_the_project_is_ended(journal: Journal) -> None:
    async with running({"up": fake("grandchild", journal), "well": fake()}) as grove:
        agent = await grove.agent("a")
        await answers(agent, "up")
        await grove.reload(project({"well": fake()}))
        await eventually(lambda: not [pid for pid in journal.pids if alive(pid)])
        fresh = await grove.agent("a")
        assert "up" not in fresh.receipt.sources
        await answers(fresh)
