"""Code in the documentation is code that the tests run."""

import json
import re
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from apcore_mcp import cli

ROOT = Path(__file__).resolve().parent.parent.parent
# The pages on the tree run by themselves: tests/tree has the tour, tests/tools the examples of the reference.
DOCS = [page for page in sorted((ROOT / "docs").glob("*.md")) if not page.name.startswith("tree")]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?P<rest>.*)\n(?P<text>(?:.*\n)*?)(?P=indent)```$", re.MULTILINE
)


class Block(NamedTuple):
    page: Path
    language: str
    title: str
    text: str


def blocks(*languages: str) -> list[Any]:
    found = []
    for page in PAGES:
        for match in FENCE.finditer(page.read_text(encoding="utf-8")):
            title = re.search(r'title="([^"]+)"', match["rest"])
            block = Block(page, match["language"], title[1] if title else "", textwrap.dedent(match["text"]))
            if block.language in languages:
                line = block.text.partition("\n")[0]
                found.append(pytest.param(block, id=f"{page.name}: {line[:40]}"))
    return found


def stands_in(text: str, source: str) -> bool:
    """Whether every paragraph of the text is in the source, in this order, at any indentation."""
    position = 0
    for paragraph in re.split(r"\n\n+", text.strip("\n")):
        places = [
            place + len(lines)
            for depth in (0, 4, 8, 12)
            if (place := source.find(lines := textwrap.indent(paragraph, " " * depth) + "\n", position)) >= 0
        ]
        if not places:
            return False
        position = min(places)
    return True


@pytest.mark.parametrize("block", blocks("python"))
def test_a_python_block_is_part_of_a_tested_example(block: Block) -> None:
    named = [ROOT / block.title] if block.title else sorted((ROOT / "examples").glob("*.py"))
    assert block.title or block.page.name == "README.md", 'say which file this is from: title="examples/…"'
    assert any(stands_in(block.text, path.read_text(encoding="utf-8")) for path in named)


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_first_python_block_is_the_quick_start_to_the_byte(page: str) -> None:
    first = re.search(r"```python.*\n((?:.*\n)*?)```", (ROOT / page).read_text(encoding="utf-8"))
    assert first is not None
    assert first[1] == (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", blocks("json"))
def test_a_client_configuration_is_json_with_an_address_or_flags_that_exist(block: Block) -> None:
    configuration = json.loads(block.text)
    (servers,) = configuration.values()
    assert list(configuration) == (["servers"] if '"type"' in block.text else ["mcpServers"])
    for server in servers.values():
        if "url" in server:
            assert server["url"] == "http://127.0.0.1:8000/mcp"
        else:
            assert cli._parser().parse_args(server["args"]).transport == "stdio"


COMMANDS = [
    pytest.param(line, id=line[:60])
    for parameters in blocks("sh")
    for line in parameters.values[0].text.splitlines()
    if line.startswith(("apcore-mcp", "make"))
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_uses_flags_and_targets_that_exist(command: str) -> None:
    program, *arguments = command.partition("#")[0].split()
    if program == "apcore-mcp":
        assert cli._parser().parse_args(arguments)
    else:
        assert re.search(rf"^(?:[\w ]* )?{arguments[0]}(?: [\w ]*)?:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_make_target_is_explained_to_contributors() -> None:
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets is not None
    explained = set(re.findall(r"`make ([\w-]+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    assert explained == set(targets[1].split())
