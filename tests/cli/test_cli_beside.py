"""Commands beside a gateway that serves the same project: one brain, whoever asks it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from cli_kit import Said, Toolgrove, at_a_terminal
from faults.kit import fake
from toolgrove import Config, Grove
from toolgrove.cli import main
from toolgrove.cli.approvals import LASTING
from toolgrove.cli.audit import KINDS, OUTCOMES
from toolgrove.cli.carrier import Carrier
from toolgrove.cli.desk.table import begin
from toolgrove.cli.options import STATE
from toolgrove.config import project
from toolgrove.control.client import Gateway as Found
from toolgrove.control.door import reached
from toolgrove.control.note import Note, read, write
from toolgrove.control.server import Control
from toolgrove.store.audit import Kind, Outcome
from toolgrove.store.state import Lasting
from waiting import DEADLINE, wait_until
from warm.command import Process, python
from web.gateway import Gateway, serving, started

pytestmark = pytest.mark.anyio
PROJECT: dict[str, Any] = {
    "project": "garden",
    "workspace": {"store": "sqlite:grove.db", "payloadTypes": {"Note": {}}},
    "mcpServers": {"up": fake()},
    "agents": {
        "a": {"role": "editor", "tools": ["get_*", "add_*", "up_*"], "approve": ["up_echo"]},
        "reader": {"tools": ["get_*"]},
    },
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(tmp_path_factory.mktemp("project"), PROJECT) as running:
        yield running


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Gateway]:
    """One that the test ends."""
    with started(tmp_path, PROJECT) as running:
        yield running


def test_every_command_uses_the_gateway_and_says_so(toolgrove: Toolgrove, gateway: Gateway, tmp_path: Path) -> None:
    config = ("--config", str(gateway.file))
    remark = f"Using the gateway at {gateway.base}.\n"
    assert stat.S_IMODE((gateway.file.parent / STATE / "control.sock").stat().st_mode) == 0o600
    assert stat.S_IMODE((gateway.file.parent / STATE / "gateway.json").stat().st_mode) == 0o600
    version = toolgrove("call", "a", "get_node", "nodeId=root", *config).json["version"]
    new = {"parentNodeId": "root", "payloadType": "Note", "payloadProps": {"name": "Plan"}, "versionToken": version}
    added = toolgrove("call", "a", "add_child", json.dumps(new), *config)
    assert (added.code, added.err) == (0, remark)
    assert "Plan n1 Note" in toolgrove("tree", *config).out
    asked = toolgrove("call", "a", "up_echo", "text=hi", *config)
    (waiting,) = toolgrove("approvals", "--json", *config).json
    assert waiting["id"] == asked.json["error"]["approvalId"]
    assert toolgrove("approvals", "approve", waiting["id"], *config).err == remark
    done = toolgrove("call", "a", "up_echo", "text=hi", *config)
    assert (done.code, done.json["content"][0]["text"]) == (0, "hi")
    progress = toolgrove("call", "a", "up_progress", *config)
    assert progress.err.startswith(f"{remark}1")
    for words in (("tools", "a"), ("explain", "a"), ("explain", "a", "up_echo"), ("doctor",), ("pins",), ("tokens",)):
        said = toolgrove(*words, *config)
        assert (said.code, said.err) == (0, remark), words
    calls = toolgrove("audit", "--kind", "call", "--limit", "2", "--json", *config).json
    assert [one["operation"] for one in calls] == ["up_echo", "up_progress"]
    assert toolgrove("audit", "verify", *config).code == 0
    unknown = toolgrove("call", "nobody", "get_node", *config)
    assert (unknown.code, "No agent 'nobody' is defined" in unknown.err) == (1, True)
    wrong = toolgrove("approvals", "show", "none", *config)
    assert (wrong.code, wrong.err.startswith(f"{remark}toolgrove: ")) == (1, True)


def test_the_doctor_asks_the_gateway_what_it_has_from_its_own_surroundings(
    toolgrove: Toolgrove, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = {"command": python()[0], "args": ["-c", "raise SystemExit('no route to the index')"]}
    config = {
        "mcpServers": {"up": failing},
        "httpTools": {
            "shop": {"description": "x", "url": "https://shop.example/it", "headers": {"X": "${env:SHOP_X}"}}
        },
        "agents": {"a": {"tools": ["*"]}},
    }
    monkeypatch.delenv("ALL_PROXY", raising=False)
    with started(tmp_path, config, environ={"SHOP_X": "canary-x", "ALL_PROXY": "http://proxy.example"}):
        found = toolgrove("doctor", "--json").json["findings"]
    told = [(one["level"], one["message"]) for one in found if one["area"] in ("servers", "secrets")]
    assert ("note", "said: no route to the index") in told
    assert ("ok", "${env:SHOP_X} is set (for any tool: 'secrets' does not name it)") in told
    assert any("did not get" in text and "ALL_PROXY" in text for _, text in told)


LIGHT = """
import sys
from toolgrove.cli import main
code = main({words!r})
heavy = ("apcore", "mcp", "pydantic", "sqlite3", "starlette", "toolgrove.config", "toolgrove.grove", "toolgrove.store")
measuring = ["sqlite3"] if "coverage" in sys.modules else []
print("imported:", code, *(name for name in heavy if name in sys.modules and name not in measuring))
"""


@pytest.mark.cold
@pytest.mark.parametrize(
    "words",
    [
        *(("call", "a", "get_node", "nodeId=root"), ("tools", "a"), ("explain", "a"), ("tree",)),
        *(("approvals",), ("audit", "--limit", "1"), ("pins",), ("tokens",), ("open", "--no-browser")),
        *(("completion", "--words", "call", "a", "get_n"), ("completion", "--words", "audit", "--outcome", "")),
    ],
)
def test_beside_a_gateway_a_command_loads_nothing_of_the_project(gateway: Gateway, words: tuple[str, ...]) -> None:
    code = LIGHT.format(words=list(words))
    folder = gateway.file.parent
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE, cwd=folder)
    assert ended.stdout.splitlines()[-1] == "imported: 0", ended.stdout + ended.stderr


async def test_stdio_is_carried_to_the_gateway_and_ends_with_it(gateway: Gateway) -> None:
    words = ("-m", "toolgrove", "stdio", "reader", "--config", str(gateway.file))
    server = StdioServerParameters(command=python()[0], args=python(*words)[1:], env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} >= {"get_node"}
        answer = await client.call_tool("get_node", {"nodeId": "root"})
        assert answer.structured_content is not None
    async with gateway.http("operator") as http:
        records = (await http.get("/api/audit", params={"agent": "reader", "kind": "call"})).json()["items"]
    assert [one["operation"] for one in records] == ["get_node"]


def test_a_client_over_stdio_is_told_when_the_gateway_goes_away(doomed: Gateway) -> None:
    words = ("-m", "toolgrove", "stdio", "reader", "--config", str(doomed.file))
    with Process(python(*words), stdin=-1, stdout=-1, stderr=-1) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(INITIALIZE)
        client.stdin.flush()
        assert b'"serverInfo"' in client.stdout.readline()
        doomed.process.terminate()
        assert client.wait(timeout=60) == 1  # while its input is still open
        assert client.stderr is not None
        said = client.stderr.read()
    assert b"the gateway has ended, and this connection with it" in said


def test_stdio_as_an_agent_that_is_not_there_is_told_so(gateway: Gateway) -> None:
    words = ("-m", "toolgrove", "stdio", "nobody", "--config", str(gateway.file))
    with Process(python(*words), stdin=-1, stdout=-1, stderr=-1) as client:
        _, said = client.communicate(timeout=60)
    assert (client.returncode, b"No agent 'nobody' is defined" in said) == (1, True)


INITIALIZE = (
    json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        }
    ).encode()
    + b"\n"
)


def test_the_log_and_the_inbox_are_followed_as_they_grow(
    toolgrove: Toolgrove, gateway: Gateway, tmp_path: Path
) -> None:
    config = ("--config", str(gateway.file))
    with at_a_terminal("audit", "-f", *config, cwd=tmp_path, width=200) as log:
        log.read_until("Using the gateway")
        with at_a_terminal("approvals", "--watch", *config, cwd=tmp_path, width=200) as inbox:
            inbox.read_until("Ctrl\\+C stops")
            asked = toolgrove("call", "a", "up_echo", "text=hi", *config).json["error"]["approvalId"]
            inbox.read_until(f"pending +{asked} +a up_echo")
            toolgrove("approvals", "reject", asked, "--reason", "not now", *config)
            inbox.read_until(f"rejected +{asked}")
            inbox.interrupt()
        log.read_until("a +approval.rejected +success")
        log.interrupt()


def test_a_gateway_without_a_socket_of_its_own_is_reached_over_loopback_with_a_token(
    toolgrove: Toolgrove, tmp_path: Path
) -> None:
    folder = tmp_path / STATE
    (folder / "control.sock").mkdir(parents=True)  # so that none can be made
    with started(tmp_path, PROJECT) as gateway:
        note = read(folder)
        assert note is not None
        assert (note.socket, note.port > 0) == ("", True)
        assert stat.S_IMODE((folder / "control.token").stat().st_mode) == 0o600
        said = toolgrove("call", "reader", "get_node", "nodeId=root")
        assert (said.code, said.err) == (0, f"Using the gateway at {gateway.base}.\n")
        gateway.stop()
    assert not (folder / "control.token").exists()


AS_ANOTHER = """
import contextlib, io, os, sys
from toolgrove.cli import main
_, warm, *words = sys.argv
here = os.getcwd()
os.chdir(warm)
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main(words)  # loads what others may not be allowed to read
os.chdir(here)
os.setresuid(65534, 65534, 65534)
sys.exit(main(words))
"""


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with a store and a state in a folder that every user may look into."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "toolgrove.yaml").write_text("workspace: {store: 'sqlite:grove.db'}")
        monkeypatch.chdir(folder)
        assert main(["tokens", "new", "editor"]) == 0
        assert main(["call", "editor", "get_node", "nodeId=root"]) == 0
        yield folder


def as_another(folder: Path, warm: Path, *words: str) -> Said:
    """Run a command as a user who owns nothing there."""
    shutil.copytree(folder, warm, dirs_exist_ok=True)
    command = [sys.executable, "-c", AS_ANOTHER, str(warm), *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, cwd=folder)
    return Said(ended.returncode, ended.stdout, ended.stderr)


only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@only_root
def test_another_user_is_told_whose_the_project_is(shared: Path, tmp_path: Path) -> None:
    for words in (("open",), ("install", "cursor", "editor")):
        said = as_another(shared, tmp_path, *words)
        told = f"{STATE} belongs to root, and so does a gateway that uses it; run this command as root"
        assert (said.code, told in said.err) == (1, True), said.err


@only_root
def test_what_is_kept_in_a_folder_that_cannot_be_written_is_read_all_the_same(shared: Path, tmp_path: Path) -> None:
    for place in shared.rglob("*"):
        place.chmod(0o755 if place.is_dir() else 0o644)
    assert "issued" in as_another(shared, tmp_path, "tokens").out
    assert "get_node" in as_another(shared, tmp_path, "audit").out
    assert "root Root" in as_another(shared, tmp_path, "tree").out
    made = as_another(shared, tmp_path, "tokens", "new", "editor")
    assert (made.code, "readonly" in made.err) == (1, True)


def test_a_call_that_waits_is_told_as_such_at_a_terminal(gateway: Gateway, tmp_path: Path) -> None:
    words = ("call", "a", "up_echo", "text=once", "--config", str(gateway.file))
    with at_a_terminal(*words, cwd=tmp_path, width=200) as terminal:
        shown = terminal.rest()
    assert "waiting: up_echo needs a person's approval (approve: up_echo)." in shown
    assert "To agree: toolgrove approvals approve" in shown
    assert "forbidden" not in shown
    wrong = ("call", "a", "add_child", "--config", str(gateway.file))
    with at_a_terminal(*wrong, cwd=tmp_path, width=200) as terminal:
        shown = terminal.rest()
    assert "invalid_argument: The arguments:" in shown
    assert shown.count("Required: parentNodeId") == 1


async def test_a_note_that_nobody_stands_behind_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "toolgrove.yaml"
    folder = tmp_path / STATE
    folder.mkdir()
    assert reached(folder, file) is None
    dead = Process(python("-c", "pass"))
    dead.wait()
    note = Note(file=str(file), address="http://127.0.0.1:1", pid=dead.pid, instance="x", socket=str(folder / "s"))
    write(folder, note)
    assert reached(folder, file) is None
    write(folder, note._replace(pid=os.getpid()))
    assert reached(folder, file) is None  # a process lives, and is not a gateway
    (folder / "gateway.json").write_text('{"file": 1}')
    assert read(folder) is None


@pytest.mark.parametrize("unix", [True, False])
async def test_a_gateway_is_found_by_its_own_note_alone_over_either_kind_of_socket(tmp_path: Path, unix: bool) -> None:
    folder = tmp_path.joinpath(*["a-rather-long-name"] * 8) / STATE  # more than a Unix socket's address can hold
    file = tmp_path / "toolgrove.yaml"
    async with Grove() as grove:
        control = Control(
            lambda do, given, client: begin(grove, do, given, client), Carrier(grove), cut_off=grove.cut_off
        )
        async with control.listening(folder, file, "http://127.0.0.1:1", unix=unix) as note:
            found = await anyio.to_thread.run_sync(reached, folder, file)
            assert found == note
            assert await Found(folder, note).ask("agents") == ["editor", "reader"]
            assert await anyio.to_thread.run_sync(reached, folder, tmp_path / "other.yaml") is None
            write(folder, note._replace(instance="another"))
            assert await anyio.to_thread.run_sync(reached, folder, file) is None
            write(folder, note)
            if not unix:
                assert stat.S_IMODE((folder / "control.token").stat().st_mode) == 0o600
                (folder / "control.token").write_text("guessed")
                assert await anyio.to_thread.run_sync(reached, folder, file) is None
                strange = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
                assert await anyio.to_thread.run_sync(_answer_to, note.port, strange) == b""
    assert read(folder) is None


def _answer_to(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(request)
        line.shutdown(socket.SHUT_WR)
        return line.recv(100)


def test_quick_commands_know_the_state_folder() -> None:
    assert STATE == project.STATE
    assert Config().state is None


def test_quick_commands_know_the_words_of_the_log_and_of_approvals() -> None:
    assert (get_args(Outcome), get_args(Kind)) == (OUTCOMES, KINDS)
    assert get_args(Lasting) == LASTING


def test_a_killed_gateway_leaves_nothing_that_stops_a_command(toolgrove: Toolgrove, doomed: Gateway) -> None:
    doomed.process.kill()
    doomed.process.wait()
    assert (doomed.file.parent / STATE / "gateway.json").exists()
    wait_until(lambda: toolgrove("call", "a", "get_node", "nodeId=root", "--config", str(doomed.file)).code == 0)
    said = toolgrove("tools", "reader", "--config", str(doomed.file))
    assert (said.code, said.err) == (0, "")


def test_install_writes_the_address_of_the_gateway_with_a_token_of_its_own(
    toolgrove: Toolgrove, gateway: Gateway
) -> None:
    said = toolgrove("install", "cursor", "reader", "--config", str(gateway.file))
    entry = said.json["mcpServers"]["garden-reader"]
    assert entry["url"] == gateway.agents["reader"]
    assert f"Cursor calls the gateway that runs now: {gateway.agents['reader']}" in said.err
    answer = httpx2.get(
        f"{gateway.base}/agents/reader/receipt", headers=entry["headers"], verify=False, timeout=DEADLINE
    )
    assert answer.status_code == 200
    desktop = toolgrove("install", "claude-desktop", "reader", "--config", str(gateway.file))
    assert desktop.json["mcpServers"]["garden-reader"]["args"][-4:-1] == ["stdio", "reader", "--config"]
    assert f"passes everything on to the gateway at {gateway.base}" in desktop.err
    alone = toolgrove("install", "cursor", "reader", "--stdio", "--config", str(gateway.file))
    assert "command" in alone.json["mcpServers"]["garden-reader"]


def test_install_tells_which_token_it_replaced(
    toolgrove: Toolgrove, gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    words = ("install", "cursor", "reader", "--write", "--config", str(gateway.file))
    first, second = toolgrove(*words), toolgrove(*words)
    (made,) = re.findall(r"toolgrove tokens revoke (\w+)", first.err)
    assert "still good" not in first.out
    assert f"The token of the entry before is still good. To void it: toolgrove tokens revoke {made}\n" in second.out
    assert toolgrove("tokens", "revoke", made, "--config", str(gateway.file)).code == 0


def test_install_writes_the_address_that_the_project_names(toolgrove: Toolgrove, tmp_path: Path) -> None:
    (tmp_path / "toolgrove.yaml").write_text("gatewayUrl: https://tools.example.org")
    said = toolgrove("install", "cursor", "editor")
    entry = said.json["mcpServers"]["default-editor"]
    assert entry["url"] == "https://tools.example.org/agents/editor/mcp"
    assert entry["headers"]["Authorization"].startswith("Bearer tg_")
    assert "Cursor calls the gateway in gatewayUrl" in said.err
