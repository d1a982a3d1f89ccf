"""The stream of a run tells of its sub-agents too: each of their calls, each failure, at any depth, within bounds."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from runners.scripted import Scripted, through
from toolgrove import Agent, Config, Grove
from toolgrove.call.run_events import BACKLOG
from toolgrove.errors import RunFailed
from toolgrove.runners import RunnableAgent, Runner

pytestmark = pytest.mark.anyio
DEADLINE = 60
AGENTS: dict[str, Any] = {
    "boss": {"tools": ["*"], "role": "editor"},
    "lead": {"tools": ["*", "spawn_agents"], "role": "editor"},
    "scout": {"tools": ["get_node"]},
}
ROOT = ("get_node", {"nodeId": "root"})
NOWHERE = ("get_node", {"nodeId": "nowhere"})
WHOSE = {"agent", "depth", "chain", "runId"}


def project(runner: Runner | None = None, **sections: Any) -> Grove:
    return Grove(Config.model_validate({"agents": AGENTS, **sections}), runner=runner or Scripted())


async def run(agent: Agent, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    requests = [{"tool": name, "arguments": arguments} for name, arguments in calls]
    with anyio.fail_after(DEADLINE):
        return [event async for event in agent.run(requests)]


def brief(events: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    return [(event["type"], event["agent"], event["depth"]) for event in events if event["type"] != "tool_progress"]


@pytest.mark.requirement("CALL-003-07")
async def test_what_sub_agents_do_at_any_depth_stands_between_start_and_end_of_the_call_that_sent_them() -> None:
    async with project() as grove:
        events = await run(await grove.agent("boss"), through(["lead", "scout"], ROOT, NOWHERE), ROOT)
        records = {record["callId"]: record for record in grove.audit}
    assert brief(events) == [
        ("tool_started", "boss", 0),
        ("tool_started", "lead", 1),
        ("tool_started", "scout", 2),
        ("tool_succeeded", "scout", 2),
        ("tool_started", "scout", 2),
        ("tool_failed", "scout", 2),
        ("tool_succeeded", "lead", 1),
        ("tool_succeeded", "boss", 0),
        ("tool_started", "boss", 0),
        ("tool_succeeded", "boss", 0),
        ("run_finished", "boss", 0),
    ]
    assert all(event.keys() >= WHOSE for event in events)
    assert len({event["runId"] for event in events} | {record["runId"] for record in records.values()}) == 1
    boss, lead, scout = (next(event for event in events if event["agent"] == name) for name in AGENTS)
    assert scout["chain"] == ["boss", "lead", "scout"]
    assert (lead["parentCallId"], scout["parentCallId"]) == (boss["callId"], lead["callId"])
    assert "parentCallId" not in boss
    for event in events[:-1]:
        record = records[event["callId"]]
        assert [record.get(key) for key in ("depth", "chain", "parentCallId")] == [
            event.get(key) for key in ("depth", "chain", "parentCallId")
        ]
    failed = next(event for event in events if event["type"] == "tool_failed")
    assert failed["error"]["code"] == "not_found"
    assert failed["error"]["retryable"] is False
    finished = events[-1]
    assert (finished["succeeded"], finished["failed"]) == (2, 0)
    assert finished["delegated"] == {"succeeded": 2, "failed": 1}


async def test_the_result_of_a_sub_agents_call_is_for_the_sub_agent_alone() -> None:
    async with project() as grove:
        events = await run(await grove.agent("boss"), through(["scout"], ROOT))
    inner, outer = [event for event in events if event["type"] == "tool_succeeded"]
    assert "result" not in inner
    assert outer["result"]["results"][0]["agent"] == "scout"


async def test_a_sub_agent_that_is_unknown_or_fails_is_a_failure_event_and_counted() -> None:
    class Failing(Scripted):
        async def run(self, agent: RunnableAgent, task: str) -> dict[str, Any]:
            if task == "model":
                raise RunFailed(
                    "The model did not answer; the key is hunter2-canary.", reason="timeout", retryable=True
                )
            if task == "crash":
                raise RuntimeError("/srv/app/runner.py: password=hunter2")
            return await super().run(agent, task)

    tasks = [("ghost", "x"), ("scout", "model"), ("scout", "crash"), ("boss", "x"), ("scout", json.dumps([ROOT]))]
    async with project(Failing()) as grove:
        agents = [{"agent": agent, "input": task} for agent, task in tasks]
        events = await run(await grove.agent("boss"), ("spawn_agents", {"agents": agents}))
    call = events[0]["callId"]
    failed = {event["callId"]: event for event in events if event["type"] == "tool_failed"}
    assert failed.keys() == {f"{call}.{number}" for number in (1, 2, 3, 4)}
    for number, agent, code, reason in [
        (1, "ghost", "not_found", None),
        (2, "scout", "internal", "timeout"),
        (3, "scout", "internal", "runner_failed"),
        (4, "boss", "not_found", None),
    ]:
        event = failed[f"{call}.{number}"]
        assert (event["tool"], event["agent"], event["depth"]) == ("spawn_agents", agent, 1)
        assert (event["parentCallId"], event["chain"]) == (call, ["boss", agent])
        assert (event["error"]["code"], event["error"].get("reason")) == (code, reason)
    assert failed[f"{call}.2"]["error"]["retryable"] is True
    assert "password" not in str(events)
    assert events[-1]["delegated"] == {"succeeded": 1, "failed": 4}
    assert (events[-1]["succeeded"], events[-1]["failed"]) == (1, 0)


async def test_no_secret_comes_out_with_the_failure_of_a_sub_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "hunter2-canary")

    class Telling:
        async def run(self, agent: RunnableAgent, task: str) -> dict[str, Any]:
            raise RunFailed("The endpoint refused hunter2-canary.", reason="model_answer")

    buy = {"url": "http://127.0.0.1:9/", "method": "GET", "headers": {"X-Key": "${env:KEY}"}, "allowPrivate": True}
    async with project(
        Telling(), httpTools={"buy": {"description": "Buys.", **buy}}, secrets={"KEY": {"tools": ["buy"]}}
    ) as grove:
        boss = await grove.agent("boss")
        await boss.call("buy")  # only a secret that was read can be recognised
        events = await run(boss, through(["scout"], ROOT))
    assert [event["type"] for event in events if event["type"] == "tool_failed"] == ["tool_failed"]
    assert "hunter2-canary" not in json.dumps(events)


async def test_a_call_that_a_runner_gives_up_ends_as_a_failure() -> None:
    class Impatient:
        async def run(self, agent: RunnableAgent, task: str) -> dict[str, Any]:
            if agent.name == "scout":
                await anyio.sleep_forever()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.call, *through(["scout"], ROOT))
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
            return {"output": "gave up"}

    async with project(Impatient()) as grove:
        events = await run(await grove.agent("boss"), through(["lead"], ROOT))
    assert brief(events)[1:3] == [("tool_started", "lead", 1), ("tool_failed", "lead", 1)]
    assert events[2]["error"]["reason"] == "cancelled"
    assert events[-1]["delegated"] == {"succeeded": 0, "failed": 1}


async def test_progress_of_a_sub_agents_call_is_told_with_whose_it_is() -> None:
    async with project() as grove:
        events = await run(await grove.agent("boss"), through(["lead", "scout"], ROOT))
    progress = [(event["agent"], event["depth"], event["message"]) for event in events if "progress" in event]
    assert progress == [("lead", 1, "1 of 1 done"), ("boss", 0, "1 of 1 done")]


async def test_a_reader_that_falls_behind_holds_up_nobody_and_loses_failures_last() -> None:
    many = BACKLOG
    script = json.dumps([*[ROOT] * many, *[NOWHERE] * many])
    ended = anyio.Event()

    class Noticed(Scripted):
        async def run(self, agent: RunnableAgent, task: str) -> dict[str, Any]:
            try:
                return await super().run(agent, task)
            finally:
                ended.set()

    async with project(Noticed()) as grove:
        agent = await grove.agent("boss")
        spawn = {"tool": "spawn_agents", "arguments": {"agents": [{"agent": "scout", "input": script}]}}
        stream = agent.run([spawn])
        with anyio.fail_after(DEADLINE):
            events = [await anext(stream)]
            async with anyio.create_task_group() as tasks:

                async def second() -> None:
                    events.append(await anext(stream))

                tasks.start_soon(second)
                await ended.wait()  # nobody reads meanwhile, and the sub-agent ends all the same
            events += [event async for event in stream]
    lost = sum(event["count"] for event in events if event["type"] == "events_lost")
    told = [event for event in events if event.get("depth") == 1]
    assert len(told) <= 2 * BACKLOG + 1
    assert lost + len(told) == 2 * 2 * many + 1, "a start and an end each, and that spawn_agents is done"
    assert sum(event["type"] == "tool_failed" for event in told) >= many - 1
    assert events[-1]["delegated"] == {"succeeded": many, "failed": many}


async def test_a_stream_that_is_left_early_cancels_its_sub_agents() -> None:
    begun, ended = anyio.Event(), anyio.Event()

    class Held:
        async def run(self, agent: RunnableAgent, task: str) -> dict[str, Any]:
            begun.set()
            try:
                await anyio.sleep_forever()
            finally:
                ended.set()
            raise AssertionError

    async with project(Held()) as grove:
        name, arguments = through(["scout"], ROOT)
        stream = (await grove.agent("boss")).run([{"tool": name, "arguments": arguments}])
        with anyio.fail_after(DEADLINE):
            await anext(stream)
            async with anyio.create_task_group() as tasks:

                async def rest() -> None:
                    async for _ in stream:
                        pass

                tasks.start_soon(rest)
                await begun.wait()
                tasks.cancel_scope.cancel()
            await ended.wait()
