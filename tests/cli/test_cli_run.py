"""`toolgrove run`, and the doctor who asks the runner."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from cli_kit import Project, Toolgrove
from runners.endpoint import Answer, Endpoint, Reply, ask, say, scripted, serving, streamed

WORDS = streamed(
    *({"choices": [{"delta": {"content": text}}]} for text in ("One ", "node.\x1b[31m")),
    {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
)


@contextmanager
def model(answer: Answer) -> Iterator[Endpoint]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving(answer)) as endpoint:
        yield endpoint


def runner(endpoint: Endpoint) -> dict[str, Any]:
    return {"kind": "openai", "url": endpoint.url, "model": "scripted"}


def test_what_the_model_says_is_on_stdout_and_what_it_does_on_stderr(project: Project, toolgrove: Toolgrove) -> None:
    with model(scripted(ask(("get_node", {"nodeId": "root"})), WORDS)) as endpoint:
        project(agents={"a": {"tools": ["get_node"]}}, runner=runner(endpoint))
        said = toolgrove("run", "a", "Count the nodes.")
    assert said.code == 0
    assert said.out == "One node.\\u001b[31m\n"
    first, last = said.err.splitlines()
    assert first == "a calls get_node"
    assert last.startswith("1 call in ")
    assert last.endswith("s; scripted: 5 tokens in, 2 out")


def test_with_json_every_event_is_a_line(project: Project, toolgrove: Toolgrove) -> None:
    with model(scripted(say("done"))) as endpoint:
        project(agents={"a": {}}, runner=runner(endpoint))
        said = toolgrove("run", "a", "Think.", "--json")
    assert [json.loads(line)["type"] for line in said.out.splitlines()] == ["text", "run_finished"]


def test_a_run_without_an_answer_is_the_exit_code(project: Project, toolgrove: Toolgrove) -> None:
    with model(scripted(Reply(status=401))) as endpoint:
        project(agents={"a": {}}, runner=runner(endpoint))
        said = toolgrove("run", "a", "Think.")
    assert (said.code, said.out) == (1, "")
    assert "runner.apiKey" in said.err


def test_the_doctor_asks_the_runner_only_when_told(project: Project, toolgrove: Toolgrove) -> None:
    with model(scripted(WORDS, Reply(status=404))) as endpoint:
        project(agents={"a": {"tools": ["get_node"]}}, runner=runner(endpoint))
        assert "doctor --probe asks it for one answer" in toolgrove("doctor").out
        assert endpoint.requests == []
        assert "answered (5 tokens in, 2 out)" in toolgrove("doctor", "--probe").out
        failed = toolgrove("doctor", "--probe")
    assert failed.code == 1
    assert "runner.url and runner.model" in failed.out


def test_the_doctor_names_a_package_that_is_missing(
    project: Project, toolgrove: Toolgrove, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "google.adk.agents", None)
    monkeypatch.delitem(__import__("sys").modules, "toolgrove.runners.adk", raising=False)
    project(agents={"a": {"tools": ["get_node"]}}, runner={"kind": "adk", "model": "gemini-2.5-flash"})
    said = toolgrove("doctor")
    assert said.code == 1
    assert "toolgrove[adk]" in said.out
