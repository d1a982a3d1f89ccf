"""`apcore-mcp app.py` and `toolgrove serve app.py`: one file is a server, one file is a project."""

from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from apcore_mcp.cli import main
from examples.samples import output
from toolgrove import Config, Grove
from toolgrove.cli import main as toolgrove
from warm.command import python

pytestmark = pytest.mark.anyio
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


async def test_a_file_of_plain_functions_is_an_mcp_server() -> None:
    command, *arguments = python("-m", "apcore_mcp", str(EXAMPLES / "functions.py"))
    async with Client(StdioServerParameters(command=command, args=arguments)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        result = await client.call_tool("days_between", {"first": "2026-03-01", "last": "2026-03-31"})
    assert tools["days_between"].description == "Count the days from one date to another."
    assert tools["plan_beds"].input_schema["properties"]["spacing"]["default"] == 0.25
    assert output(result) == {"result": 30}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.py"], "there is no file nowhere.py"),
        (["folder"], "folder is not a Python file; name one, such as app.py or app.py:registry"),
        (["app.py", "--dynamic"], "--dynamic watches a directory"),
        (["app.py:missing"], "app.py has no registry called 'missing'"),
    ],
)
def test_an_app_that_cannot_be_served_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, arguments: list[str], said: str
) -> None:
    (tmp_path / "app.py").write_text("def add(a: int) -> int: return a")
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    assert said in capsys.readouterr().err


def test_a_file_and_a_folder_together_are_refused(tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["app.py", "--extensions-dir", str(tmp_path)])
    assert "not allowed with argument" in capsys.readouterr().err


async def test_a_python_file_is_a_project_with_one_agent_that_has_its_functions(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text("def add(a: int, b: int = 2) -> int:\n    'Add.'\n    return a + b\n")
    async with Grove(Config.load(tmp_path / "sums.py")) as grove:
        agent = await grove.agent("assistant")
        assert [tool.name for tool in agent.tools] == ["add"]
        assert await agent.call("add", {"a": 1}) == {"result": 3}
        wrong = await agent.call("add", {"a": "one"})
    assert wrong["error"]["code"] == "invalid_argument"


async def test_a_registry_in_a_file_is_a_source_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text((EXAMPLES / "quickstart.py").read_text())
    config = {"workspace": False, "extensions": str(tmp_path / "app.py:registry")}
    async with Grove(Config.model_validate(config)) as grove:
        agent = await grove.agent("editor")
        assert await agent.call("greet", {"name": "Ada"}) == {"result": "Hello, Ada!"}


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["call", "sums.py", "add", "a=1"], '"result": 3'),
        (["call", "assistant", "add", "a=1", "--config", "sums.py"], '"result": 3'),
        (["tools", "sums.py"], "add "),
        (["tools", "--config", "sums.py"], "add "),
        (["explain", "sums.py", "add"], "assistant has add"),
    ],
)
def test_the_commands_take_a_python_file_for_the_project(
    tmp_path: Path, words: list[str], printed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sums.py").write_text("def add(a: int, b: int = 2) -> int:\n    'Add.'\n    return a + b\n")
    assert toolgrove(words) == 0
    assert printed in capsys.readouterr().out


def test_a_python_file_that_is_not_there_is_not_to_be_written_by_init(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert toolgrove(["tools", "nothing.py"]) == 1
    assert capsys.readouterr().err == "toolgrove: nothing.py: there is no such file\n"
