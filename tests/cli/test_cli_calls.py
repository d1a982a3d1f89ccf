"""Calling a tool by hand, and agreeing to calls."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cli_kit import Project, Toolgrove, at_a_terminal
from faults.kit import fake
from toolgrove import Config
from toolgrove.store.journal.sqlite.owner import Owner


@pytest.fixture
def ready(project: Project) -> None:
    agents = {"a": {"role": "editor", "tools": ["*"], "approve": ["up_echo"]}}
    project(mcpServers={"up": fake()}, agents=agents)


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("words", [("nodeId=root",), ('{"nodeId": "root"}',)])
def test_a_tool_is_called_with_words_or_json(toolgrove: Toolgrove, words: tuple[str, ...]) -> None:
    said = toolgrove("call", "a", "get_node", *words)
    assert (said.code, said.json["nodeId"]) == (0, "root")


@pytest.mark.usefixtures("ready")
def test_a_call_on_a_tree_in_memory_says_that_the_tree_ended_with_it(toolgrove: Toolgrove) -> None:
    told = "This tree is in memory (workspace.store: memory), so it ended with this command."
    assert told in toolgrove("call", "a", "get_node", "nodeId=root").err
    assert toolgrove("call", "a", "up_refuse").err == ""


def test_a_tree_in_a_file_outlives_the_call_and_is_read_without_its_lock(
    toolgrove: Toolgrove, project: Project, tmp_path: Path
) -> None:
    config = Config.load(project(workspace={"store": "sqlite:grove.db", "payloadTypes": {"Note": {}}}))
    version = toolgrove("call", "editor", "get_node", "nodeId=root").json["version"]
    new = {"parentNodeId": "root", "payloadType": "Note", "payloadProps": {"name": "Plan"}, "versionToken": version}
    said = toolgrove("call", "editor", "add_child", json.dumps(new))
    assert (said.code, said.err) == (0, "")
    assert config.workspace.store_path is not None
    owner = Owner(config.workspace.store_path)
    try:
        assert "Plan n1 Note" in toolgrove("tree").out
        assert toolgrove("tree", "--json").json["children"][0]["payload"] == {"name": "Plan"}
        assert toolgrove("explain", "reader").code == toolgrove("tools", "reader").code == toolgrove("doctor").code == 0
        assert "is in use by another process" in toolgrove("call", "editor", "get_node", "nodeId=root").err
    finally:
        owner.release()


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
def test_a_failure_that_a_tool_tells_itself_is_shown_whole_and_is_the_exit_code(toolgrove: Toolgrove) -> None:
    said = toolgrove("call", "a", "up_refuse")
    assert (said.code, said.json["isError"]) == (1, True)
    assert said.json["content"] == [{"type": "text", "text": "the shelf is empty"}]


@pytest.mark.usefixtures("ready")
def test_progress_is_told_beside_the_result(toolgrove: Toolgrove) -> None:
    said = toolgrove("call", "a", "up_progress")
    assert (said.code, bool(said.json)) == (0, True)
    assert said.err.splitlines()[0].startswith("1")


@pytest.mark.usefixtures("ready")
def test_an_approval_is_asked_for_given_and_used_once(toolgrove: Toolgrove) -> None:
    assert toolgrove("approvals").out == "Nothing to approve.\n"
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
def test_an_approval_for_an_hour_is_for_any_arguments_until_it_is_revoked(toolgrove: Toolgrove) -> None:
    number = toolgrove("call", "a", "up_echo", "text=hi").json["error"]["approvalId"]
    agreed = toolgrove("approvals", "approve", number, "--for", "1h")
    assert agreed.out.startswith("Approved: a may call up_echo with any arguments until ")
    for text in ("hi", "ho"):
        assert toolgrove("call", "a", "up_echo", f"text={text}").code == 0
    assert "1h, any arguments; used 2 times" in toolgrove("approvals", "show", number).out
    revoked = toolgrove("approvals", "revoke", number)
    assert revoked.out == "Revoked: a must ask again before it calls up_echo.\n"
    assert toolgrove("call", "a", "up_echo", "text=hi").json["error"]["reason"] == "approval_required"


def test_what_a_call_would_change_and_what_hides_in_it_is_shown(toolgrove: Toolgrove, project: Project) -> None:
    project(agents={"a": {"role": "editor", "tools": ["*"], "approve": ["add_child"]}})
    words = ("parentNodeId=root", "payloadType=T", 'payloadProps={"name": "\u202egpj.exe"}')
    number = toolgrove("call", "a", "add_child", *words).json["error"]["approvalId"]
    for said in (toolgrove("approvals"), toolgrove("approvals", "show", number)):
        assert r"adds '\u202egpj.exe' to 'root'" in said.out
        assert "\u202e" not in said.out


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
    for verb in ("show", "approve", "reject", "revoke"):
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


def test_an_interrupt_at_a_question_ends_the_command(project: Project, tmp_path: Path) -> None:
    project(agents={"a": {"role": "editor", "tools": ["*"], "approve": ["add_child"], "askClient": True}})
    words = ("call", "a", "add_child", "parentNodeId=root", "payloadType=T")
    with at_a_terminal(*words, cwd=tmp_path) as terminal:
        terminal.read_until(r"approve \(boolean\): ")
        terminal.interrupt()
    assert terminal.process.returncode == 130


def test_the_id_of_an_approval_can_be_copied_from_a_narrow_terminal(
    toolgrove: Toolgrove, project: Project, tmp_path: Path
) -> None:
    project(agents={"a": {"tools": ["*"], "approve": ["list_bookmarks"]}})
    waiting = toolgrove("call", "a", "list_bookmarks").json["error"]["approvalId"]
    with at_a_terminal("approvals", cwd=tmp_path, width=50) as terminal:
        terminal.read_until(rf"\n{waiting} ")


def test_a_person_at_a_terminal_answers_the_question(project: Project, tmp_path: Path) -> None:
    project(agents={"a": {"role": "editor", "tools": ["*"], "approve": ["list_bookmarks"], "askClient": True}})
    with at_a_terminal("call", "a", "list_bookmarks", cwd=tmp_path) as terminal:
        terminal.read_until(r"approve \(boolean\): ")
        terminal.type("y\nfine by me\n")
        assert '"items": []' in terminal.read_until("version")
    assert terminal.process.returncode == 0


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("nodeId=" + "[" * 100_000, "invalid_argument"),
        ("{" + '"a":{' * 100_000, "the arguments are not one JSON object: "),
        ('{"nodeId": ', "the arguments are not one JSON object: "),
        ('{"nodeId": "a", "nodeId": "b"}', "the arguments are not one JSON object: key 'nodeId' stands twice"),
    ],
    ids=["deep value", "deep object", "half an object", "a key twice"],
)
def test_arguments_that_cannot_be_read_are_told(toolgrove: Toolgrove, project: Project, word: str, told: str) -> None:
    project(agents={"a": {"tools": ["*"]}})
    said = toolgrove("call", "a", "list_bookmarks", word)
    assert said.code == 1
    assert told in said.out + said.err
    assert "fault of ours" not in said.err


def test_a_schema_that_says_nothing_of_an_argument_takes_it(toolgrove: Toolgrove, project: Project) -> None:
    schema = {"type": "object", "properties": {"x": True}}
    tool = {"url": "http://127.0.0.1:9/", "method": "POST", "inputSchema": schema}
    project(httpTools={"t": tool}, agents={"a": {"role": "editor", "tools": ["*"]}})
    assert toolgrove("call", "a", "t", "x=1").json["error"]["reason"] == "approval_required"
