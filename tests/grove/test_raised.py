"""Whatever a module of the project raises, its call ends once: one answer, one final record, one final event."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest

from grove_kit import config
from raised import FORMS, SECRET, TOLD, raising_registry, refused
from toolgrove import Config, Grove

pytestmark = pytest.mark.anyio
CALLS = [(form, kind) for kind in TOLD for form in FORMS]


def project() -> Config:
    return config(agents={"a": {"role": "editor", "tools": ["raise-*", "echo"]}}, workspace={})


def answer_of(tool: str, answer: dict[str, Any], kind: str) -> None:
    """What an agent is told of the error, and that it is told no more."""
    error = answer["error"]
    assert (error["code"], error["reason"]) == refused(tool.replace("-", "."), kind), (tool, kind, error)
    assert SECRET not in str(answer), (tool, kind)


def finals(grove: Grove) -> Counter[str]:
    """How many final records each call has; one that is begun only has none."""
    records = list(grove.audit)
    found = Counter({record["callId"]: 0 for record in records})
    found.update(record["callId"] for record in records if record["outcome"] != "begun")
    return found


async def test_a_call_of_a_module_that_raises_anything_answers_and_leaves_one_final_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    async with Grove(project(), extensions=raising_registry()) as grove:
        agent = await grove.agent("a")
        for form, kind in CALLS:
            tool = form.replace(".", "-")
            answer_of(tool, await agent.call(tool, {"kind": kind}), kind)
        assert await agent.call("echo", {"kind": "still here"}) == {"kind": "still here"}
        assert list(finals(grove).values()) == [1] * (len(CALLS) + 1)


async def test_a_run_goes_on_past_a_module_that_raises_anything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    asked = [{"tool": form.replace(".", "-"), "arguments": {"kind": kind}} for form, kind in CALLS]
    async with Grove(project(), extensions=raising_registry()) as grove:
        agent = await grove.agent("a")
        events = [event async for event in agent.run([*asked, {"tool": "echo", "arguments": {"kind": "end"}}])]
        assert list(finals(grove).values()) == [1] * (len(CALLS) + 1)
    kinds = [event["type"] for event in events]
    assert kinds == ["tool_started", "tool_failed"] * len(asked) + ["tool_started", "tool_succeeded", "run_finished"]
    assert (events[-1]["failed"], events[-1]["succeeded"]) == (len(asked), 1)
    assert SECRET not in str(events)
