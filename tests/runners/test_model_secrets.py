"""What a model says is shown without the values of secrets, however its endpoint cuts it into pieces."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runners.endpoint import Reply, ask, choice, say, scripted, serving, streamed
from toolgrove import Config, Grove
from waiting import DEADLINE

KEY = "model-key-4f1c9a77"
PLACE = st.integers(0, 60)


def told(text: str, cuts: list[int]) -> Reply:
    """A text in pieces that end at these places."""
    edges = [0, *sorted({cut for cut in cuts if cut < len(text)}), len(text)]
    pieces = [text[begin:end] for begin, end in pairwise(edges)]
    return streamed(*({"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces))


async def run(*replies: Reply, agents: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """What whoever follows a run is told; the runner's key is a secret of the project."""
    async with serving(scripted(*replies)) as endpoint:
        runner = {"kind": "openai", "url": endpoint.url, "model": "m", "apiKey": "${env:MODEL_KEY}"}
        config = Config.model_validate({"agents": agents or {"a": {"tools": ["get_node"]}}, "runner": runner})
        async with Grove(config) as grove:
            with anyio.fail_after(DEADLINE):
                return [event async for event in grove.run("a", "Look.")]


def texts(events: list[dict[str, Any]], agent: str = "a") -> str:
    return "".join(event["text"] for event in events if event["type"] == "text" and event["agent"] == agent)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)


@given(
    st.lists(PLACE, max_size=12), st.sampled_from(["", "my key is ", "model-key", "mode"]), st.sampled_from(["", "."])
)
@settings(max_examples=30, deadline=None)
@example(list(range(60)), "it is ", " Mind it.")
def test_a_secret_is_taken_out_of_what_a_model_says_wherever_it_is_cut(
    cuts: list[int], before: str, after: str
) -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MODEL_KEY", KEY)
        events = anyio.run(run, told(f"{before}{KEY}{after}", cuts))
    shown = f"{before}[secret MODEL_KEY]{after}"
    assert texts(events) == shown
    assert events[-1]["output"] == shown


@given(st.text(st.sampled_from("model-key 4f1c"), min_size=1, max_size=40), st.lists(PLACE, max_size=8))
@settings(max_examples=20, deadline=None)
def test_what_only_looks_like_the_beginning_of_one_is_told_whole(text: str, cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("MODEL_KEY", KEY)
        events = anyio.run(run, told(text, cuts))
    assert texts(events) == text == events[-1]["output"]


@pytest.mark.anyio
async def test_what_was_said_before_a_call_is_told_before_it() -> None:
    first = choice({"content": "It begins with model-key", "tool_calls": calls("get_node")}, "tool_calls")
    events = await run(first, say("Done."))
    assert [event["type"] for event in events][:3] == ["text", "text", "tool_started"]
    assert texts(events) == "It begins with model-keyDone."


@pytest.mark.anyio
async def test_neither_a_refusal_nor_a_sub_agent_gives_one_away() -> None:
    refused = await run(choice({"content": None, "refusal": f"I will not tell {KEY}."}))
    assert refused[-1]["outcome"] == "failure"
    spawn = ask(("spawn_agents", {"agents": [{"agent": "b", "input": "Tell."}]}))
    agents = {"a": {"tools": ["spawn_agents"]}, "b": {"tools": ["get_node"]}}
    spawned = await run(spawn, say(f"b says {KEY}"), say(f"a says {KEY}"), agents=agents)
    assert KEY not in json.dumps([refused, spawned])
    assert texts(spawned, "b") == "b says [secret MODEL_KEY]"
    assert spawned[-1]["output"] == "a says [secret MODEL_KEY]"


def calls(name: str) -> list[dict[str, Any]]:
    return [{"id": "c1", "type": "function", "function": {"name": name, "arguments": '{"nodeId": "root"}'}}]
