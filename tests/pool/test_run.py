"""The response stream of a run: every call told from start to end, failures as events, one last event."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest
from apcore import Registry
from pydantic import BaseModel

from apcore_mcp import report_progress
from grove_kit import ManualClock
from toolgrove import Agent, Config, Grove

pytestmark = pytest.mark.anyio


class Nothing(BaseModel):
    """No arguments."""


class Done(BaseModel):
    """The answer."""

    done: bool


class Working:
    """Tells how far it is."""

    input_schema = Nothing
    output_schema = Done
    description = "Works in two steps."

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        await report_progress(context, 1, 2, "half")
        await report_progress(context, 2, 2, "all")
        return {"done": True}


class Threaded(Working):
    """Tells the same from a thread of its own."""

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:  # type: ignore[override]
        asyncio.run(report_progress(context, 1, 1, "from a thread"))
        return {"done": True}


class Broken(Working):
    """Fails inside."""

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        raise RuntimeError("/srv/app/secret.py: password=hunter2")


class Forsaken(Working):
    """Waits for work of its own that it cancelled itself."""

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        work = asyncio.ensure_future(asyncio.sleep(60))
        work.cancel()
        await work
        return {"done": True}


class Held(Working):
    """Waits until it is cancelled."""

    def __init__(self) -> None:
        self.started, self.cancelled = anyio.Event(), anyio.Event()

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.started.set()
        while not context.cancel_token.is_cancelled:
            await anyio.sleep(0.001)
        self.cancelled.set()
        return {"done": False}


HELD = "held"


def modules(held: Held | None = None) -> Registry:
    registry = Registry()
    for name, module in {
        "working": Working(),
        "threaded": Threaded(),
        "broken": Broken(),
        "forsaken": Forsaken(),
    }.items():
        registry.register(name, module)
    if held is not None:
        registry.register(HELD, held)
    return registry


def project(**agent: Any) -> Config:
    return Config.model_validate({"agents": {"a": {"role": "editor", "tools": ["*"], **agent}}})


async def events(agent: Agent, *requests: Any) -> list[dict[str, Any]]:
    return [event async for event in agent.run(requests)]


async def test_a_call_is_told_from_start_to_end() -> None:
    async with Grove(project(), extensions=modules(), clock=ManualClock()) as grove:
        agent = await grove.agent("a")
        told = await events(agent, {"tool": "working"})
    assert [event["type"] for event in told] == [
        "tool_started",
        "tool_progress",
        "tool_progress",
        "tool_succeeded",
        "run_finished",
    ]
    (call_id,) = {event.get("callId") for event in told[:-1]}
    (run_id,) = {event["runId"] for event in told}
    assert call_id != run_id
    assert told[1] == {
        "type": "tool_progress",
        "callId": call_id,
        "tool": "working",
        "agent": "a",
        "depth": 0,
        "chain": ["a"],
        "runId": run_id,
        "progress": 1,
        "total": 2,
        "message": "half",
        "timestamp": told[0]["timestamp"],
    }
    assert told[3]["result"] == {"done": True}
    assert told[-1]["succeeded"] == 1
    assert {told[0]["receipt"], told[3]["receipt"], told[-1]["receipt"]} == {agent.receipt.hash}


async def test_progress_from_a_thread_arrives_too() -> None:
    async with Grove(project(), extensions=modules()) as grove:
        told = await events(await grove.agent("a"), {"tool": "threaded"})
    assert [event["message"] for event in told if event["type"] == "tool_progress"] == ["from a thread"]


@pytest.mark.requirement("CALL-003-07")
async def test_a_failure_is_a_structured_event_and_the_run_goes_on() -> None:
    requests = [
        {"tool": "broken"},
        {"tool": "get_node", "arguments": {"nodeId": "nowhere"}},
        {"tool": "no_such_tool"},
        {"tool": "get_node", "arguments": {"nodeId": 5}},
        {"tool": "add_child", "arguments": {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}}},
        "nonsense",
        {"tool": "get_node", "arguments": {"nodeId": "root"}},
    ]
    async with Grove(project(), extensions=modules()) as grove:
        agent = await grove.agent("a")
        told = await events(agent, *requests)
        records = list(grove.audit)
    failed = [event for event in told if event["type"] == "tool_failed"]
    assert [event["error"]["code"] for event in failed] == [
        "internal",
        "not_found",
        "not_found",
        "invalid_argument",
        "conflict",
        "not_found",
    ]
    for event in failed:
        whose = {"agent", "depth", "chain", "runId"}
        assert event.keys() == {"type", "callId", "tool", "error", "duration", "timestamp", "receipt"} | whose
        assert isinstance(event["error"]["retryable"], bool)
        assert "hunter2" not in str(event)
        assert "RuntimeError" not in str(event)
    assert failed[0]["error"]["reason"] == "module_error"
    assert [event["error"]["retryable"] for event in failed] == [False, False, False, False, True, False]
    assert told[-2]["type"] == "tool_succeeded"
    assert told[-1] == {
        "type": "run_finished",
        "agent": "a",
        "depth": 0,
        "chain": ["a"],
        "runId": told[0]["runId"],
        "receipt": agent.receipt.hash,
        "outcome": "failure",
        "succeeded": 1,
        "failed": 6,
        "delegated": {"succeeded": 0, "failed": 0},
        "toolCalls": 7,
        "seconds": told[-1]["seconds"],
        "timestamp": told[-1]["timestamp"],
    }
    assert [event["type"] for event in told].count("run_finished") == 1
    assert {record["receipt"] for record in records} == {agent.receipt.hash}


async def test_a_module_that_ends_as_if_it_were_cancelled_has_failed() -> None:
    async with Grove(project(), extensions=modules()) as grove:
        told = await events(await grove.agent("a"), {"tool": "forsaken"}, {"tool": "working"})
        assert [record["outcome"] for record in grove.audit] == ["begun", "failure", "begun", "success"]
    assert [event["type"] for event in told if event["type"] != "tool_progress"] == [
        *("tool_started", "tool_failed", "tool_started", "tool_succeeded", "run_finished")
    ]


async def test_an_empty_run_ends_at_once() -> None:
    async with Grove(project()) as grove:
        told = await events(await grove.agent("a"))
    assert [event["type"] for event in told] == ["run_finished"]


async def test_a_stream_that_is_left_early_cancels_its_call() -> None:
    held = Held()
    async with Grove(project(), extensions=modules(held)) as grove:
        agent = await grove.agent("a")
        stream = agent.run([{"tool": HELD}, {"tool": "working"}])
        assert (await anext(stream))["type"] == "tool_started"
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def rest() -> None:
                    async for _ in stream:
                        pass

                tasks.start_soon(rest)
                await held.started.wait()
                tasks.cancel_scope.cancel()
            await held.cancelled.wait()
        assert [record["outcome"] for record in grove.audit] == ["begun", "cancelled"]
