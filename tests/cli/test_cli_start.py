"""Starting a project on the command line, and what every command has in common."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cli_kit import Project, Toolgrove, at_a_terminal
from toolgrove import Config
from toolgrove.cli import main
from toolgrove.cli.program import COMMANDS
from toolgrove.cli.screen import Screen


def test_init_writes_a_file_that_loads_and_whose_agents_have_tools(toolgrove: Toolgrove, tmp_path: Path) -> None:
    said = toolgrove("init")
    assert said.code == 0
    assert said.out == (
        "Wrote toolgrove.yaml with the agents researcher and editor, and toolgrove.schema.json for your editor.\n"
        "Next: toolgrove doctor, then toolgrove explain researcher\n"
    )
    assert list(Config.load("toolgrove.yaml").agents) == ["researcher", "editor"]
    schema = json.loads((tmp_path / "toolgrove.schema.json").read_text(encoding="utf-8"))
    assert schema == Config.json_schema()
    for agent in ("researcher", "editor"):
        assert len(toolgrove("tools", "--agent", agent, "--json").json) > 10
    assert toolgrove("doctor").code == 0


def test_the_commented_parts_of_the_starter_file_load_too(toolgrove: Toolgrove, tmp_path: Path) -> None:
    toolgrove("init")
    lines = (tmp_path / "toolgrove.yaml").read_text(encoding="utf-8").splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("project:"))
    keys = ("# extensions:", "# mcpServers:", "# httpTools:", "# secrets:", "#   ")
    opened = [line.removeprefix("# ") if line.startswith(keys) else line for line in lines[start:]]
    (tmp_path / "all.yaml").write_text("\n".join(opened), encoding="utf-8")
    config = Config.load("all.yaml")
    assert (list(config.mcp_servers), list(config.http_tools)) == (["time", "wiki"], ["get_item"])
    assert config.extensions == tmp_path / "extensions"


def test_init_leaves_a_file_that_is_there_as_it_is(toolgrove: Toolgrove, project: Project) -> None:
    path = project(project="mine")
    said = toolgrove("init")
    assert (said.code, said.out) == (1, "")
    assert "toolgrove.yaml is there already and stays as it is; name another file with --config" in said.err
    assert json.loads(path.read_text()) == {"project": "mine"}
    assert toolgrove("init", "--config", "other.yaml").code == 0


def test_init_needs_a_folder(toolgrove: Toolgrove) -> None:
    said = toolgrove("init", "--config", "none/toolgrove.yaml")
    told = "none is not a folder; make it first, or name another file with --config"
    assert (said.code, said.err) == (1, f"toolgrove: {told}\n")


def test_without_a_project_file_a_command_says_how_to_get_one(toolgrove: Toolgrove) -> None:
    said = toolgrove("explain", "researcher")
    assert (said.code, said.out) == (1, "")
    assert said.err == "toolgrove: toolgrove.yaml: there is no such file; 'toolgrove init' writes one to start from\n"


def test_a_bad_file_is_told_in_one_paragraph_and_to_machines_as_an_error_object(
    toolgrove: Toolgrove, project: Project
) -> None:
    project(agents={"a": {"tolls": []}})
    told = "toolgrove.yaml: line 1, column 19: agents.a.tolls: unknown key; did you mean 'tools'?"
    assert toolgrove("doctor").err == f"toolgrove: {told}\n"
    said = toolgrove("--json", "doctor")
    assert (said.code, said.json) == (1, {"error": {"code": "invalid_argument", "message": told}})


def test_options_stand_before_or_after_the_command(toolgrove: Toolgrove) -> None:
    toolgrove("init", "--config", "other.yaml")
    for words in (
        ("--config", "other.yaml", "tools", "--agent", "editor"),
        ("tools", "--agent", "editor", "--config", "other.yaml"),
        ("schema", "--config", "other.yaml", "--json"),
    ):
        assert toolgrove(*words).code == 0


@pytest.mark.parametrize(
    "words",
    [
        *(("fly",), ("explain",), ("tools",), ("pins", "burn"), ("--colour",), ("explain", "a", "--depth", "-1")),
        *(("serve", "--port", "65536"), ("demo", "--port", "-1"), ("tree", "x", "--nodes", "0")),
    ],
)
def test_a_wrong_call_is_a_usage_error(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage: toolgrove" in capsys.readouterr().err


def test_the_schema_is_printed(toolgrove: Toolgrove) -> None:
    assert toolgrove("schema").json == Config.json_schema()


def test_a_fault_of_ours_is_one_line_too(
    toolgrove: Toolgrove, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project()
    monkeypatch.setattr(Config, "load", lambda path: 1 / 0)
    said = toolgrove("doctor")
    assert (said.code, said.err) == (
        1,
        "toolgrove: a fault of ours (ZeroDivisionError); TOOLGROVE_DEBUG=1 shows where.\n",
    )
    error = toolgrove("doctor", "--json").json["error"]
    assert (error["code"], "ZeroDivisionError" in error["message"]) == ("internal", True)
    monkeypatch.setenv("TOOLGROVE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        toolgrove("doctor")


def run(*words: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "toolgrove", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False, **options)


@pytest.mark.cold
def test_the_module_is_the_command(tmp_path: Path) -> None:
    assert run("init", cwd=tmp_path).returncode == 0
    said = run("--version", cwd=tmp_path)
    assert said.stdout.startswith("toolgrove ")


@pytest.mark.cold
def test_a_pipe_gets_whole_lines_without_colours(tmp_path: Path) -> None:
    run("init", cwd=tmp_path)
    said = run("tools", "--agent", "editor", cwd=tmp_path)
    assert "\x1b" not in said.stdout
    assert all(line == line.rstrip() for line in said.stdout.splitlines())
    assert any(len(line) > 100 for line in said.stdout.splitlines())


@pytest.mark.cold
@pytest.mark.parametrize("words", [("schema",), ("doctor", "--json", "--config", "none.yaml")])
def test_a_reader_who_leaves_early_causes_no_complaint(tmp_path: Path, words: tuple[str, ...]) -> None:
    run("init", cwd=tmp_path)
    command = [sys.executable, "-m", "toolgrove", *words]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=60)
    assert process.returncode == 1


@pytest.mark.cold
def test_a_terminal_that_cannot_show_a_character_shows_its_escape(tmp_path: Path) -> None:
    run("init", cwd=tmp_path)
    said = run("tools", "--agent", "editor", cwd=tmp_path, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (said.returncode, said.stderr) == (0, "")
    assert "\\u2026" in said.stdout


def test_the_files_that_init_writes_belong_to_everyone_who_may_read_the_folder(
    toolgrove: Toolgrove, tmp_path: Path
) -> None:
    toolgrove("init")
    assert not (tmp_path / "toolgrove.yaml").stat().st_mode & stat.S_IWOTH
    assert not (tmp_path / ".toolgrove").exists()


def test_an_address_or_a_token_is_never_folded(project: Project, tmp_path: Path) -> None:
    project(agents={"researcher": {"tools": ["*"]}})
    with at_a_terminal("serve", "--port", "0", cwd=tmp_path, width=40) as terminal:
        console = r"Console: http://127\.0\.0\.1:\d+/console#token=tg_[\w-]{43}\n"
        terminal.read_until(
            console + r"[^\n]*\nresearcher  http://127\.0\.0\.1:\d+/agents/researcher/mcp  tg_[\w-]{43}\n"
        )
        terminal.process.send_signal(signal.SIGTERM)
    with at_a_terminal("tokens", "new", "researcher", cwd=tmp_path, width=20) as terminal:
        terminal.read_until(r"\ntg_[\w-]{43}\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--host", "192.0.2.1"), "cannot listen on 192.0.2.1:8000: Cannot assign requested address. Name an address "),
        (("--host", "none.invalid"), "Name an address of this machine with --host."),
    ],
)
def test_an_address_that_is_not_of_this_machine_is_told(
    toolgrove: Toolgrove, project: Project, words: tuple[str, ...], told: str
) -> None:
    project()
    said = toolgrove("serve", *words)
    assert (said.code, told in said.err, "while attempting" in said.err) == (1, True, False)


def test_where_nobody_needs_a_token_a_changed_file_brings_none(project: Project, tmp_path: Path) -> None:
    project(agents={"first": {"tools": ["*"]}})
    with at_a_terminal("serve", "--port", "0", "--no-tokens-on-loopback", cwd=tmp_path) as terminal:
        shown = terminal.read_until("/agents/first/mcp")
        project(agents={"second": {"tools": ["*"]}})
        shown += terminal.read_until("the project file was read again")
        terminal.process.send_signal(signal.SIGTERM)
        shown += terminal.rest()
    assert "Token of" not in shown
    assert "tg_" not in shown


def test_serve_takes_one_project_file(toolgrove: Toolgrove, project: Project) -> None:
    project()
    said = toolgrove("serve", "toolgrove.yaml", "--config", "other.yaml")
    assert (said.code, "name the project files once, not toolgrove.yaml and --config other.yaml" in said.err) == (
        1,
        True,
    )


def test_the_demo_needs_a_folder(toolgrove: Toolgrove, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    said = toolgrove("demo", "--folder", "taken", "--port", "0")
    assert (said.code, said.err) == (1, "toolgrove: taken is a file; name a folder for the demo with --folder\n")


INTERRUPTED = """
import sys

