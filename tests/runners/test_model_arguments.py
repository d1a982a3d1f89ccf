"""Every call that a model asks for is started and ends, whatever its arguments look like, with event and record."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runners.endpoint import ask, choice, say, scripted, serving, tool_call
from toolgrove import Config, Grove
from toolgrove.runners.openai import MAX_CALLS
from waiting import DEADLINE

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
WRITTEN = VALUES.map(json.dumps)
BROKEN = st.builds(
    lambda text, at, with_: text[:at] + with_ + text[at:], WRITTEN, st.integers(0, 20), st.text(max_size=3)
)
ARGUMENTS = st.one_of(
    WRITTEN,
    BROKEN,
    st.sampled_from(
        [
            "not json",
            "[1]",
            '{"nodeId": NaN}',
            '{"nodeId": "root", "nodeId": "root"}',
            '{"nodeId": "\\ud800"}',
            '{"nodeId": 1e999}',
            "[" * 2_000,
            '{"nodeId": ' + "[" * 300 + "]" * 300 + "}",
            '{"nodeId": "root"} ',
            '{"nodeId": "root"',
            " ",
        ]
    ),
)
NAMES = st.sampled_from(["get_node", "get_node", "search", "no_such_tool", "call_tool", "", "add_child"])
CALLS = st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=MAX_CALLS + 3)
AGENT = {"role": "reader", "tools": ["get_node", "search", "add_child"]}


def readable(text: str) -> bool:
    """Whether a strict reader takes a text for one JSON object."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        value = json.loads(text or "{}", object_pairs_hook=once)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict)


@given(CALLS)
@settings(max_examples=40, deadline=None)
@example([("get_node", "not json"), ("get_node", "[1]"), ("get_node", '{"nodeId": NaN}'), ("gone", "{}")])
@example([("get_node", '{"nodeId": "root"}')] * (MAX_CALLS + 2))
def test_every_call_of_a_model_has_its_events_its_record_and_its_count(calls: list[tuple[str, str]]) -> None:
    async def law() -> None:
        answers = [ask(*calls), say("done")]
        async with serving(scripted(*answers)) as endpoint:
            runner = {"kind": "openai", "url": endpoint.url, "model": "m", "stream": False}
            config = Config.model_validate({"agents": {"a": AGENT}, "runner": runner})
            async with Grove(config) as grove:
                events = [event async for event in grove.run("a", "Look.")]
                records = list(grove.audit)
        told = [json.loads(one["content"]) for one in endpoint.requests[-1].body["messages"] if one["role"] == "tool"]
        assert len(told) == len(calls)
        started = [event for event in events if event["type"] == "tool_started"]
        ended = {event["callId"]: event for event in events if event["type"] in ("tool_succeeded", "tool_failed")}
        assert sorted(event["tool"] for event in started) == sorted(name for name, _ in calls)
        assert [event["callId"] for event in started] == list({event["callId"]: None for event in started})
        assert {event["callId"] for event in started} == set(ended)
        assert sorted(record["callId"] for record in records) == sorted(ended)
        failed = sum("error" in answer for answer in told)
        finished = events[-1]
        assert (finished["succeeded"], finished["failed"]) == (len(calls) - failed, failed)
        assert failed == sum(event["type"] == "tool_failed" for event in ended.values())
        for at, ((name, text), answer) in enumerate(zip(calls, told, strict=True)):
            if name == "get_node" and at < MAX_CALLS and not readable(text.strip()):
                assert (answer["error"]["code"], answer["error"]["reason"]) == ("invalid_argument", "not_json")

    async def in_time() -> None:
        with anyio.fail_after(DEADLINE):
            await law()

    anyio.run(in_time)


@pytest.mark.anyio
async def test_what_cannot_be_read_is_told_to_whoever_follows_the_run() -> None:
    call = choice({"content": None, "tool_calls": [tool_call("get_node", "not json")]}, "tool_calls")
    async with serving(scripted(call, say("done"))) as endpoint:
        runner = {"kind": "openai", "url": endpoint.url, "model": "m", "stream": False}
        async with Grove(Config.model_validate({"agents": {"a": AGENT}, "runner": runner})) as grove:
            events = [event async for event in grove.run("a", "Look.")]
            (record,) = grove.audit
    assert [event["type"] for event in events] == ["tool_started", "tool_failed", "text", "run_finished"]
    assert "cannot be read" in events[1]["error"]["message"]
    assert (record["operation"], record["outcome"], record["error"]["reason"]) == ("get_node", "failure", "not_json")
