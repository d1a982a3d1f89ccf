"""A sandboxed server, run by the real bubblewrap: what it can see and reach, and that it never runs without."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from toolgrove import Config, Grove
from toolgrove.config import ConfigError

pytestmark = pytest.mark.anyio

SPY = """
import json, os, socket, sys
def answer(message):
    if message["method"] == "initialize":
        about = {"name": "spy", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    if message["method"] == "tools/list":
        return {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
    text = json.dumps(look(message["params"]["arguments"]))
    return {"content": [{"type": "text", "text": text}]}
def look(asked):
    if "keep" in asked:
        with open(os.environ["UV_CACHE_DIR"] + asked["keep"], "w") as file:
            file.write("kept")
    caches = os.environ.get("XDG_CACHE_HOME")
    return {
        "seen": [path for path in asked.get("paths", ()) if is_there(path)],
        "written": [path for path in asked.get("paths", ()) if os.access(path, os.W_OK)],
        "cwd": os.getcwd(), "home": os.path.expanduser("~"), "here": os.listdir(),
        "network": os.readlink("/proc/self/ns/net"), "processes": [one for one in os.listdir("/proc") if one.isdigit()],
        "reached": reached(asked.get("port")), "caches": caches and sorted(os.listdir(caches)),
    }
def is_there(path):
    return bool(os.listdir(path)) if os.path.isdir(path) else os.path.exists(path)
def reached(port):
    with socket.socket() as probe:
        return port is not None and probe.connect_ex(("127.0.0.1", port)) == 0
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}), flush=True)
"""


def project(folder: Path, **entry: Any) -> Config:
    """A project with one server that looks around."""
    server = {"command": sys.executable, "args": ["-I", "-S", "-c", SPY], "protocol": "legacy", **entry}
    file = folder / "toolgrove.yaml"
    file.write_text(
        json.dumps({"mcpServers": {"spy": server}, "agents": {"a": {"role": "editor", "tools": ["spy_*"]}}})
    )
    return Config.load(file)


async def look(config: Config, **arguments: Any) -> dict[str, Any]:
    """What the server says that it sees."""
    async with Grove(config) as grove:
        answer = await (await grove.agent("a")).call("spy_look", arguments)
    assert "error" not in answer, answer
    seen: dict[str, Any] = json.loads(answer["content"][0]["text"])
    return seen


async def problem(config: Config) -> str:
    async with Grove(config) as grove:
        return (await grove.pool.snapshot()).sources["spy"].problem


@pytest.mark.usefixtures("bubblewrap")
async def test_it_sees_neither_project_nor_state_nor_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, away = tmp_path / "home", tmp_path / "project"
    for folder in (home, away):
        folder.mkdir()
        (folder / "private").write_text("not for it")
    monkeypatch.setenv("HOME", str(home))
    paths = [str(away), str(away / "toolgrove.yaml"), str(away / ".toolgrove"), str(home), str(home / "private")]
    outside = await look(project(away), paths=paths)
    assert set(outside["seen"]) == set(paths), "without a sandbox it sees them all"
    inside = await look(project(away, sandbox=True), paths=[*paths, "/usr", "/etc"])
    assert inside["seen"] == ["/usr", "/etc"]
    assert (inside["cwd"], inside["home"], inside["here"]) == ("/tmp/home", "/tmp/home", [])
    assert len(inside["processes"]) <= 2, "itself, and what waits for it"


@pytest.mark.usefixtures("bubblewrap")
async def test_the_network_is_there_unless_it_is_taken_away(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with_network = await look(project(tmp_path, sandbox=True), port=port)
        without = await look(project(tmp_path, sandbox={"network": False}), port=port)
    assert (with_network["reached"], without["reached"]) == (True, False)
    assert with_network["network"] == os.readlink("/proc/self/ns/net") != without["network"]


@pytest.mark.usefixtures("bubblewrap")
async def test_paths_are_read_only_and_never_show_the_state(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("for it")
    (tmp_path / "other").write_text("not for it")
    asked = [str(tmp_path / "data" / "file"), str(tmp_path / "other")]
    some = await look(project(tmp_path, sandbox={"paths": ["data"]}), paths=asked)
    assert (some["seen"], some["written"]) == (asked[:1], [])
    asked.append(str(tmp_path / ".toolgrove" / "state.db"))
    assert (await look(project(tmp_path, sandbox={"paths": ["."]}), paths=asked))["seen"] == asked[:2]


@pytest.mark.usefixtures("bubblewrap")
async def test_what_it_downloads_is_kept_in_a_cache_of_its_own(tmp_path: Path) -> None:
    config = project(tmp_path, sandbox=True)
    await look(config, keep="-note")
    cache = tmp_path / ".toolgrove" / "sandbox" / "spy"
    assert (cache / "uv-note").read_text() == "kept"
    assert cache.stat().st_mode & 0o077 == 0
    assert (await look(config))["caches"] == ["uv-note"]


@pytest.mark.usefixtures("bubblewrap")
async def test_a_program_beside_the_project_file_shows_nothing_but_itself(tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text(f"#!{Path(sys.base_prefix) / 'bin' / 'python3'} -I\n{SPY}")
    program.chmod(0o755)
    needed = {"paths": [sys.base_prefix]}
    seen = await look(
        project(tmp_path, command="./server", args=[], sandbox=needed),
        paths=[str(program), str(tmp_path / "toolgrove.yaml")],
    )
    assert seen["seen"] == [str(program)]


@pytest.mark.usefixtures("bubblewrap")
async def test_an_interpreter_in_the_home_shows_nothing_but_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, away = tmp_path / "home", tmp_path / "project"
    (home / "bin").mkdir(parents=True)
    (home / "private").write_text("not for it")
    real = Path(sys.executable).resolve()
    shutil.copy(real, home / "bin" / "python3")
    (away / "venv" / "bin").mkdir(parents=True)
    (away / "venv" / "pyvenv.cfg").write_text(f"home = {real.parent}\n")
    (away / "venv" / "bin" / "python").symlink_to(home / "bin" / "python3")
    monkeypatch.setenv("HOME", str(home))
    asked = [str(home / "bin" / "python3"), str(home / "private"), str(away / "toolgrove.yaml")]
    config = project(away, command="venv/bin/python", sandbox={"paths": [sys.base_prefix]})
    assert (await look(config, paths=asked))["seen"] == asked[:1]


@pytest.mark.usefixtures("bubblewrap")
async def test_a_path_that_does_not_exist_is_told_by_its_place(tmp_path: Path) -> None:
    said = await problem(project(tmp_path, sandbox={"paths": [".", "gone"]}))
    assert said == "the server is not started: mcpServers.spy.sandbox.paths[1] does not exist"


async def test_without_bubblewrap_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = await problem(project(tmp_path, sandbox=True))
    assert said == (
        "the server is not started: it must run in a sandbox, and bubblewrap is not installed (apt install bubblewrap)"
    )


async def test_where_bubblewrap_does_not_work_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no namespaces here' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    said = await problem(project(tmp_path, sandbox=True))
    assert said.endswith("it must run in a sandbox, and bubblewrap does not work on this machine")


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"url": "https://tools.example/mcp"}, "sandbox is for a server with a command"),
        ({"command": "x", "cwd": "."}, "leave cwd out"),
    ],
)
def test_a_sandbox_that_does_not_fit_is_an_error_of_the_file(tmp_path: Path, entry: dict[str, Any], why: str) -> None:
    file = tmp_path / "toolgrove.yaml"
    file.write_text(json.dumps({"mcpServers": {"spy": {**entry, "sandbox": True}}}))
    with pytest.raises(ConfigError, match=why):
        Config.load(file)


def test_false_is_no_sandbox(tmp_path: Path) -> None:
    assert project(tmp_path, sandbox=False) == project(tmp_path)