class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Impatient())
from toolgrove.cli import main
sys.exit(main(["doctor"]))
"""


@pytest.mark.cold
@pytest.mark.parametrize("loading", ["toolgrove.cli.program", "toolgrove.cli.checks", "toolgrove.grove"])
def test_an_interrupt_while_a_command_is_loaded_ends_it_quietly(tmp_path: Path, loading: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, loading]
    (tmp_path / "toolgrove.yaml").write_text("project: mine")
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


HEAVY = (
    *("anyio", "apcore", "cryptography", "httpx", "httpx2", "jsonschema", "jsonschema_rs", "mcp", "mcp_types"),
    *("prometheus_client", "pydantic", "rich", "sqlite3", "starlette", "uvicorn", "yaml"),
)
HELPED = f"""
import sys
from {{0}} import main
try:
    main(["--help"])
except SystemExit:
    measuring = ["sqlite3"] if "coverage" in sys.modules else []
    print("imported:", *(name for name in {HEAVY} if name in sys.modules and name not in measuring))
"""


@pytest.mark.cold
@pytest.mark.parametrize("command", ["toolgrove.cli", "apcore_mcp.cli"])
def test_help_imports_nothing_heavy(command: str) -> None:
    code = HELPED.format(command)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.startswith("usage: ")
    assert ended.stdout.splitlines()[-1].split() == ["imported:"]


UNUSED = (
    *("apcore", "cryptography", "httpx", "jsonschema_rs", "mcp", "mcp_types", "prometheus_client", "rich"),
    *("toolgrove.pool.http", "toolgrove.pool.mcp", "toolgrove.runners", "toolgrove.server_logins"),
    *("toolgrove.store.journal.postgres", "toolgrove.store.journal.sqlite", "toolgrove.store.moving"),
    *("toolgrove.tree.dsl", "toolgrove.tree.formats.reading", "toolgrove.tree.formats.writing"),
    *("toolgrove.web.api", "toolgrove.web.console", "toolgrove.web.operations", "toolgrove.web.schemas"),
)
"""What nobody needs before a list of tools is answered in a project without servers, modules and a store."""
ASKED = f"""
import asyncio, gc, sys
import httpx2
from toolgrove.cli.program import parsed
from toolgrove.cli.screen import Screen

