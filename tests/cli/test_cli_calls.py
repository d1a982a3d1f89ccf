"""Calling a tool by hand, and agreeing to calls."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from cli_kit import Project, Toolgrove
from faults.kit import fake


@pytest.fixture
def ready(project: Project) -> None:
    agents = {"a": {"role": "editor", "tools": ["*"], "approve": ["up_echo"]}}
    project(mcpServers={"up": fake()}, agents=agents)


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("words", [("nodeId=root",), ('{"nodeId": "root"}',)])
def test_a_tool_is_called_with_words_or_json(toolgrove: Toolgrove, words: tuple[str, ...]) -> None:
    said = toolgrove("call", "a", "get_node", *words)
    assert (said.code, said.err, said.json["nodeId"]) == (0, "", "root")


@pytest.mark.usefixtures("ready")
def test_what_the_schema_calls_text_stays_text(toolgrove: Toolgrove) -> None:
    said = toolgrove("call", "a", "get_node", "nodeId=7")
    assert (said.code, said.json["error"]["code"]) == (1, "not_found")


@pytest.mark.usefixtures("ready")
def test_a_slip_in_the_arguments_is_told_before_anything_starts(toolgrove: Toolgrove) -> None:
    said = toolgrove("call", "a", "get_node", "root")
    assert (said.code, said.err) == (1, "toolgrove: 'root' is not key=value\n")


@pytest.mark.usefixtures("ready")
def test_an_error_of_the_tool_is_the_result_and_the_exit_code(toolgrove: Toolgrove) -> None:
    said = toolgrove("call", "a", "get_nod", "nodeId=root")
    assert said.code == 1
    assert said.json["error"]["message"] == "There is no tool 'get_nod'. Did you mean 'get_node'?"


@pytest.mark.usefixtures("ready")
def test_progress_is_told_beside_the_result(toolgrove: Toolgrove) -> None:
    said = toolgrove("call", "a", "up_progress")
    assert (said.code, bool(said.json)) == (0, True)
    assert said.err.splitlines()[0].startswith("1")


@pytest.mark.usefixtures("ready")
def test_an_approval_is_asked_for_given_and_used_once(toolgrove: Toolgrove) -> None:
    assert toolgrove("approvals").out == "Nothing waits for approval.\n"
    asked = toolgrove("call", "a", "up_echo", "text=hi")
    assert (asked.code, asked.json["error"]["reason"]) == (1, "approval_required")
    number = asked.json["error"]["approvalId"]
    assert asked.err == f"To agree: toolgrove approvals approve {number}, then repeat the call.\n"
    (waiting,) = toolgrove("approvals", "--json").json
    assert (waiting["id"], waiting["tool"], waiting["arguments"]) == (number, "up_echo", {"text": "hi"})
    assert waiting["rule"] == "approve: up_echo"
    assert toolgrove("approvals").out.splitlines()[1].split()[:4] == [number, "pending", "a", "up_echo"]
    shown = toolgrove("approvals", "show", number).out
    assert '"text": "hi"' in shown
    assert "The tool echo of a test server." in shown
    agreed = toolgrove("approvals", "approve", number)
    assert agreed.out == "Approved: a may call up_echo with these arguments, once.\n"
    assert toolgrove("call", "a", "up_echo", "text=hi").code == 0
    again = toolgrove("call", "a", "up_echo", "text=hi")
    assert again.json["error"]["approvalId"] != number
    assert toolgrove("approvals", "list", "--all", "--json").json[0]["state"] == "used"


@pytest.mark.usefixtures("ready")
def test_a_rejected_call_is_told_why(toolgrove: Toolgrove) -> None:
    number = toolgrove("call", "a", "up_echo", "text=hi").json["error"]["approvalId"]
    said = toolgrove("approvals", "reject", number, "--reason", "not today")
    assert said.out == "Rejected: a will be told that it may not call up_echo.\n"
    refused = toolgrove("call", "a", "up_echo", "text=hi").json["error"]
    assert "not today" in refused["message"]
    late = toolgrove("approvals", "approve", number)
    assert (late.code, "was already rejected by cli:" in late.err) == (1, True)


@pytest.mark.usefixtures("ready")
def test_an_unknown_approval_is_not_found(toolgrove: Toolgrove) -> None:
    for verb in ("show", "approve", "reject"):
        said = toolgrove("approvals", verb, "ap_none")
        assert (said.code, "No approval 'ap_none' is in the inbox." in said.err) == (1, True)


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("\n", 1), ("n\n", 1)])
def test_where_the_client_may_be_asked_the_person_at_the_terminal_is(
    toolgrove: Toolgrove, project: Project, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    agents: dict[str, Any] = {"a": {"tools": ["*"], "approve": ["up_echo"], "askClient": True}}
    project(mcpServers={"up": fake()}, agents=agents)
    monkeypatch.setattr(sys, "stdin", Keyboard(typed))
    said = toolgrove("call", "a", "up_echo", "text=hi")
    assert said.code == code
    assert "up_echo" in said.err
