"""The run in the cookbook: the coordinator and its two helpers, driven by a model that follows a script."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from runners.endpoint import Reply, ask, say, serving
from toolgrove.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
RUN = re.compile(r'```text title="toolgrove run coordinator \\"(.+?)\\""\n((?:.*\n)*?)```')
TASK = "Write down what the garden needs."


def spawn(agent: str) -> Reply:
    return ask(("spawn_agents", {"agents": [{"agent": agent, "input": "Do your part."}]}))


def answer(request: dict[str, Any]) -> Reply:
    """What the model of each agent does next."""
    agent = request["messages"][0]["content"].split("'")[1]
    results = [json.loads(message["content"]) for message in request["messages"] if message["role"] == "tool"]
    if agent == "scout":
        steps = [ask(("select_nodes", {"queryDsl": "//*"})), say("Nothing is written yet.")]
    elif agent == "scribe":
        version = results[0]["version"] if results else ""
        note = {
            "parentNodeId": "root",
            "payloadType": "Root",
            "payloadProps": {"text": "a plan"},
            "versionToken": version,
        }
        steps = [ask(("get_node", {"nodeId": "root"})), ask(("add_child", note)), say("Done.")]
    else:
        steps = [spawn("scout"), spawn("scribe"), say("The garden needs a plan. It is written down now.\n")]
    assert not any("error" in result for result in results), results
    reply = steps[len(results)]
    body = {**json.loads(reply.body), "usage": {"prompt_tokens": 15, "completion_tokens": 6}}
    return Reply(body=json.dumps(body).encode())


def test_the_run_of_the_cookbook_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MODEL_KEY", "value-of-the-key")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving(answer)) as endpoint:
        project = (ROOT / "examples" / "coordinator.yaml").read_text(encoding="utf-8")
        file = tmp_path / "coordinator.yaml"
        file.write_text(project.replace("https://models.example/v1", endpoint.url))
        assert main(["run", "coordinator", TASK, "--config", str(file)]) == 0
    said = capsys.readouterr()
    *remarks, last = said.err.splitlines()
    printed = "\n".join([*remarks, said.out.rstrip(), last, ""])
    seconds = re.compile(r"in [\d.]+ s")
    shown = RUN.search((ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8"))
    assert shown is not None
    assert shown[1] == TASK
    assert seconds.sub("in S", shown[2]) == seconds.sub("in S", printed)
