"""`toolgrove install`: what it prints and writes for each client, and what it leaves alone."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from cli_kit import Project, Toolgrove
from toolgrove import Config
from toolgrove.cli.install.client import CLIENTS
from toolgrove.project_state import ProjectState
from toolgrove.store.state import hashed

AGENTS = {"editor": {"role": "editor", "tools": ["*"]}}
GATEWAY = "http://127.0.0.1:8000"
ADDRESS = f"{GATEWAY}/agents/editor/mcp"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: Project) -> Path:
    """A home of its own, and a project with one agent."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    project(project="kitchen garden", agents=AGENTS)
    return folder


def test_it_prints_what_a_client_needs_and_writes_nothing(toolgrove: Toolgrove, home: Path, tmp_path: Path) -> None:
    said = toolgrove("install", "claude-desktop", "--agent", "editor")
    assert said.code == 0
    assert "claude_desktop_config.json; --write puts it there" in said.err
    server = said.json["mcpServers"]["kitchen-garden-editor"]
    assert server["args"][-4:] == ["stdio", "editor", "--config", str(tmp_path / "toolgrove.yaml")]
    assert Path(server["command"]).is_absolute()
    assert list(home.iterdir()) == []


@pytest.mark.anyio
async def test_the_printed_command_serves_the_agent(toolgrove: Toolgrove, home: Path) -> None:
    server = toolgrove("install", "cursor", "--agent", "editor").json["mcpServers"]["kitchen-garden-editor"]
    command = StdioServerParameters(command=server["command"], args=server["args"])
    with anyio.fail_after(60):
        async with Client(stdio_client(command)) as client:
            assert "add_child" in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.anyio
