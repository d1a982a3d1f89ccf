"""Nothing that an upstream sends can stop or end us.

Each law draws the nastiest text of each kind that it can think of and has a real server send it. The process lives, the
loop is never held for long, others are answered meanwhile, and the last good state stays in use. How long the loop was
held is told in processor time, which does not count what other programs of the machine do.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from faults.kit import SkippingClock, answers, fake, granted, running
from faults.test_metadata import GOOD, Listed, schema
from pool.http.http_kit import Seen, Send, answer, upstream
from pool.http.test_http_documents import fastapi
from pool.mcp.test_resources import faithful, project
from toolgrove import Config, Grove
from toolgrove.notation import stranger_document
from toolgrove.pool.http import source as sources

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
HELD = 0.3
"""Seconds of processor time, of all threads: collecting garbage counts, too. What this found took 0.5 to 33 s."""


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


# Documents ----------------------------------------------------------------------------------------

MANY = 100_000
MERGES = "\n".join(
    f"a{at}: &a{at}\n  <<: [{','.join([f'*a{at - 1}'] * 9)}]\n  k{at}: 1" if at else "a0: &a0 {z: 1}"
    for at in range(12)
)
ALIASES = "\n".join(f"a{at}: &a{at} [{','.join([f'*a{at - 1}'] * 9)}]" if at else "a0: &a0 [x]" for at in range(12))
TOO_MUCH: dict[str, str] = {
    "lists": "openapi: 3.0.0\nx: " + "[" * MANY,
    "mappings": "openapi: 3.0.0\nx: " + "{a: " * MANY,
    "entries": "openapi: 3.0.0\nx:\n  " + "- " * MANY,
    "keys of keys": "? " * MANY,
    "merges": f"openapi: 3.0.0\n{MERGES}",
    "aliases": f"openapi: 3.0.0\n{ALIASES}",
    "an alias in itself": "openapi: 3.0.0\nx: &a {y: [*a]}",
    "deeper by aliases": "\n".join(
        f"a{at}: &a{at} {'[' * 40}{f'*a{at - 1}' if at else 'x'}{']' * 40}" for at in range(9)
    ),
    "directives": "".join(f"%TAG !a{at}! x\n" for at in range(20_000)) + "--- {openapi: 3.0.0}",
    "words": "x: " + "a " * 2_000_000,
    "one word": "a" * 4_000_000,
    "lines": "x: |\n" + " a\n" * 1_000_000,
    "quoted": "x: '" + "''" * 1_000_000,
    "empty lines": "\n" * 4_000_000,
    "blanks": " " * 4_000_000,
    "sixties": "x: 1" + ":1" * 1_000_000,
    "digits": "x: " + "1" * 1_000_000,
    "documents": "--- a\n" * MANY,
    "anchors": "x: [" + "&a b," * MANY,
    "JSON lists": '{"x":' + "[" * MANY,
    "JSON objects": '{"x":' * MANY,
    "JSON of many lists": '{"x":[' + "[]," * 1_500_000 + "1]}",
    "JSON of many numbers": '{"x":[' + "1e5," * 1_000_000 + "1]}",
    "JSON of one text": '{"x":"' + "a" * 8_000_000 + '"}',
    "JSON of escapes": '{"x":"' + "\\n" * 2_000_000 + '"}',
    "JSON of blanks": '{"x":' + " " * 8_000_000 + "}",
    "JSON of digits": '{"x":' + "1" * 8_000_000 + "}",
    "JSON without an end": '{"x":"' + "a" * 4_000_000,
}


@pytest.mark.parametrize("kind", TOO_MUCH)
async def test_a_document_of_any_bytes_holds_nobody_up_and_the_last_good_one_stays_in_use(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_FOLLOW", 0.01)
    good = json.dumps(fastapi()).encode()
    given, clock = [good], SkippingClock()

    async def reply(seen: Seen, send: Send) -> None:
        await send(answer(body=given[0] if seen.target == "/api" else b'{"here": true}'))

    async with upstream(reply) as server:
        entry = {"openapi": f"{server.base}/api", "allowPrivate": True, "refresh": 60}
        agents = {"a": {"role": "editor", "tools": ["*"]}}
        config = Config.model_validate({"httpTools": {"shop": entry}, "agents": agents, "mcpServers": {"well": fake()}})
        async with Grove(config, clock=clock, patience=60) as grove:
            agent = await grove.agent("a")
            assert "error" not in await agent.call("shop_read_item", {"item_id": 3})
            given[0] = TOO_MUCH[kind].encode()
            async with watched():
                clock.skip(61)
                while "is used as it was" not in grove.pool.latest.sources["shop"].notice:
                    await answers(agent)
                    await anyio.sleep(0.01)
            fresh = await grove.agent("a")
            assert "error" not in await fresh.call("shop_read_item", {"item_id": 3})
            given[0] = json.dumps(fastapi(tags=[])).encode()
            clock.skip(61)
            while grove.pool.latest.sources["shop"].notice:
                await anyio.sleep(0.01)
            assert "error" not in await (await grove.agent("a")).call("shop_read_item", {"item_id": 3})


def read(text: str) -> Any:
    return stranger_document.read(text, nodes=10_000, depth=50, seconds=20)


HALVES: Any = ("Cs",)
TEXTS = st.text(st.characters(exclude_categories=HALVES, exclude_characters="\r\x85\u2028\u2029\ufeff"), max_size=8)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(TEXTS, PLAIN, max_size=5), st.sampled_from((None, 2)), st.booleans())
def test_a_document_is_read_as_it_was_written(value: Json, indent: int | None, ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    assert read(text) == value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stranger_document, "IN_ONE_GO", 0)
        assert read(text) == value
    assert read(yaml.safe_dump(value, allow_unicode=not ascii)) == value


WORDS = st.sampled_from(
    (
        *("a", "b", "yes", "no", "~", "null", "1", "0x1F", "0o7", "010", "1_000", "1.5", "1e3", "1.0e+3", "-3", "1:30"),
        *("'x y'", '"\\u00e9"', "true", "False", "!!str 7", "! 7", "!!int '7'", "!!float 3", "", "+.5", "2.", "."),
    )
)
NODES = st.recursive(
    WORDS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(one or 'c' for one in items)}]"),
        st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=3).map(
            lambda items: "{" + ", ".join(f"{key}: {one or 'c'}" for key, one in items) + "}"
        ),
        st.just("*m"),
    ),
    max_leaves=8,
)
MAPPINGS = st.lists(st.tuples(st.sampled_from("abcd"), NODES.filter(lambda one: "*m" not in one)), max_size=3).map(
    lambda items: "{" + ", ".join(f"{key}: {one or 'c'}" for key, one in items) + "}"
)


@given(MAPPINGS, MAPPINGS, NODES, st.sampled_from(("<<: *m", "<<: [*m, *o]", "<<: {a: 7}", "d: 8")))
def test_anchors_and_merge_keys_mean_what_they_mean_to_pyyaml(one: str, other: str, node: str, merge: str) -> None:
    text = f"m: &m {one}\no: &o {other}\nx: {node}\ny:\n  b: 9\n  {merge}\n  a: [x]\n"
    assert read(text) == yaml.safe_load(text)
