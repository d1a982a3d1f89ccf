"""The pages on the pool and the gateway: projects load, commands exist, and what they say is printed is printed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from toolgrove import Config, Grove
from toolgrove.cli import main, program
from toolgrove.types import Result

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = ("pool", "cookbook", "configuration", "gateway", "operations")
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in NAMES)]
PROJECTS = [path for path in sorted((ROOT / "examples").glob("*.yaml")) if "\nagents:" in path.read_text("utf-8")]
FENCE = re.compile(r"^```(?P<language>\w+)(?P<rest>.*)\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE)


def blocks(language: str) -> Iterator[tuple[str, str, str]]:
    """The page, title and text of each block in a language."""
    for page in PAGES:
        for match in FENCE.finditer(page.read_text(encoding="utf-8")):
            if match["language"] == language:
                title = re.search(r'title="([^"]+)"', match["rest"])
                yield page.name, title[1] if title else "", match["text"]


def sessions() -> Iterator[Any]:
    """Each command in a console block, with what is printed below it."""
    for page, _, text in blocks("console"):
        for part in text.split("$ ")[1:]:
            command, _, printed = part.partition("\n")
            yield pytest.param(command, printed, id=f"{page}: {command[:50]}")


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples in a repository of their own, with a uvx that starts what is installed here."""
    folder = tmp_path_factory.mktemp("workplace")
    uvx = folder / "bin" / "uvx"
    uvx.parent.mkdir()
    uvx.write_text(f'#!/bin/sh\npackage="${{1%%==*}}"; shift\nexec "{Path(sys.executable).parent}/$package" "$@"\n')
    uvx.chmod(0o755)
    for project in PROJECTS:
        # The servers of the examples start on a machine that is busy with other tests.
        (folder / project.name).write_text(project.read_text(encoding="utf-8") + "\nstartupBudget: 60\n")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture(autouse=True)
def at_work(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workplace)
    monkeypatch.setenv("PATH", f"{workplace / 'bin'}:{Path(shutil.which('git') or '').parent}:/usr/bin:/bin")
    for name in ("PAPERS_TOKEN", "TRACKER_TOKEN", "MODEL_KEY"):
        monkeypatch.setenv(name, f"value-of-{name}")


@pytest.mark.parametrize(("command", "printed"), list(sessions()))
def test_a_console_block_shows_what_is_printed(command: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *words = shlex.split(command)
    assert name == "toolgrove"
    main(words)
    said = capsys.readouterr()
    assert said.out + said.err == printed


def test_every_yaml_block_is_a_whole_example_or_a_fragment_that_loads() -> None:
    shown = list(blocks("yaml"))
    for page, title, text in shown:
        if title:
            assert text == (ROOT / title).read_text(encoding="utf-8"), f"{page}: {title} is not current"
        else:
            Config.model_validate(yaml.safe_load(text) or {})
    assert {Path(title).name for _, title, _ in shown if title} == {project.name for project in PROJECTS}


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_the_doctor_finds_nothing_to_complain_about(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--config", project.name]) == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    assert said.endswith("0 errors, 0 warnings.\n"), said


COMMANDS = [
    pytest.param(line.partition("#")[0], id=line[:40])
    for _, _, text in blocks("sh")
    for line in text.splitlines()
    if line.startswith("toolgrove")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_on_a_page_exists(command: str) -> None:
    words = shlex.split(command)[1:]
    assert program.parsed(words).run


def test_every_command_on_a_project_is_explained() -> None:
    text = "".join(
        (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("pool", "tree", "gateway", "operations")
    )
    explained = set(re.findall(r"(?:`|^)toolgrove ([a-z]+)", text, re.MULTILINE))
    assert set(program.COMMANDS) - explained == set()


@pytest.mark.parametrize("reference", ["config_reference", "http_reference", "console_types", "cli_reference"])
def test_a_generated_reference_is_current(reference: str) -> None:
    command = [sys.executable, str(ROOT / "tools" / f"{reference}.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


async def test_the_researcher_reads_and_cannot_commit() -> None:
    async with Grove(Config.load("researcher.yaml")) as grove:
        agent = await grove.agent("researcher")
        names = {spec.name for spec in agent.tools}
        assert {"get_node", "search", "get_paper", "time_get_current_time", "repo_git_log"} <= names
        assert not any(tool.mutates for tool in map(agent._toolset.callable.get, names) if tool is not None)
        refused = await agent.call("repo_git_commit", {"repo_path": ".", "message": "x"})
        assert refused["error"]["code"] == "not_found"


async def test_the_coder_s_commit_waits_for_a_person(workplace: Path) -> None:
    async with Grove(Config.load("coder.yaml")) as grove:
        agent = await grove.agent("coder")
        commit = {"repo_path": str(workplace), "message": "x"}
        asked = (await agent.call("repo_git_commit", commit))["error"]
        assert (asked["code"], asked["reason"]) == ("forbidden", "approval_required")
        posted = (await agent.call("open_issue", {"title": "Broken"}))["error"]
        assert posted["reason"] == "approval_required"
        hidden = await agent.call("repo_git_reset", {"repo_path": str(workplace)})
        assert hidden["error"]["code"] == "not_found"
        await grove.approvals.decide(asked["approvalId"], approve=False, by="a person", reason="not yet")
        told = (await agent.call("repo_git_commit", commit))["error"]
        assert "not yet" in told["message"]


class Curious:
    """A runner whose model does nothing but look at its tools."""

    async def run(self, agent: Any, task: str) -> Result:
        return {"output": " ".join(spec.name for spec in agent.tools), "steps": 1}


async def test_the_coordinator_hands_on_what_it_may_and_nothing_else() -> None:
    async with Grove(Config.load("coordinator.yaml"), runner=Curious()) as grove:
        agent = await grove.agent("coordinator")
        assert {spec.name for spec in agent.tools} == {"spawn_agents", "list_available_agents", "get_node"}
        work = [{"agent": "scout", "input": "look"}, {"agent": "scribe", "input": "write"}]
        answers = await agent.call("spawn_agents", {"agents": work})
        outputs = [set(_output(answer).split()) for answer in answers["results"]]
        assert outputs == [
            {"get_node", "search", "search_advanced", "select_nodes"},
            {"get_node", "add_child", "update_payload"},
        ]


def _output(answer: Mapping[str, Any]) -> str:
    found: str = answer["output"] if "output" in answer else answer["result"]["output"]
    return found