async def test_a_python_file_is_installed_without_a_project(toolgrove: Toolgrove, home: Path, tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text("def add(a: int, b: int = 2) -> int:\n    return a + b\n")
    (tmp_path / "toolgrove.yaml").unlink()
    assert toolgrove("install", "claude-desktop", "sums.py", "--write").code == 0
    assert toolgrove("install", "claude-desktop", "sums.py", "--write").code == 0  # its own entry, not another's
    settings = json.loads((home / ".config/Claude/claude_desktop_config.json").read_text())
    server = settings["mcpServers"]["sums"]
    with anyio.fail_after(60):
        async with Client(stdio_client(StdioServerParameters(**server))) as client:
            result = await client.call_tool("add", {"a": 1})
    assert result.structured_content == {"result": 3}


def test_a_folder_and_a_registry_in_a_file_are_installed_alone(
    toolgrove: Toolgrove, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "app.py").touch()
    folder = toolgrove("install", "cursor", "tools").json["mcpServers"]["tools"]
    assert folder["args"][-2:] == ["--extensions-dir", str(tmp_path / "tools")]
    registry = toolgrove("install", "cursor", "app.py:registry").json["mcpServers"]["app"]
    assert registry["args"][-1] == f"{tmp_path / 'app.py'}:registry"
    assert "there is no file none.py" in toolgrove("install", "cursor", "none.py").err
    assert "leave --url" in toolgrove("install", "cursor", "app.py", "--url", GATEWAY).err


def test_the_agent_is_named_in_one_place(toolgrove: Toolgrove, home: Path) -> None:
    placed = toolgrove("install", "cursor", "editor").json
    assert placed == toolgrove("install", "cursor", "--agent", "editor").json
    for words in (("install", "cursor"), ("install", "cursor", "editor", "--agent", "other")):
        with pytest.raises(SystemExit) as caught:
            toolgrove(*words)
        assert caught.value.code == 2


PLACES = {
    "claude-desktop": (".config/Claude/claude_desktop_config.json", None),
    "claude-code": (".claude.json", ".mcp.json"),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": (".config/Code/User/mcp.json", ".vscode/mcp.json"),
    "windsurf": (".codeium/windsurf/mcp_config.json", None),
    "gemini-cli": (".gemini/settings.json", ".gemini/settings.json"),
}
KEYS = {
    "claude-code": {"type": "http", "url": ADDRESS},
    "cursor": {"url": ADDRESS},
    "vscode": {"type": "http", "url": ADDRESS},
    "windsurf": {"serverUrl": ADDRESS},
    "gemini-cli": {"httpUrl": ADDRESS},
}


@pytest.mark.skipif(sys.platform != "linux", reason="the places of Linux")
@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_has_its_place(toolgrove: Toolgrove, home: Path, tmp_path: Path, client: str) -> None:
    user, project = PLACES[client]
    said = toolgrove("install", client, "--agent", "editor", "--write", "--json")
    assert said.json == {"file": str(home / user), "name": "kitchen-garden-editor", "changed": True, "backup": None}
    written = json.loads((home / user).read_text())
    assert written[CLIENTS[client].section]["kitchen-garden-editor"]["args"]
    said = toolgrove("install", client, "--agent", "editor", "--write", "--project")
    if project is None:
        assert (said.code, "leave --project out" in said.err) == (1, True)
    else:
        assert (tmp_path / project).exists()


@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_calls_a_gateway_in_its_own_words(toolgrove: Toolgrove, home: Path, client: str) -> None:
    said = toolgrove("install", client, "--agent", "editor", "--url", GATEWAY, "--token", "tg_x")
    if client not in KEYS:
        assert (said.code, "leave --url out" in said.err) == (1, True)
        return
    (entry,) = said.json[CLIENTS[client].section].values()
    assert entry == {**KEYS[client], "headers": {"Authorization": "Bearer tg_x"}}
    for url in (f"{GATEWAY}/", ADDRESS, f"{GATEWAY}/console", f"{GATEWAY}/console#token=tg_mine"):
        (same,) = toolgrove("install", client, "--agent", "editor", "--url", url).json[CLIENTS[client].section].values()
        assert same == KEYS[client]


def cursor(home: Path, text: str | None = None) -> Path:
    """Cursor's file."""
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir(exist_ok=True)
    if text is not None:
        path.write_text(text, encoding="utf-8")
    return path


OTHERS: dict[str, Any] = {
    "theme": "dark – “quoted”",
    "mcpServers": {"other": {"command": "npx", "args": ["-y", "x@1"], "env": {"KEY": "value"}}},
    "numbers": [1, 2.5, 10**20, None, True],
}


def test_everything_else_in_the_file_stays_and_a_backup_is_kept(toolgrove: Toolgrove, home: Path) -> None:
    before = json.dumps(OTHERS, indent=4, ensure_ascii=False)
    path = cursor(home, before)
    path.chmod(0o640)
    said = toolgrove("install", "cursor", "--agent", "editor", "--write")
    assert said.code == 0
    assert f"What was there is in {path}.bak." in said.out
    after = json.loads(path.read_text("utf-8"))
    ours = after["mcpServers"].pop("kitchen-garden-editor")
    assert (after, ours["args"][-3]) == (OTHERS, "editor")
    assert path.read_text("utf-8").startswith(before.partition("\n    }")[0])
    assert path.with_name("mcp.json.bak").read_text("utf-8") == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(one.name for one in path.parent.iterdir()) == ["mcp.json", "mcp.json.bak"]


def test_writing_twice_changes_nothing_and_another_address_takes_its_place(toolgrove: Toolgrove, home: Path) -> None:
    words = ("install", "cursor", "--agent", "editor", "--write")
    path = cursor(home)
    toolgrove(*words)
    first = path.stat()
    assert stat.S_IMODE(first.st_mode) == 0o600
    said = toolgrove(*words, "--json")
    assert (said.json["changed"], path.stat().st_ino) == (False, first.st_ino)
    toolgrove(*words, "--url", GATEWAY)
    assert json.loads(path.read_text())["mcpServers"] == {"kitchen-garden-editor": {"url": ADDRESS}}
    toolgrove(*words, "--name", "mine")
    assert json.loads(path.read_text())["mcpServers"].keys() == {"kitchen-garden-editor", "mine"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{\n  // mine\n  "mcpServers": {}\n}', "It has comments, which would be lost"),
        ('{"mcpServers": {},}', "is not plain JSON"),
        ('{"mcpServers": {"a": {}, "a": {}}}', "key 'a' stands twice in one object"),
        ('{"mcpServers": {"a": NaN}}', "it holds NaN"),
        ("[]", "does not hold a JSON object"),
        ('{"mcpServers": []}', "is not an object of servers"),
        ('{"mcpServers": {"kitchen-garden-editor": {"command": "x"}}}', "choose another name with --name"),
    ],
)
def test_a_file_that_could_be_harmed_is_left_alone(toolgrove: Toolgrove, home: Path, text: str, told: str) -> None:
    path = cursor(home, text)
    words = ("install", "cursor", "--agent", "editor", "--url", GATEWAY, "--new-token", "--write")
    said = toolgrove(*words)
    assert (said.code, said.out) == (1, "")
    assert told in said.err
    assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]
    with ProjectState.of(Config.load("toolgrove.yaml")) as kept:
        assert kept.tokens.holders() == {}


