"""Fair shares of an upstream: most of it for one agent alone, and always something for the next."""

from __future__ import annotations

from collections import Counter

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove_kit import ManualClock
from toolgrove.errors import ShareSpent
from toolgrove.pool.fair_shares import GREED, LINE, FairShares, Overdue

HOUR = 3600.0
pytestmark = pytest.mark.anyio


class Crowd:
    """Calls of several agents that hold their places until told to end."""

    def __init__(self, places: int) -> None:
        self.clock = ManualClock()
        self.shares = FairShares(places, self.clock, of="The server")
        self.running: list[tuple[str, anyio.Event]] = []
        self.refused: Counter[str] = Counter()

    async def call(self, agent: str, patience: float = HOUR) -> None:
        try:
            async with self.shares.place(agent, patience):
                end = anyio.Event()
                self.running.append((agent, end))
                await end.wait()
                self.running.remove((agent, end))
        except (ShareSpent, Overdue):
            self.refused[agent] += 1

    def of(self, agent: str) -> int:
        return sum(1 for one, _ in self.running if one == agent)


@pytest.fixture
def crowd() -> Crowd:
    return Crowd(16)


async def test_one_agent_alone_gets_most_places_and_never_the_last(crowd: Crowd) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(40):
            tasks.start_soon(crowd.call, "greedy")
        await anyio.wait_all_tasks_blocked()
        assert crowd.of("greedy") == 12
        tasks.start_soon(crowd.call, "modest")
        await anyio.wait_all_tasks_blocked()
        assert crowd.of("modest") == 1, "it did not have to wait"
        tasks.cancel_scope.cancel()


async def test_a_place_that_becomes_free_goes_to_the_agents_in_turn() -> None:
    crowd = Crowd(1)
    served: list[str] = []
    async with anyio.create_task_group() as tasks:
        for agent in ("a", "a", "a", "b", "b", "c"):
            tasks.start_soon(crowd.call, agent)
            await anyio.wait_all_tasks_blocked()
        while crowd.running:
            agent, end = crowd.running[0]
            served.append(agent)
            end.set()
            await anyio.wait_all_tasks_blocked()
    assert served == ["a", "a", "b", "c", "a", "b"]


async def test_an_agent_that_fills_its_part_of_the_line_is_told_when_to_come_back(crowd: Crowd) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(16 * LINE):
            tasks.start_soon(crowd.call, "greedy")
        await anyio.wait_all_tasks_blocked()
        assert crowd.refused["greedy"]
        with pytest.raises(ShareSpent) as refusal:
            async with crowd.shares.place("greedy", HOUR):
                pass
        error = refusal.value.to_json()["error"]
        assert (error["code"], error["reason"]) == ("rate_limited", "upstream_busy")
        assert error["retryAfter"] >= 0.5
        for _ in range(4):
            tasks.start_soon(crowd.call, "modest")
        await anyio.wait_all_tasks_blocked()
        assert crowd.of("modest") > 0
        assert crowd.refused["modest"] == 0
        tasks.cancel_scope.cancel()


async def test_who_waits_too_long_leaves_the_line_and_nothing_is_lost(crowd: Crowd) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(crowd.call, "a")
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Overdue):
            async with crowd.shares.place("a", 0):
                pass
        for _, end in crowd.running:
            end.set()
    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(crowd.call, "a")
        await anyio.wait_all_tasks_blocked()
        assert crowd.of("a") == 12
        tasks.cancel_scope.cancel()


AGENTS = ("a", "b", "c")


def naive(places: int, steps: list[tuple[str, str]]) -> list[Counter[str]]:
    """What runs after each step, by the rule said plainly: who holds fewer than GREED times the free places may run."""
    running: Counter[str] = Counter()
    line: list[str] = []
    order: list[str] = []
    seen = []
    for what, agent in steps:
        if what == "end" and running[agent]:
            running[agent] -= 1
        elif what == "begin":
            line.append(agent)
            if agent not in order:
                order.append(agent)
        while True:
            free = places - running.total()
            ready = [one for one in order if one in line and running[one] < GREED * free]
            if not ready:
                break
            line.remove(ready[0])
            order.remove(ready[0])
            running[ready[0]] += 1
            if ready[0] in line:
                order.append(ready[0])
        seen.append(+running)
    return seen


@pytest.mark.long
@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.sampled_from(("begin", "begin", "end")), st.sampled_from(AGENTS)), max_size=30),
)
def test_who_runs_is_what_the_plain_rule_says(places: int, steps: list[tuple[str, str]]) -> None:
    anyio.run(_compare, places, steps)


async def _compare(places: int, steps: list[tuple[str, str]]) -> None:
    crowd = Crowd(places)
    expected = naive(places, steps)
    async with anyio.create_task_group() as tasks:
        for (what, agent), running in zip(steps, expected, strict=True):
            if what == "begin":
                tasks.start_soon(crowd.call, agent)
            else:
                for one, end in crowd.running:
                    if one == agent and not end.is_set():
                        end.set()
                        break
            await anyio.wait_all_tasks_blocked()
            assert Counter(one for one, _ in crowd.running) == running
        tasks.cancel_scope.cancel()
