"""Servers that list too much, twice, or without end."""

from __future__ import annotations

import pytest

from faults.kit import Journal, answers, fake, running

pytestmark = pytest.mark.anyio


async def test_pages_are_followed_to_the_last() -> None:
    async with running({"up": fake("pages")}) as grove:
        receipt = (await grove.agent("a")).receipt
        assert [name for name in receipt if name.startswith("up_")] == [f"up_page_{page}" for page in range(5)]


async def test_a_name_that_a_server_lists_twice_is_nobodys_and_says_so() -> None:
    """Whichever came first could be the one that nobody looked at."""
    async with running({"bad": fake("dup_names"), "well": fake()}) as grove:
        agent = await grove.agent("a")
        await answers(agent, "bad")
        twin = agent.receipt["bad_twin"]
        assert twin.verdict == "unvalidated"
        assert "lists it" in twin.rule
        assert "bad_twin" not in [spec.name for spec in agent.tools]
        assert (await agent.call("bad_twin"))["error"]["code"] == "not_found"


@pytest.mark.parametrize("mode", ["cursor_loop", "cursor_endless"])
async def test_a_list_without_end_is_cut_off_and_says_so(mode: str, journal: Journal) -> None:
    async with running({"bad": fake(mode, journal), "well": fake()}, budget=10.0) as grove:
        agent = await grove.agent("a")
        await answers(agent)
        assert agent.receipt.sources["bad"].problem
        assert "no answer within" not in agent.receipt.sources["bad"].problem
        assert journal.received("tools/list") < 2_000


@pytest.mark.parametrize(("mode", "size"), [("giant_list", 20_000), ("heavy_list", 40_000_000)])
async def test_a_list_beyond_all_measure_is_refused_and_says_so(mode: str, size: int, journal: Journal) -> None:
    async with running({"bad": fake(mode, journal, size), "well": fake()}, budget=10.0) as grove:
        agent = await grove.agent("a")
        await answers(agent)
        assert agent.receipt.sources["bad"].problem
        assert "no answer within" not in agent.receipt.sources["bad"].problem
        assert not [name for name in agent.receipt if name.startswith("bad_")]


async def test_a_list_of_a_thousand_tools_is_taken() -> None:
    async with running({"up": fake("giant_list", option=1_000)}, budget=10.0) as grove:
        agent = await grove.agent("a")
        assert sum(name.startswith("up_") for name in agent.receipt) == 1_000
        assert agent.receipt["up_tool_999"].verdict == "granted"


async def test_one_definition_that_is_too_heavy_does_not_take_the_others_along() -> None:
    async with running({"bad": fake("heavy_list", option=1_000_000)}) as grove:
        agent = await grove.agent("a")
        assert agent.receipt["bad_heavy"].verdict == "unvalidated"
        assert agent.receipt["bad_heavy"].rule
        await answers(agent, "bad")


async def test_entries_that_are_no_definitions_do_not_take_the_others_along() -> None:
    async with running({"bad": fake("odd_list")}) as grove:
        agent = await grove.agent("a")
        await answers(agent, "bad")
        assert [spec.name for spec in agent.tools if spec.name.startswith("bad_")] == ["bad_echo"]
        assert agent.receipt["bad_bare"].verdict == "unvalidated"