@pytest.mark.parametrize("planted", ["mcp.json", ""], ids=["the file", "its folder"])
@pytest.mark.parametrize("shared", [True, False])
def test_a_link_is_never_followed(toolgrove: Toolgrove, home: Path, tmp_path: Path, planted: str, shared: bool) -> None:
    real = tmp_path / "elsewhere"
    real.mkdir()
    (real / "mcp.json").write_text("{}\n")
    link = (tmp_path if shared else home) / ".cursor" / planted
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(real / planted)
    words = ("install", "cursor", "--agent", "editor", "--url", GATEWAY, "--new-token", "--write")
    said = toolgrove(*words, *(["--project"] if shared else []))
    assert (said.code, "is a link, and --write follows none" in " ".join(said.err.split())) == (1, True)
    assert [(one.name, one.read_text()) for one in real.iterdir()] == [("mcp.json", "{}\n")]
    with ProjectState.of(Config.load("toolgrove.yaml")) as kept:
        assert kept.tokens.holders() == {}


def test_earlier_copies_stay_and_a_planted_one_is_not_written_through(toolgrove: Toolgrove, home: Path) -> None:
    path = cursor(home, '{"a": "first"}\r\n')
    victim = home / ".profile"
    victim.write_text("mine")
    path.with_name("mcp.json.bak").symlink_to(victim)
    path.with_name("mcp.json.bak.1").symlink_to(home / "not there yet")
    for name in ("one", "two"):
        assert toolgrove("install", "cursor", "--agent", "editor", "--write", "--name", name).code == 0
    assert path.with_name("mcp.json.bak.2").read_bytes() == b'{"a": "first"}\r\n'
    assert json.loads(path.with_name("mcp.json.bak.3").read_text())["mcpServers"].keys() == {"one"}
    assert stat.S_IMODE(path.with_name("mcp.json.bak.3").stat().st_mode) == 0o600
    assert victim.read_text() == "mine"
    assert not (home / "not there yet").exists()


def test_a_file_with_a_token_is_its_owners_alone(toolgrove: Toolgrove, home: Path) -> None:
    path = cursor(home, "{}")
    words = ("install", "cursor", "--agent", "editor", "--url", GATEWAY, "--token", "tg_x", "--write")
    for _ in range(2):  # the second time it is there already
        path.chmod(0o644)
        assert "only you can read it now" in toolgrove(*words).out
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_mark_at_the_start_of_the_file_stays(toolgrove: Toolgrove, home: Path) -> None:
    path = cursor(home, "\ufeff{}\n")
    assert toolgrove("install", "cursor", "--agent", "editor", "--write").code == 0
    assert path.read_text("utf-8").startswith("\ufeff{")


def test_a_new_token_opens_the_gateway_to_the_client(toolgrove: Toolgrove, home: Path, tmp_path: Path) -> None:
    words = ("install", "vscode", "--agent", "editor", "--url", GATEWAY, "--new-token", "--project", "--write")
    said = toolgrove(*words)
    assert "keep it out of version control" in said.out
    assert "tg_" not in said.out + said.err
    written = json.loads((tmp_path / ".vscode" / "mcp.json").read_text())
    header = written["servers"]["kitchen-garden-editor"]["headers"]["Authorization"]
    with ProjectState.of(Config.load("toolgrove.yaml")) as kept:
        assert kept.tokens.holders() == {hashed(header.removeprefix("Bearer ")): "editor"}


def test_a_place_that_cannot_be_written_is_one_line(toolgrove: Toolgrove, home: Path) -> None:
    (home / ".cursor").write_text("not a folder")
    said = toolgrove("install", "cursor", "--agent", "editor", "--write")
    assert (said.code, said.err.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--agent", "editr"), "Did you mean 'editor'?"),
        (("--agent", "editor", "--token", "x"), "name its address with --url"),
        (("--agent", "editor", "--url", "localhost:8000"), "is not the address of a gateway"),
    ],
)
def test_what_does_not_fit_is_told(toolgrove: Toolgrove, home: Path, words: tuple[str, ...], told: str) -> None:
    said = toolgrove("install", "cursor", *words)
    assert (said.code, said.out) == (1, "")
    assert told in said.err
