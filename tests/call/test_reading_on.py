"""What is read on in a result that was cut is the result: all pages together, to the last character."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from apcore import Registry
from apcore.decorator import module
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grove_kit import config
from toolgrove import Agent, Grove

Json = dict[str, Any]
LONG = st.one_of(
    st.integers(1, 4_000).map(lambda size: "x" * size),
    st.integers(1, 400).map(lambda size: "".join(f"line {at} of it\n" for at in range(size))),
    st.integers(1, 400).map(lambda size: 'a "quoted" \\ é\U0001f333\x85' * size),
    st.text(st.sampled_from('ab \n\r\t\u2028"\\é\0'), max_size=60),
)
KEYS = st.sampled_from(["a", "b/c", "~d", "", "0", "né"])
VALUES = st.recursive(
    st.one_of(LONG, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
LAW = settings(max_examples=30, deadline=None)
MOST = 200
"""Tokens that an answer may have."""


def serving(value: Json) -> Grove:
    """A project whose one module answers this, for an agent that reads little at a time."""
    registry = Registry()

    def give() -> Json:
        return value

    module(give, id="give", registry=registry)
    agents = {"a": {"role": "editor", "tools": ["*"], "results": {"maxTokens": MOST}}}
    return Grove(config(agents=agents, toolBudget=100_000), extensions=registry)


async def kept(agent: Agent) -> str:
    """The result, cut; and the id under which the whole of it is kept."""
    answer = await agent.call("give", {})
    told: str = answer["_meta"]["toolgrove/result"]["resultId"]
    return told


async def pages(agent: Agent, **asked: Any) -> list[Json]:
    """Every page, from the first to the one that names no next."""
    found: list[Json] = []
    page = 1
    while True:
        answer = await agent.call("read_result", {**asked, "page": page})
        assert "error" not in answer, answer
        assert answer["page"] == page
        found.append(answer)
        assert len(json.dumps(answer, ensure_ascii=False)) <= MOST * 4 * 1.2 + 100
        if "nextPage" not in answer:
            break
        assert answer["nextPage"] == page + 1
        page += 1
    assert {one["pages"] for one in found} == {len(found)}
    return found


def at(value: Any, path: str) -> Any:
    """What a JSON pointer leads to."""
    for key in path.split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def pointer(path: str, key: object) -> str:
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"


def check_whole(value: Any, read: list[Json], top: str = "") -> None:
    """Every page shows what stands at its place, and together they show everything, once."""
    shown: list[str] = []
    texts: dict[str, str] = {}
    for page in read:
        path = page.get("path", "")
        there = at(value, path)
        if "text" in page:
            assert page.get("at", 0) == len(texts.get(path, ""))
            texts[path] = texts.get(path, "") + page["text"]
        elif "items" in page:
            first = page.get("at", 0)
            assert json.dumps(there[first : first + len(page["items"])]) == json.dumps(page["items"])
            assert page["total"] == len(there)
            shown += [pointer(path, first + number) for number in range(len(page["items"]))]
        elif "entries" in page:
            assert page["total"] == len(there)
            for key, one in page["entries"].items():
                assert json.dumps(there[key]) == json.dumps(one)
                shown.append(pointer(path, key))
        else:
            assert json.dumps(there) == json.dumps(page["value"])
            shown.append(path)
    assert len(shown) == len(set(shown)), "shown twice"

    def covered(one: Any, path: str) -> bool:
        if path in shown:
            return True
        if isinstance(one, str):
            return texts.get(path) == one
        if not one and isinstance(one, list | dict):
            return any(page.get("path", "") == path for page in read)
        children = enumerate(one) if isinstance(one, list) else one.items() if isinstance(one, dict) else None
        return children is not None and all(covered(inner, pointer(path, key)) for key, inner in children)

    assert covered(at(value, top), top)


def run(law: Callable[[Agent], Any], value: Json) -> None:
    async def within() -> None:
        async with serving(value) as grove:
            await law(await grove.agent("a"))

    anyio.run(within)


@given(VALUES)
@LAW
@example("\n".join(f"line {at:06d} of the long report" for at in range(6_000)))
@example("x" * 160_000)
@example([["y" * 5_000], {"a": {"b": ["z" * 3_000, 1]}}])
def test_all_pages_of_a_result_are_the_result(value: Any) -> None:
    whole = {"result": value, "more": "m" * 2_000}

    async def law(agent: Agent) -> None:
        result_id = await kept(agent)
        check_whole(whole, await pages(agent, resultId=result_id))
        path = "/result"
        check_whole(whole, await pages(agent, resultId=result_id, path=path), path)

    run(law, whole)


@given(st.lists(st.text(st.sampled_from('abcxyz é"\r'), max_size=300), min_size=1, max_size=60), st.sampled_from("aé"))
@LAW
def test_all_pages_of_a_search_are_the_lines_that_match(lines: list[str], word: str) -> None:
    whole = {"text": "\n".join(lines), "more": "m" * 4_000}

    async def law(agent: Agent) -> None:
        result_id = await kept(agent)
        found = await pages(agent, resultId=result_id, path="/text", query=word)
        wanted = [f"{number}: {line}" for number, line in enumerate(whole["text"].split("\n"), 1) if word in line]
        assert "".join(page["text"] for page in found) == "\n".join(wanted)
        assert found[0]["lines"] == len(wanted)

    run(law, whole)


def test_a_search_looks_into_what_is_too_large_for_one_page() -> None:
    rows = [{"id": number, "log": "\n".join(f"{number}-{line}" for line in range(900))} for number in range(3)]
    whole = {"rows": rows, "needle": "x"}

    async def law(agent: Agent) -> None:
        result_id = await kept(agent)
        found = await pages(agent, resultId=result_id, query="2-77")
        assert {page["path"] for page in found} == {"/rows/2/log"}
        text = "".join(page["text"] for page in found)
        assert text.split("\n") == [f"{line + 1}: 2-{line}" for line in (77, *range(770, 780))]
        nothing = await pages(agent, resultId=result_id, query="nowhere")
        assert nothing == [{"page": 1, "pages": 1, "total": 0, "entries": {}}]

    run(law, whole)


@pytest.mark.anyio
async def test_the_first_answer_names_the_call_that_reads_on() -> None:
    async with serving({"result": "x" * 160_000}) as grove:
        agent = await grove.agent("a")
        call = agent.begin("give", {})
        result = await agent.send(call)
        assert call.shortened is not None
        told = call.shortened.text
        result_id = call.shortened.meta["resultId"]
        assert f'read_result {{"resultId": "{result_id}", "page": 1}}' in told
        assert "error" not in result
