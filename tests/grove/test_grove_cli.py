"""The command line as a person uses it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from grove_kit import hand, sample
from toolgrove import Grove
from toolgrove.cli import Conversation, main, read_arguments
from toolgrove.tools.sample import DOCUMENT

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


def test_a_file_that_is_no_tree_is_named_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.json"
    file.write_text("[1, 2]")
    assert main(["tree", str(file)]) == 1
    assert "must be an object" in capsys.readouterr().err.replace("\n", " ")
    assert main(["tree", str(tmp_path / "none.json")]) == 1


async def test_a_person_at_the_prompt_needs_no_version(capsys: pytest.CaptureFixture[str]) -> None:
    async with Grove() as grove:
        desk = Conversation(await grove.agent("editor"), Console())
        await desk.answer('add_child parentNodeId=root payloadType=T payloadProps=\'{"name": "A b"}\'')
        await desk.answer('update_payload {"nodeId": "n1", "patch": {"size": 3}}')
        await desk.answer("help add_child")
        await desk.answer("add_child nonsense")
        editor = await hand(grove)
        assert (await editor.ok("get_node", nodeId="n1"))["payload"] == {"name": "A b", "size": 3}
        assert "* parentNodeId" in capsys.readouterr().out
        assert "add_child " in desk.candidates("add")
        assert "parentNodeId=" in desk.candidates("add_child ")
        assert desk.candidates("nothing ") == []


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


def read_until(terminal: int, mark: bytes) -> bytes:
    seen = b""
    while mark not in seen:
        seen += os.read(terminal, 4096)
    return seen


def test_the_prompt_completes_and_answers_in_a_real_terminal() -> None:
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "toolgrove.cli", "repl", "--sample"]
    with subprocess.Popen(
        command, stdin=child, stdout=child, stderr=child, env={**os.environ, "TERM": "dumb"}
    ) as process:
        os.close(child)
        assert b"grove>" in read_until(parent, b"grove> ")
        os.write(parent, b"get_pa\tnodeI\tkitchen\n")
        seen = read_until(parent, b'"version"')
        os.write(parent, b"quit\n")
        process.wait(timeout=20)
        os.close(parent)
    assert b"nodeId=kitchen" in seen
    assert b"Kitchen" in seen
    assert process.returncode == 0


def test_the_prompt_reads_a_script_from_a_pipe() -> None:
    script = "get_node nodeId=house\nremove_node nodeId=shed\nget_node nodeId=shed\n"
    command = [sys.executable, "-m", "toolgrove.cli", "repl", "--sample"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60, check=True)
    assert '"removedCount": 1' in done.stdout
    assert '"code": "not_found"' in done.stdout
