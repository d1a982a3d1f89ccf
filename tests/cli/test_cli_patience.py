"""A server that needs longer than the start-up budget is waited for, and named where it never comes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from cli_kit import Project, Toolgrove, at_a_terminal
from faults.kit import Journal, alive, fake
from waiting import DEADLINE
from warm.command import Process, python

AGENTS = {"a": {"role": "editor", "tools": ["*"]}}
WAITING = "Waiting for late, still starting"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def come(project: Project, tmp_path: Path, journal: Journal) -> Callable[[], None]:
    """A project with a server that starts when told."""
    servers = {"late": fake("late_start", journal, tmp_path / "sign"), "well": fake()}
    project(mcpServers=servers, agents=AGENTS, startupBudget=0.1)
    return (tmp_path / "sign").touch


COMMANDS = {
    ("doctor",): r"answered with \d+ tools",
    ("tools", "--agent", "a"): "late_echo",
    ("call", "a", "late_echo", "text=here"): '"here"',
    ("explain", "a", "late_echo"): "granted",
}


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_waits_for_a_server_that_is_still_starting_and_says_so(
    come: Callable[[], None], tmp_path: Path, words: tuple[str, ...]
) -> None:
    with at_a_terminal(*words, cwd=tmp_path, width=200) as terminal:
        terminal.read_until(WAITING)
        come()
        shown = terminal.read_until(COMMANDS[words])
        assert "unavailable" not in shown + terminal.rest()


def test_a_server_that_never_comes_is_named_and_the_others_are_there(
    toolgrove: Toolgrove, project: Project, journal: Journal
) -> None:
    project(mcpServers={"dead": fake("never_init", journal), "well": fake()}, agents=AGENTS, startupBudget=0.1)
    said = toolgrove("call", "a", "well_echo", "text=hi", "--wait", "5")
    assert (said.code, said.json["content"][0]["text"]) == (0, "hi")
    assert said.err == "Without dead, which is unavailable: no answer within 5 s\n"
    found = toolgrove("doctor", "--wait", "5", "--json").json["findings"]
    assert [one["message"] for one in found if one["subject"] == "dead" and one["level"] == "error"] == [
        "is unavailable: no answer within 5 s"
    ]


@pytest.mark.parametrize("words", [("tools", "--agent", "b"), ("call", "b", "get_node"), ("explain", "b")])
@pytest.mark.usefixtures("come")
def test_nobody_waits_for_an_agent_that_is_not_there(
    toolgrove: Toolgrove, journal: Journal, words: tuple[str, ...]
) -> None:
    said = toolgrove(*words)
    assert said.code == 1
    assert "No agent 'b' is defined" in said.err
    assert journal.pids == []


def test_who_does_not_want_to_wait_presses_a_key(come: Callable[[], None], journal: Journal, tmp_path: Path) -> None:
    with at_a_terminal("tools", "--agent", "a", cwd=tmp_path, width=200) as terminal:
        terminal.read_until(WAITING)
        terminal.interrupt()
        assert "Traceback" not in terminal.rest()
    assert terminal.process.returncode == 130
    assert not [pid for pid in journal.pids if alive(pid)]


@contextmanager
def _stdio(folder: Path) -> Iterator[Process]:
    pipe = subprocess.PIPE
    command = python("-m", "toolgrove", "stdio", "--agent", "a")
    with Process(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, text=True) as process:
        try:
            assert process.stderr is not None
            assert next((line for line in process.stderr if WAITING in line), ""), "it did not wait"
            yield process
        finally:
            process.kill()


def _ask(pipe: IO[str] | None, message: dict[str, Any]) -> None:
    assert pipe is not None
    pipe.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    pipe.flush()


def _answer(pipe: IO[str] | None) -> Any:
    assert pipe is not None
    return json.loads(pipe.readline())["result"]


def test_over_stdio_the_first_list_has_the_tools_of_a_slow_server(come: Callable[[], None], tmp_path: Path) -> None:
    with _stdio(tmp_path) as process:
        come()
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        _ask(process.stdin, {"id": 1, "method": "initialize", "params": params})
        assert _answer(process.stdout)["serverInfo"]["name"] == "a"
        _ask(process.stdin, {"method": "notifications/initialized"})
        _ask(process.stdin, {"id": 2, "method": "tools/list"})
        names = {tool["name"] for tool in _answer(process.stdout)["tools"]}
        assert {"late_echo", "well_echo"} <= names
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(DEADLINE) == 0


@pytest.mark.usefixtures("come")
@pytest.mark.parametrize("asks_first", [False, True])
def test_over_stdio_a_client_that_leaves_ends_the_waiting(journal: Journal, tmp_path: Path, asks_first: bool) -> None:
    with _stdio(tmp_path) as process:
        assert process.stdin is not None
        if asks_first:
            _ask(process.stdin, {"id": 1, "method": "ping"})
        process.stdin.close()
        assert process.wait(DEADLINE) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert not [pid for pid in journal.pids if alive(pid)]


@pytest.mark.usefixtures("come")
def test_over_stdio_a_signal_ends_the_waiting(journal: Journal, tmp_path: Path) -> None:
    with _stdio(tmp_path) as process:
        process.terminate()
        assert process.wait(DEADLINE) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert not [pid for pid in journal.pids if alive(pid)]
