"""Nothing that an upstream sends can stop or end us.

Each law draws the nastiest text of each kind that it can think of and has a real server send it. The process lives, the
loop is never held for long, others are answered meanwhile, and the last good state stays in use. How long the loop was
held is told in processor time, which does not count what other programs of the machine do.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from faults.kit import answers, fake, granted, running
from faults.test_metadata import GOOD, Listed, schema
from pool.mcp.test_resources import faithful, project

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
HELD = 0.15
"""Seconds of processor time, of all threads: seven times the promise. What this found took from 0.2 s to 33 s."""


@asynccontextmanager
async def watched() -> AsyncIterator[None]:
    """The loop goes round all along."""
    longest = 0.0

    async def look() -> None:
        nonlocal longest
        while True:
            before = time.process_time()
            await anyio.sleep(0)
            longest = max(longest, time.process_time() - before)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        yield
        tasks.cancel_scope.cancel()
    assert longest < HELD, f"the loop was held for {longest:.2f} s"


UNITS = (
    *(
        "a",
        "Z",
        "7",
        "aZ7",
        "_",
        "-",
        "a_",
        "a-",
        "_a-",
        "a_b ",
        "<",
        "</",
        "< /",
        " ",
        "\t",
        "\n",
        "&",
        "&#",
        "%41",
        "\\u",
    ),
    *("ignore ", "ignore all ", "ignore all previous ", "do not tell ", "never ", "before using any ", "<important "),
    *(
        "instead of calling other ",
        "system ",
        "don't ",
        "https://",
        "//a:",
        "eyJ-",
        "{",
        "[",
        "é",
        "日本",
        "😀",
        "$ref",
    ),
)


def long_word(draw: random.Random, most: int) -> str:
    """A run of something, with something else before and behind it."""
    unit = draw.choice(UNITS)
    ends = [draw.choice(("", *UNITS)) for _ in range(2)]
    return ends[0] + unit * (draw.choice((most // 8, most - 100)) // len(unit.encode())) + ends[1]


def definition(draw: random.Random, number: int) -> Json:
    """A legal definition of nearly the largest size, with the nasty text in a place that is drawn."""
    one: Json = {"name": f"nasty_{number}", "inputSchema": schema()}
    text = long_word(draw, 7_500)
    place = draw.choice(("description", "default", "enum", "keys", "deep", "many"))
    if place == "description":
        return {**one, "description": text}
    if place == "enum":
        return {**one, "inputSchema": schema(enum=[f"{text[:40]}_{at}" for at in range(600)])}
    if place == "keys":
        return {**one, "inputSchema": schema(default={text * 3: [f"a_{at}" for at in range(1_500)]})}
    if place == "deep":
        value: Any = long_word(draw, 40_000)
        for _ in range(24):
            value = {"x_y": value}
        return {**one, "inputSchema": schema(default=value)}
    if place == "many":
        return {**one, "inputSchema": schema(default=[0] * 12_000)}
    return {**one, "inputSchema": schema(default=long_word(draw, 60_000))}


@pytest.mark.parametrize("seed", range(3))
async def test_definitions_of_the_nastiest_text_hold_nobody_up(seed: int, tmp_path: Path) -> None:
    draw, listed = random.Random(seed), Listed(tmp_path / "tools.json")
    listed.write(GOOD)
    async with running({"up": fake("file", option=listed.path), "well": fake()}) as grove:
        agent = await grove.agent("a")
        await answers(agent, "up")
        for turn in range(2):
            marker = {**GOOD, "name": f"marker{turn}"}
            listed.write(GOOD, *(definition(draw, number) for number in range(25)), marker)
            async with watched():
                await agent.call("up_announce")
                fresh = await granted(grove, f"up_marker{turn}")
                await answers(agent)
            await answers(fresh, "up")


def prompts(draw: random.Random) -> Iterator[Json]:
    for number in range(100):
        about = long_word(draw, 7_500)
        yield {
            "name": f"nasty_{number}",
            "description": long_word(draw, 7_500),
            "arguments": [{"name": "x", "description": about}],
            "_meta": {"x": long_word(draw, 20_000)},
        }


@pytest.mark.parametrize("seed", range(2))
async def test_prompts_of_the_nastiest_text_hold_nobody_up_at_any_listing(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    good = {"name": "greet", "description": "Greets somebody."}
    said = {"tools": [], "results": {}, "prompts": [good, *prompts(draw)], "told": {"greet": {"messages": []}}}
    servers = {"p": faithful(tmp_path, "p", said), "well": fake()}
    async with project(servers, agent={"prompts": ["p_*"], "tools": ["*"]}) as grove:
        agent = await grove.agent("agent")
        async with watched():
            for _ in range(3):
                assert "p_greet" in [one["name"] for one in await agent.prompts.listed()]
                await answers(agent)
