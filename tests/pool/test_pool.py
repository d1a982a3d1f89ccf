"""The pool itself: one snapshot of many sources, rebuilt once, and no source in another's way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from faults.kit import fake
from grove_kit import ManualClock
from toolgrove import Agent, Config, Grove
from toolgrove.events import PoolChanged
from toolgrove.pool.naming import pool_name
from toolgrove.pool.offer import Offer, Unavailable
from toolgrove.pool.pool import Pool
from toolgrove.types import Annotations, Call, Kind, Result, Tool, ToolSpec

pytestmark = pytest.mark.anyio


class Shelf:
    """A source that offers what lies on it, when it is let."""

    kind: Kind = "mcp"

    def __init__(self, name: str, *tools: str) -> None:
        self.name = name
        self.tools = list(tools)
        self.asked = 0
        self.open = anyio.Event()
        self.open.set()
        self.problem: str | None = None
        self.crash: Exception | None = None
        self.ended = anyio.Event()
        self.changed: Callable[[], None] = lambda: None

    async def run(self, changed: Callable[[], None]) -> None:
        self.changed = changed
        try:
            if self.crash is not None:
                raise self.crash
            await anyio.sleep_forever()
        finally:
            self.ended.set()

    async def discover(self) -> Sequence[Offer]:
        self.asked += 1
        await self.open.wait()
        if self.problem is not None:
            raise Unavailable(self.problem)
        return [self.offer(name) for name in self.tools]

    def last_known(self) -> Sequence[Offer]:
        return [replace(self.offer("remembered"), tool=None)]

    def offer(self, own_name: str) -> Offer:
        name = pool_name(self.name, own_name)
        spec = ToolSpec(
            name=name,
            description="",
            input_schema={"type": "object"},
            output_schema={},
            annotations=Annotations(),
            source=self.name,
        )
        tool = Tool(spec=spec, source=self, mutates=False, kind="mcp", own_name=own_name, definition="d")
        return Offer(name=name, own_name=own_name, source=self.name, kind="mcp", tool=tool)

    async def call(self, call: Call) -> Result:
        return {}


@asynccontextmanager
async def running(*shelves: Shelf, builtin: Sequence[Offer] = (), budget: float = 0.05) -> AsyncIterator[Pool]:
    pool = Pool(builtin, shelves, budget=budget)
    with anyio.fail_after(10):
        async with pool.running():
            yield pool


async def test_a_hundred_who_ask_at_once_cause_one_rebuild() -> None:
    shelf = Shelf("s", "one")
    shelf.open = anyio.Event()
    async with running(shelf, budget=5) as pool:
        seen: list[int] = []

        async def ask() -> None:
            seen.append((await pool.snapshot()).revision)

        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            shelf.open.set()
        assert seen == [1] * 100
        assert shelf.asked == 1
        await pool.snapshot()
        assert shelf.asked == 1


async def test_whoever_started_the_rebuild_may_go_away() -> None:
    shelf = Shelf("s", "one")
    shelf.open = anyio.Event()
    async with running(shelf, budget=5) as pool, anyio.create_task_group() as tasks:
        impatient = anyio.CancelScope()

        async def ask_and_leave() -> None:
            with impatient:
                await pool.snapshot()

        tasks.start_soon(ask_and_leave)
        await anyio.wait_all_tasks_blocked()
        impatient.cancel()
        await anyio.wait_all_tasks_blocked()
        shelf.open.set()
        assert "s_one" in (await pool.snapshot()).offers


async def test_only_the_source_that_changed_is_asked_again() -> None:
    one, two = Shelf("one", "a"), Shelf("two", "b")
    async with running(one, two) as pool:
        before = await pool.snapshot()
        one.tools.append("c")
        one.changed()
        after = await pool.snapshot()
        assert after.offers.keys() - before.offers.keys() == {"one_c"}
        assert (one.asked, two.asked) == (2, 1)
        assert after.revision == before.revision + 1
        one.changed()
        assert await pool.snapshot() is after


async def test_a_source_that_does_not_answer_delays_nobody_beyond_the_budget() -> None:
    slow, quick = Shelf("slow", "a"), Shelf("quick", "b")
    slow.open = anyio.Event()
    async with running(slow, quick) as pool:
        snapshot = await pool.snapshot()
        assert snapshot.offers["quick_b"].standing == "ready"
        assert snapshot.sources["slow"].problem == "no answer within the start-up budget of 0.05 s"
        remembered = snapshot.offers["slow_remembered"]
        assert (remembered.standing, remembered.tool) == ("unavailable", None)
        slow.open.set()
        slow.changed()
        assert (await pool.snapshot()).offers["slow_a"].standing == "ready"


async def test_a_source_that_goes_down_keeps_its_tools_in_the_list_as_unavailable() -> None:
    shelf = Shelf("s", "one")
    async with running(shelf) as pool:
        await pool.snapshot()
        shelf.problem = "it is being repaired"
        shelf.changed()
        offer = (await pool.snapshot()).offers["s_one"]
        assert (offer.standing, offer.reason, offer.tool) == ("unavailable", "it is being repaired", None)


async def test_a_source_that_breaks_takes_nobody_along() -> None:
    broken, whole = Shelf("broken", "a"), Shelf("whole", "b")
    broken.crash = RuntimeError("boom")
    async with running(broken, whole) as pool:
        await broken.ended.wait()
        assert {"broken_a", "whole_b"} <= (await pool.snapshot()).offers.keys()
    assert whole.ended.is_set()


async def test_a_source_whose_memory_fails_takes_nobody_along() -> None:
    class Forgetful(Shelf):
        def last_known(self) -> Sequence[Offer]:
            raise OSError("the state file cannot be read")

    forgetful, whole = Forgetful("forgetful", "a"), Shelf("whole", "b")
    forgetful.problem = "it is down"
    async with running(forgetful, whole) as pool:
        snapshot = await pool.snapshot()
        assert snapshot.sources["forgetful"].problem == "it is down"
        assert snapshot.offers["whole_b"].standing == "ready"
        forgetful.problem = None
        forgetful.changed()
        assert (await pool.snapshot()).offers["forgetful_a"].standing == "ready"


async def test_the_tool_that_was_there_first_keeps_its_name() -> None:
    """`a` with `b_x` and `a_b` with `x` are both `a_b_x`; who claims it later stands first in the file."""
    early, late = Shelf("a_b", "x"), Shelf("a", "other")
    async with running(late, early) as pool:
        assert (await pool.snapshot()).offers["a_b_x"].source == "a_b"
        late.tools = ["other", "b_x"]
        late.changed()
        snapshot = await pool.snapshot()
        assert (snapshot.offers["a_b_x"].source, [offer.source for offer in snapshot.rejected]) == ("a_b", ["a"])
        again = Shelf("a_b", "x")
        pool.replace([late, again])
        assert "a_b_x" not in pool.latest.offers, "a holder whose section changed does not lose its name meanwhile"
        assert (await pool.snapshot()).offers["a_b_x"].source == "a_b"
        again.tools = []
        again.changed()
        assert (await pool.snapshot()).offers["a_b_x"].source == "a"


async def test_a_source_that_is_replaced_before_it_began_never_runs_on() -> None:
    early, late = Shelf("s", "early"), Shelf("s", "late")
    async with running(early) as pool:
        pool.replace([late])
        assert list((await pool.snapshot()).offers) == ["s_late"]
        await early.ended.wait()
        assert not late.ended.is_set()


async def test_a_name_that_two_sources_claim_at_once_is_the_first_ones_and_both_are_named() -> None:
    async with running(Shelf("a", "b_c"), Shelf("a_b", "c", "d")) as pool:
        snapshot = await pool.snapshot()
    assert (snapshot.offers["a_b_c"].source, snapshot.offers["a_b_c"].standing) == ("a", "ready")
    (rejected,) = snapshot.rejected
    assert rejected.reason == "'a_b_c' is a tool of 'a' already, which keeps it: rename 'a_b'"
    assert snapshot.offers["a_b_d"].standing == "ready"


async def test_a_source_that_repeats_a_name_has_that_tool_refused() -> None:
    async with running(Shelf("s", "x", "y", "x")) as pool:
        offers = (await pool.snapshot()).offers
    assert offers["s_x"].standing == "unvalidated"
    assert offers["s_y"].standing == "ready"


async def test_a_built_in_name_can_never_be_taken_over() -> None:
    builtin = replace(Shelf("workspace", "x").offer("x"), name="get_node", kind="builtin")
    async with running(Shelf("get", "node"), builtin=[builtin]) as pool:
        snapshot = await pool.snapshot()
    assert snapshot.offers["get_node"] is builtin
    [rejected] = snapshot.rejected
    assert (rejected.source, rejected.standing) == ("get", "unvalidated")
    assert "cannot be taken over" in rejected.reason


async def test_a_claim_on_a_built_in_name_that_comes_later_is_told_too() -> None:
    builtin = replace(Shelf("workspace", "x").offer("x"), name="get_node", kind="builtin")
    shelf = Shelf("get", "x")
    async with running(shelf, builtin=[builtin]) as pool:
        assert not (await pool.snapshot()).rejected
        shelf.tools.append("node")
        shelf.changed()
        [rejected] = (await pool.snapshot()).rejected
        assert rejected.name == "get_node"


def test_a_long_name_is_cut_and_stays_told_apart() -> None:
    one, two = pool_name("server", "x" * 100 + "1"), pool_name("server", "x" * 100 + "2")
    assert len(one) == len(two) == 64
    assert one != two
    assert pool_name("server", "a.b/c") == "server_a_b_c"


@pytest.mark.requirement("POOL-002-02")
async def test_a_changed_configuration_invalidates_the_pool_and_the_next_resolution_rebuilds_it() -> None:
    def project(**tools: Any) -> Config:
        entries = {name: {"description": "x", "url": url} for name, url in tools.items()}
        return Config.model_validate({"httpTools": entries, "agents": {"a": {"tools": ["*"]}}})

    async with Grove(project(one="http://127.0.0.1/1"), clock=ManualClock()) as grove:
        heard: list[Any] = []
        grove.listen(heard.append)
        first = await grove.agent("a")
        assert first.receipt["one"].verdict == "granted"
        await grove.reload(project(one="http://127.0.0.1/1", two="http://127.0.0.1/2"))
        added = await grove.agent("a")
        assert added.receipt["two"].verdict == "granted"
        assert added.receipt.revision > first.receipt.revision
        await grove.reload(project(two="http://127.0.0.1/3"))
        changed = await grove.agent("a")
        assert "one" not in changed.receipt
        assert "two" in changed.receipt
        assert changed.receipt.hash != added.receipt.hash
        assert "one" in first.receipt
        assert {type(event) for event in heard} == {PoolChanged}


@pytest.mark.requirement("POOL-002-02")
async def test_a_server_that_is_added_updated_or_removed_in_the_configuration_is_so_at_the_next_resolution() -> None:
    def project(**servers: Any) -> Config:
        return Config.model_validate({"mcpServers": servers, "agents": {"a": {"tools": ["*"]}}})

    def tools_of(agent: Agent, server: str) -> set[str]:
        return {spec.name for spec in agent.tools if spec.source == server}

    async with Grove(project(one=fake("few"))) as grove:
        first = await grove.agent("a")
        assert tools_of(first, "one")
        assert not tools_of(first, "two")
        await grove.reload(project(one=fake("few"), two=fake("few")))
        added = await grove.agent("a")
        assert {name.removeprefix("two_") for name in tools_of(added, "two")} == {
            name.removeprefix("one_") for name in tools_of(first, "one")
        }
        assert tools_of(added, "one") == tools_of(first, "one")
        await grove.reload(project(one=fake("healthy"), two=fake("few")))
        updated = await grove.agent("a")
        known = {name for name in updated.receipt.verdicts if name.startswith("one_")}
        assert known > {name for name in first.receipt.verdicts if name.startswith("one_")}
        await grove.reload(project(two=fake("few")))
        removed = await grove.agent("a")
        assert not tools_of(removed, "one")
        assert tools_of(removed, "two") == tools_of(added, "two")
        assert not known & removed.receipt.verdicts.keys()
        for name in tools_of(first, "one"):
            assert (await removed.call(name))["error"]["code"] == "not_found"
        assert first.receipt.revision < added.receipt.revision < updated.receipt.revision < removed.receipt.revision
