"""The command line as a person uses it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cli_kit import at_a_terminal
from grove_kit import hand, sample
from toolgrove import Config, Grove
from toolgrove.cli import main
from toolgrove.cli.arguments import read_arguments
from toolgrove.cli.desk.desk import Here
from toolgrove.cli.repl import Conversation
from toolgrove.cli.screen import Screen
from toolgrove.tools.sample import DOCUMENT
from warm.command import python

pytestmark = pytest.mark.anyio


def test_a_tree_in_a_file_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tree.json"
    file.write_text(json.dumps(DOCUMENT))
    assert main(["tree", str(file)]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].startswith("Property property Property")
    assert "│   ├── Kitchen kitchen Room #urgent" in shown
    assert main(["tree", str(file), "--depth", "1"]) == 0
    assert "+3" in capsys.readouterr().out


async def test_an_exported_view_and_a_deep_tree_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, editor = await sample()
    view = tmp_path / "view.json"
    view.write_text((await editor.ok("export_view", rootNodeId="root"))["viewJson"])
    assert main(["tree", str(view)]) == 0
    items = [{"nodeId": f"d{at}", "parentId": f"d{at - 1}" if at else None, "payloadType": "T"} for at in range(3_000)]
    deep = tmp_path / "deep.json"
    deep.write_text(json.dumps({"items": items}))
    assert main(["tree", str(deep), "--nodes", "50"]) == 0
    assert "d49" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"[1, 2]", "must be an object"),
        (b'{"view": 5}', "must be an object"),
        (b'{"subtree": [1]}', "must be an object"),
        (b"{", "is not JSON"),
        (b"\xff", "bad.json is not UTF-8 text; name a document"),
        (None, "bad.json: No such file or directory."),
    ],
)
def test_a_file_that_is_no_tree_is_named_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], raw: bytes | None, told: str
) -> None:
    file = tmp_path / "bad.json"
    if raw is not None:
        file.write_bytes(raw)
    assert main(["tree", str(file)]) == 1
    assert told in capsys.readouterr().err


def test_a_tree_is_data_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tree.json"
    file.write_text(json.dumps({"items": [{"nodeId": "a", "payloadType": "T", "payload": {"name": "[bold]"}}]}))
    assert main(["tree", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"nodeId": "a", "payloadType": "T", "payload": {"name": "[bold]"}}
    assert main(["tree", str(file)]) == 0
    assert capsys.readouterr().out == "[bold] a T\n"


async def conversing(grove: Grove, agent: str) -> Conversation:
    project = Here(grove)
    found = await project.ask("tools", agent=agent)
    return Conversation(project, agent, found["tools"], Screen())


async def test_a_person_at_the_prompt_needs_no_version(capsys: pytest.CaptureFixture[str]) -> None:
    async with Grove() as grove:
        conversation = await conversing(grove, "editor")
        await conversation.answer('add_child parentNodeId=root payloadType=T payloadProps=\'{"name": "A b"}\'')
        await conversation.answer('update_payload {"nodeId": "n1", "patch": {"size": 3}}')
        await conversation.answer("help add_child")
        await conversation.answer("add_child nonsense")
        editor = await hand(grove)
        assert (await editor.ok("get_node", nodeId="n1"))["payload"] == {"name": "A b", "size": 3}
        assert "* parentNodeId" in capsys.readouterr().out
        assert "add_child " in conversation.candidates("add")
        assert "parentNodeId=" in conversation.candidates("add_child ")
        assert conversation.candidates("nothing ") == []


def test_arguments_are_words_or_json() -> None:
    assert read_arguments('a=1 b=text c="two words" d=[1,2] e=true') == {
        "a": 1,
        "b": "text",
        "c": "two words",
        "d": [1, 2],
        "e": True,
    }
    assert read_arguments('{"a": {"b": null}}') == {"a": {"b": None}}
    assert read_arguments("") == {}
    with pytest.raises(ValueError, match="key=value"):
        read_arguments("word")


def test_the_prompt_completes_and_answers_in_a_real_terminal(tmp_path: Path) -> None:
    with at_a_terminal("repl", "--sample", cwd=tmp_path) as terminal:
        terminal.read_until("grove> ")
        terminal.type("get_pa\tnodeI\tkitchen\n")
        seen = terminal.read_until('"version"')
        terminal.type("quit\n")
    assert "nodeId=kitchen" in seen
    assert "Kitchen" in seen
    assert terminal.process.returncode == 0


def test_an_interrupt_at_the_prompt_ends_it(tmp_path: Path) -> None:
    with at_a_terminal("repl", cwd=tmp_path) as terminal:
        terminal.read_until("grove> ")
        terminal.interrupt()
    assert terminal.process.returncode == 0


async def test_a_tool_of_a_foreign_server_is_called_and_explained_at_the_prompt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    schemas = [{"type": "object"}, {"type": "object", "properties": {"x": True}}]
    specs = {
        f"t{at}": {"url": "http://127.0.0.1:9/", "description": "Ring.", "method": "POST", "inputSchema": schema}
        for at, schema in enumerate(schemas)
    }
    agents = {"a": {"role": "editor", "tools": ["*"], "deny": ["get_node"]}}
    async with Grove(Config.model_validate({"httpTools": specs, "agents": agents})) as grove:
        conversation = await conversing(grove, "a")
        assert conversation.candidates("t0 ") == []
        await conversation.answer("help t0")
        await conversation.answer("help t1")
        shown = capsys.readouterr().out
        assert "t0: Ring." in shown
        assert "   x" in shown
        assert (await conversation.call("t0", {}))["error"]["code"] == "forbidden"
        assert (await conversation.call("add_child", {"parentNodeId": "root", "payloadType": "T"}))["error"][
            "code"
        ] == "conflict"


def test_the_prompt_reads_a_script_from_a_pipe() -> None:
    script = "get_node nodeId=house\nremove_node nodeId=shed\nget_node nodeId=shed\n"
    command = python("-m", "toolgrove", "repl", "--sample")
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60, check=True)
    assert '"removedCount": 1' in done.stdout
    assert '"code": "not_found"' in done.stdout
