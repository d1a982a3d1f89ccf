"""How the command line behaves towards a person: help, slips, completion."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli_kit import Project, Toolgrove
from toolgrove.cli.candidates import candidates
from toolgrove.cli.completion import SCRIPTS
from toolgrove.cli.examples import EXAMPLES
from toolgrove.cli.program import COMMANDS, GROUPS, parsed


def test_the_bare_command_is_help_with_every_command_in_its_group(
    toolgrove: Toolgrove, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        toolgrove()
    shown = capsys.readouterr().out
    assert caught.value.code == 0
    assert [title for title in GROUPS if f"\n{title}:\n" in shown] == list(GROUPS)
    assert [name for name, summary in COMMANDS.items() if f"  {name} " in shown and summary in shown] == list(COMMANDS)


def test_every_command_has_examples_that_it_understands(toolgrove: Toolgrove) -> None:
    assert EXAMPLES.keys() - {""} == COMMANDS.keys()
    for name in COMMANDS:
        for example in EXAMPLES[name]:
            words = shlex.split(example)
            end = next((at for at, word in enumerate(words) if word in (">", ">>", "|", "&&")), None)
            assert callable(parsed(words[1:end]).run), example


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sevre",), "there is no command 'sevre'. Did you mean 'serve'?"),
        (("audit", "--limt", "3"), "unrecognized arguments: --limt 3. Did you mean '--limit'?"),
        (("install", "curser", "editor"), "Did you mean 'cursor'?"),
        (("tools",), "name an agent"),
        (("tools", "a", "--agent", "b"), "two agents are named, a and b"),
    ],
)
def test_a_slip_gets_the_word_that_was_meant(
    toolgrove: Toolgrove, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        toolgrove(*words)
    assert caught.value.code == 2
    assert told in capsys.readouterr().err


def test_options_go_without_the_verb_that_goes_without_saying() -> None:
    assert parsed(["audit", "--limit", "3"]).limit == 3
    assert parsed(["--json", "audit", "--config", "x.yaml", "-f"]).follow
    assert parsed(["approvals", "--watch"]).watch
    assert parsed(["audit", "verify"]).anchor == []


def test_agents_tools_servers_and_options_are_completed(toolgrove: Toolgrove, project: Project) -> None:
    project(agents={"anna": {"tools": ["*"]}, "bob": {}}, mcpServers={"up": {"command": "x", "disabled": True}})
    assert candidates(["too"]) == ["tools"]
    assert candidates(["tools", ""]) == ["anna", "bob"]
    assert candidates(["--json", "explain", "a"]) == ["anna"]
    assert candidates(["call", "anna", "get_n"]) == ["get_node"]
    assert candidates(["tokens", "new", "o"]) == ["operator"]
    assert candidates(["audit", "--fol"]) == ["--follow"]
    assert candidates(["audit", "--outcome", "suc"]) == ["success"]
    assert candidates(["pins", "accept", ""]) == ["up"]
    assert candidates(["install", "cursor", "--url", "x", "b"]) == ["bob"]
    assert candidates(["tools", "anna", "--config", ""]) == []
    assert candidates(["audit", "nonsense", ""]) == []
    said = toolgrove("completion", "--words", "tools", "b")
    assert (said.code, said.out) == (0, "bob\n")


def test_completion_without_a_project_is_silent(toolgrove: Toolgrove) -> None:
    assert candidates(["tools", ""]) == []
    assert toolgrove("completion").code == 1


TYPED = """
source <(toolgrove completion bash)
COMP_WORDS=(toolgrove explain an) COMP_CWORD=2
_toolgrove
echo "${COMPREPLY[@]}"
COMP_WORDS=(toolgrove --config toolgrove.yaml audit --outcome re) COMP_CWORD=5
_toolgrove
echo "${COMPREPLY[@]}"
"""


@pytest.mark.cold
def test_bash_completes_what_is_typed(project: Project, tmp_path: Path) -> None:
    project(agents={"anna": {}, "bob": {}})
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    ended = subprocess.run(
        ["bash", "-c", TYPED], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=60
    )
    assert ended.stdout.splitlines() == ["anna", "refused replayed"], ended.stderr


@pytest.mark.parametrize("shell", SCRIPTS)
def test_each_shell_has_a_script(toolgrove: Toolgrove, tmp_path: Path, shell: str) -> None:
    said = toolgrove("completion", shell)
    assert (said.code, said.out) == (0, SCRIPTS[shell])
    if shell == "bash":
        (tmp_path / "script").write_text(said.out)
        subprocess.run(["bash", "-n", "script"], check=True, cwd=tmp_path)
