"""A run with a model over a real gateway: a task goes in, words and calls come out as they happen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from runners.endpoint import Answer, ask, scripted, streamed
from runners.endpoint import serving as model
from waiting import DEADLINE
from web.gateway import Gateway, events, serving

pytestmark = pytest.mark.anyio
WORDS = [{"choices": [{"delta": {"content": text}}]} for text in ("One ", "node.")]
SAID = streamed(
    *WORDS, {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
)


@asynccontextmanager
async def project(folder: Path, answer: Answer, **agent: Any) -> AsyncIterator[Gateway]:
    with anyio.fail_after(DEADLINE):
        async with model(answer) as endpoint:
            runner = {"kind": "openai", "url": endpoint.url, "model": "scripted"}
            agents = {"a": {"tools": ["get_node"], **agent}}
            with serving(folder / "project", {"agents": agents, "runner": runner}) as served:
                yield served


async def test_a_task_is_streamed_until_its_end_and_a_call_waits_for_a_person(tmp_path: Path) -> None:
    brain = scripted(ask(("get_node", {"nodeId": "root"})), SAID)
    text = ""
    async with (
        project(tmp_path, brain, approve=["get_node"]) as gateway,
        gateway.http("a") as http,
        http.stream("POST", "/agents/a/runs", json={"input": "Count the nodes."}) as answer,
    ):
        async for line in answer.aiter_lines():
            text += line + "\n"
            if line.startswith("event: approval_requested"):
                await _agree(gateway)
    told = events(text)
    assert [event["type"] for event in told] == [
        *("tool_started", "approval_requested", "approval_decided", "tool_succeeded", "text", "text", "run_finished")
    ]
    assert [event["text"] for event in told if event["type"] == "text"] == ["One ", "node."]
    ended = told[-1]
    assert (ended["outcome"], ended["output"]) == ("success", "One node.")
    assert ended["usage"] == {"scripted": {"input": 5, "output": 2}}


async def _agree(gateway: Gateway) -> None:
    async with gateway.http("operator") as operator:
        (waiting,) = (await operator.get("/api/approvals?state=pending")).json()["items"]
        done = await operator.post(f"/api/approvals/{waiting['id']}", json={"approve": True})
        assert done.status_code == 200, done.text


@pytest.mark.parametrize("body", [{"input": ""}, {"input": 7}, {"input": "x", "calls": []}, {}])
async def test_a_body_that_is_neither_task_nor_calls_is_refused(tmp_path: Path, body: dict[str, Any]) -> None:
    async with project(tmp_path, scripted()) as gateway, gateway.http("a") as http:
        answer = await http.post("/agents/a/runs", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_argument")


async def test_a_project_without_a_runner_says_what_to_add(tmp_path: Path) -> None:
    with serving(tmp_path / "project", {"agents": {"a": {"tools": ["get_node"]}}}) as gateway:
        async with gateway.http("a") as http:
            answer = await http.post("/agents/a/runs", json={"input": "Look."})
    assert answer.status_code == 500
    assert "runner: {kind: openai" in answer.json()["error"]["message"]
