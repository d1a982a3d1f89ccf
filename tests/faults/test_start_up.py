"""Servers that are dead, mute or mad from the start: the pool is ready with the rest and says why."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from faults.kit import BUDGET, Journal, alive, answers, fake, granted, running
from waiting import eventually

pytestmark = pytest.mark.anyio

SILENT = "no answer within"
# What each does from the start, and a word of the reason that the receipt gives.
DEAD = {
    "crash_start": "exited with status 1",
    "crash_list": "ended by signal 9",
    "never_init": SILENT,
    "never_list": SILENT,
    "deaf": SILENT,
    "flood_start": "flood",
    "endless_start": "longer than",
    "bad_list": "",
    "error_list": "",
    "deep_list": "",
}


@pytest.mark.parametrize("mode", DEAD)
async def test_a_server_that_does_not_start_is_unavailable_with_its_reason(mode: str, journal: Journal) -> None:
    budget = 2.0 if DEAD[mode] == SILENT else BUDGET
    async with running({"bad": fake(mode, journal), "well": fake(journal=journal)}, budget=budget) as grove:
        agent = await granted(grove, "well_echo")
        await answers(agent)
        source = agent.receipt.sources["bad"]
        assert source.problem
        assert DEAD[mode] in source.problem
        assert not [name for name in agent.receipt if name.startswith("bad_")]
        assert agent.receipt.sources["well"].problem == ""
    assert journal.pids
    assert not [pid for pid in journal.pids if alive(pid)]


async def test_a_command_that_does_not_exist_is_unavailable_with_its_reason() -> None:
    async with running({"bad": {"command": "no-such-program-anywhere"}, "well": fake()}) as grove:
        agent = await grove.agent("a")
        await answers(agent)
        assert "not found" in agent.receipt.sources["bad"].problem


@pytest.mark.parametrize("mode", ["noise_start", "bad_utf8_start", "stderr_start", "nan_list", "odd_list"])
async def test_a_server_that_only_stumbles_over_its_output_is_not_in_the_way(mode: str, journal: Journal) -> None:
    """It may work or not; if not, it says why, and its neighbour works in any case."""
    async with running({"bad": fake(mode, journal), "well": fake()}) as grove:
        agent = await grove.agent("a")
        await answers(agent)
        bad = agent.receipt.sources["bad"]
        if bad.problem == "" and agent.receipt["bad_echo"].verdict == "granted":
            await answers(agent, "bad")
        else:
            assert bad.problem or agent.receipt["bad_echo"].rule


@pytest.mark.parametrize("mode", ["noise_start", "json_noise_start", "stderr_start"])
async def test_a_server_that_greets_the_world_first_still_works(mode: str) -> None:
    async with running({"chatty": fake(mode)}) as grove:
        await answers(await grove.agent("a"), "chatty")


@pytest.mark.requirement("POOL-002-01")
async def test_twenty_dead_servers_cost_one_budget_not_the_sum(journal: Journal) -> None:
    """Twenty budgets would be longer than the deadline of the test."""
    dead = {f"dead{number}": fake("never_init", journal) for number in range(20)}
    async with running({**dead, "well": fake(journal=journal)}, budget=2.0) as grove:
        agent = await granted(grove, "well_echo")
        await answers(agent)
        assert all(SILENT in agent.receipt.sources[name].problem for name in dead)
    assert not [pid for pid in journal.pids if alive(pid)]


async def test_a_server_that_comes_late_is_taken_in_when_it_comes(tmp_path: Path, journal: Journal) -> None:
    sign = tmp_path / "sign"
    async with running({"late": fake("late_start", journal, sign), "well": fake()}, budget=0.5) as grove:
        before = await grove.agent("a")
        assert SILENT in before.receipt.sources["late"].problem
        sign.touch()
        after = await granted(grove, "late_echo")
        await answers(after, "late")
        assert not [spec for spec in before.tools if spec.name == "late_echo"]


async def test_a_server_that_crashed_once_is_started_again(tmp_path: Path, journal: Journal) -> None:
    async with running({"bad": fake("crash_once", journal, tmp_path / "mark"), "well": fake()}) as grove:
        await answers(await grove.agent("a"))
        await answers(await granted(grove, "bad_echo"), "bad")
        assert len(journal.pids) == 2


async def test_a_server_that_always_crashes_is_tried_again_but_not_in_a_hurry(journal: Journal) -> None:
    """In the time of three tries a server without back-off would have been started dozens of times."""
    async with running({"bad": fake("crash_start", journal), "well": fake()}) as grove:
        agent = await grove.agent("a")
        await eventually(lambda: len(journal.pids) >= 3)
        await answers(agent)
        assert len(journal.pids) <= 4


async def test_the_healthy_server_answers_while_others_still_start(journal: Journal) -> None:
    """The pool waits for the slow one, a call to one that is there does not."""
    async with running({"well": fake(), "slow": fake("never_init")}, budget=5.0) as grove:
        agent = await grove.agent("a")
        grove.pool.invalidate("slow")
        for _ in range(5):
            await answers(agent)


async def test_leaving_at_once_leaves_nothing_behind(journal: Journal) -> None:
    """Nobody asked for the tools yet when the grove is closed again."""
    servers = {f"s{number}": fake(mode, journal) for number, mode in enumerate(("healthy", "never_init", "deaf"))}
    async with running(servers):
        await anyio.lowlevel.checkpoint()
    assert not [pid for pid in journal.pids if alive(pid)]
