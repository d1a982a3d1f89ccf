"""Starting: whatever is wrong is one clear line and a non-zero exit, and nothing is half-started."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from faults.kit import Journal, fake
from waiting import DEADLINE
from web.gateway import PROJECT, serving, toolgrove


def refused(*arguments: str, folder: Path) -> str:
    """What the command said; it has to fail in one line, without a trace of its inside, at most after it began."""
    done = subprocess.run(
        toolgrove("serve", *arguments),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        cwd=folder,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    *said, line = done.stderr.strip().splitlines()
    assert [json.loads(each)["message"].split()[0] for each in said] in ([], ["Starting"])
    assert line.startswith("toolgrove: ")
    return line


def project(folder: Path, config: Any = PROJECT) -> Path:
    file = folder / "toolgrove.yaml"
    file.write_text(config if isinstance(config, str) else json.dumps(config))
    return file


def test_a_port_in_use_is_named_and_nothing_was_started(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    file = project(tmp_path, {**PROJECT, "mcpServers": {"up": fake(journal=journal)}})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(str(file), "--port", str(port), folder=tmp_path)
    assert f"127.0.0.1:{port}" in line
    assert "--port" in line
    assert journal.pids == []
    assert not (tmp_path / ".toolgrove").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_without_tokens_only_loopback_is_served(tmp_path: Path, host: str) -> None:
    line = refused(str(project(tmp_path)), "--host", host, "--port", "0", "--no-tokens-on-loopback", folder=tmp_path)
    assert "--no-tokens-on-loopback" in line
    assert host in line
    assert not (tmp_path / ".toolgrove").exists()


def test_beyond_loopback_a_token_is_needed(tmp_path: Path) -> None:
    with serving(tmp_path / "project", PROJECT, "--host", "0.0.0.0") as gateway:
        base = f"http://127.0.0.1:{gateway.port}"
        assert httpx2.get(f"{base}/health", timeout=DEADLINE).status_code == 200
        assert httpx2.get(f"{base}/api/project", timeout=DEADLINE).status_code == 401
        answer = httpx2.get(f"{base}/api/project", headers=gateway.headers("operator"), timeout=DEADLINE)
        assert answer.status_code == 200
        rebinding = {"Host": "evil.com"}
        assert httpx2.get(f"{base}/health", headers=rebinding, timeout=DEADLINE).status_code == 421


BAD: dict[str, tuple[Any, str]] = {
    "not YAML": ("agents: {", "toolgrove.yaml"),
    "unknown key": ({"agnets": {}}, "agents"),
    "wrong type": ({"agents": {"a": {"tools": 5}}}, "agents.a.tools"),
    "a bad rate": ({"agents": {"a": {"rateLimit": "often"}}}, "60/minute"),
    "extensions that are not there": ({"extensions": "nowhere"}, "nowhere"),
    "not UTF-8": (b"\xff\xfe", "UTF-8"),
}


@pytest.mark.parametrize(("config", "named"), BAD.values(), ids=BAD.keys())
def test_a_bad_configuration_is_explained(tmp_path: Path, config: Any, named: str) -> None:
    file = project(tmp_path, "") if isinstance(config, bytes) else project(tmp_path, config)
    if isinstance(config, bytes):
        file.write_bytes(config)
    assert named in refused(str(file), "--port", "0", folder=tmp_path)
    assert not (tmp_path / ".toolgrove").exists()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "toolgrove init" in refused("--port", "0", folder=tmp_path)
    (tmp_path / "folder.yaml").mkdir()
    assert "folder.yaml" in refused("folder.yaml", "--port", "0", folder=tmp_path)
    secret = project(tmp_path)
    secret.chmod(0)
    if os.access(secret, os.R_OK):
        return  # whoever is root reads everything
    assert "cannot be read" in refused(str(secret), "--port", "0", folder=tmp_path)


def test_the_state_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    file = project(tmp_path)
    with serving(tmp_path):
        pass
    state = tmp_path / ".toolgrove" / "state.db"
    connection = sqlite3.connect(state)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = state.read_bytes()
    line = refused(str(file), "--port", "0", folder=tmp_path)
    assert "999" in line
    assert "update Toolgrove" in line
    assert state.read_bytes() == before


@pytest.mark.parametrize("damage", ["not a database", "a folder", "a file in place of the folder"])
def test_a_state_that_cannot_be_read_is_named(tmp_path: Path, damage: str) -> None:
    file, state = project(tmp_path), tmp_path / ".toolgrove"
    if damage == "a file in place of the folder":
        state.write_text("x")
    else:
        state.mkdir()
        (state / "state.db").mkdir() if damage == "a folder" else (state / "state.db").write_bytes(b"garbage" * 1000)
    assert ".toolgrove" in refused(str(file), "--port", "0", folder=tmp_path)


def test_with_json_a_failure_is_json_too(tmp_path: Path) -> None:
    command = toolgrove("serve", str(tmp_path / "none.yaml"), "--port", "0", "--json")
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "invalid_argument"


@pytest.mark.parametrize("port", ["-1", "65536", "many"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    command = toolgrove("serve", str(project(tmp_path)), "--port", port)
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "port" in done.stderr


def test_the_first_start_shows_tokens_on_standard_output_and_none_in_the_log(tmp_path: Path) -> None:
    file, errors = project(tmp_path), tmp_path / "stderr"
    with (
        errors.open("w") as told,
        subprocess.Popen(
            toolgrove("serve", str(file), "--port", "0"),
            stdout=subprocess.PIPE,
            stderr=told,
            stdin=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        ) as process,
    ):
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(3)]
        finally:
            process.terminate()
            assert process.wait(DEADLINE) == 0
    assert re.fullmatch(r"Console: http://127\.0\.0\.1:\d+/console#token=tg_\S+\n", lines[0])
    assert {line.split()[0] for line in lines[1:]} <= {"AGENT", "researcher", "editor"}
    assert json.loads(errors.read_text().splitlines()[0])["message"].startswith("Starting ")
    assert "tg_" not in errors.read_text()
