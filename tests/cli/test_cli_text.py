"""Half a character, at the command line and in a store of an older version."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cli_kit import Project, Toolgrove

OLD = Path(__file__).parents[1] / "store/formats/store_halves_5.sql"
AGENTS = {"ann": {"role": "editor", "tools": ["*"]}}


@pytest.fixture
def old_store(tmp_path: Path) -> str:
    """A store into which an earlier version took half characters."""
    with closing(sqlite3.connect(tmp_path / "grove.db")) as connection:
        connection.executescript(OLD.read_text())
    return "sqlite:grove.db"


def test_the_doctor_names_what_an_older_version_took_in(toolgrove: Toolgrove, project: Project, old_store: str) -> None:
    project(agents=AGENTS, workspace={"store": old_store})
    (found,) = [one for one in toolgrove("doctor", "--json").json["findings"] if one["area"] == "tree"]
    assert found["level"] == "warning"
    for place in (r"node 'a'", r"node 'id\ud800'", r"node 'n1'", r"snapshot 's\ud800'", r"bookmark 'b\ud800' of ann"):
        assert place in found["message"]
    assert "node 'whole'" not in found["message"]
    shown = toolgrove("tree", "--json").out
    assert "ud800" not in shown
    assert "\ufffd" in shown or "ufffd" in shown


def test_a_tree_without_such_text_is_no_matter_for_the_doctor(toolgrove: Toolgrove, project: Project) -> None:
    project(agents=AGENTS, workspace={"store": "sqlite:grove.db"})
    assert [one for one in toolgrove("doctor", "--json").json["findings"] if one["area"] == "tree"] == []


@pytest.mark.parametrize(
    "words",
    [
        ("call", "ann", "search", "rootNodeId=\udc80"),
        ("call", "ann", "search", '{"rootNodeId": "root", "filters": ["\\ud800"]}'),
        ("run", "ann", "Count \udc80."),
        ("approvals", "reject", "x", "--reason", "\udc80"),
        ("tokens", "new", "\udc80"),
    ],
)
def test_half_a_character_at_the_command_line_is_refused(
    toolgrove: Toolgrove, project: Project, words: tuple[str, ...]
) -> None:
    project(agents=AGENTS, runner={"kind": "openai", "url": "http://127.0.0.1:9", "model": "m"})
    said = toolgrove(*words)
    assert said.code == 1
    assert "half a character" in said.out + said.err