parsed(["serve", "--json"])
print(gc.isenabled(), gc.get_freeze_count() > 0)

from toolgrove import Config, Grove
UNUSED = {UNUSED}
"""
ASKED += """

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}

async def asked(client, method, params, **more):
    headers = {"accept": "application/json, text/event-stream", **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = await client.post("/agents/editor/mcp", json=body, headers=headers)
    print(answer.status_code, "get_node" in answer.text, *(name for name in UNUSED if name in sys.modules))

async def main():
    Screen(as_json=True).event({})
    async with Grove(Config.model_validate({"agents": {"editor": {"tools": ["*"]}}})) as grove:
        gateway = grove.gateway(anonymous=True)
        transport = httpx2.ASGITransport(app=gateway.app)
        async with (
            gateway.app.router.lifespan_context(gateway.app),
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client,
        ):
            for method in ("server/discover", "tools/list"):  # as clients of this era begin
                modern = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
                await asked(client, method, {"_meta": META}, **modern)
            await asyncio.gather(*(asked(client, "initialize", HELLO) for _ in range(2)))

asyncio.run(main())
"""


@pytest.mark.cold
def test_a_plain_request_is_answered_before_all_that_it_does_not_need_is_loaded() -> None:
    ended = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, timeout=60, check=True)
    assert all(map(find_spec, UNUSED))
    collector, _, discovered, listed, *opened = [line.split() for line in ended.stdout.splitlines()]
    assert collector == ["True", "True"]  # it runs, and leaves alone what was imported
    assert (discovered, listed) == (["200", "False"], ["200", "True"])
    assert [(status, {"mcp", "mcp_types"} <= {*loaded}) for status, _, *loaded in opened] == [("200", True)] * 2


@pytest.mark.parametrize("name", ["FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "NO_COLOR"])
@pytest.mark.parametrize("value", ["", "0", "1"])
def test_remarks_are_for_a_person_exactly_where_rich_sees_a_terminal(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Screen().is_watched is Screen().err.is_terminal
    monkeypatch.setenv(name, value)
    assert Screen().is_watched is Screen().err.is_terminal


def test_help_names_every_command_whichever_one_follows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help", "serve"])
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said and summary in said for name, summary in COMMANDS.items())
