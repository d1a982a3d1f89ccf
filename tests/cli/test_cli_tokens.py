"""`toolgrove tokens`: everybody may have several, each has an id, and none is void unless somebody says so."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from cli_kit import Project, Toolgrove
from toolgrove.store.state import SqliteTokens, StateFile, hashed, token_id


@pytest.fixture(autouse=True)
def agents(project: Project) -> None:
    project(agents={"editor": {"tools": ["*"]}, "researcher": {"tools": []}})


def ids(toolgrove: Toolgrove, holder: str) -> set[str]:
    return {row["id"] for row in toolgrove("tokens", "--json").json if row["holder"] == holder and row["issued"]}


def test_a_new_token_leaves_the_others_good_unless_it_is_to_replace_them(toolgrove: Toolgrove) -> None:
    first, second = (toolgrove("tokens", "new", "editor", "--json").json for _ in range(2))
    other = toolgrove("tokens", "new", "researcher", "--json").json
    assert first["id"] == token_id(hashed(first["token"]))
    assert ids(toolgrove, "editor") == {first["id"], second["id"]}
    third = toolgrove("tokens", "new", "editor", "--replace", "--json").json
    assert (ids(toolgrove, "editor"), ids(toolgrove, "researcher")) == ({third["id"]}, {other["id"]})


def test_a_token_is_revoked_by_its_id_and_all_by_their_agent(toolgrove: Toolgrove) -> None:
    made = [toolgrove("tokens", "new", "editor", "--json").json["id"] for _ in range(3)]
    mine = toolgrove("tokens", "new", "operator", "--json").json["id"]
    assert toolgrove("tokens", "revoke", made[0], "--json").json == {"revoked": [made[0]]}
    assert ids(toolgrove, "editor") == {*made[1:]}
    assert sorted(toolgrove("tokens", "revoke", "editor", "--json").json["revoked"]) == sorted(made[1:])
    assert ids(toolgrove, "editor") == set()
    assert ids(toolgrove, "operator") == {mine}
    for absent in (made[0], "editor", "nobody", "", mine[:-1]):
        said = toolgrove("tokens", "revoke", absent)
        assert (said.code, "see 'toolgrove tokens'" in " ".join(said.err.split())) == (1, True), absent


def test_who_has_none_and_whose_are_void_is_listed(toolgrove: Toolgrove, project: Project) -> None:
    toolgrove("tokens", "new", "editor")
    project(agents={"researcher": {"tools": []}})
    said = toolgrove("tokens")
    assert re.search(r"operator +none\n", said.out)
    assert re.search(r"editor +[0-9a-f]{12} +void: no such agent\n", said.out)
    assert re.search(r"researcher +none\n", said.out)


def test_a_token_may_have_a_time_to_end(toolgrove: Toolgrove) -> None:
    made = toolgrove("tokens", "new", "editor", "--for", "30d", "--json").json["id"]
    assert re.search(rf"editor +{made} +issued until \d{{4}}-", toolgrove("tokens").out)
    (listed,) = [row for row in toolgrove("tokens", "--json").json if row["id"] == made]
    assert listed["expiresAt"] > "2026"
    assert toolgrove("tokens", "revoke", made).code == 0


@pytest.mark.parametrize("wrong", ["30", "soon", "0d", "-1h"])
def test_a_time_that_is_none_is_explained(toolgrove: Toolgrove, capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    with pytest.raises(SystemExit):
        toolgrove("tokens", "new", "editor", f"--for={wrong}")
    assert "write a number and a unit: 30m, 12h or 90d" in capsys.readouterr().err


def test_tokens_of_an_older_state_file_stay_good(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with StateFile(path) as state:
        SqliteTokens(state).issue("editor")
    older = sqlite3.connect(path)
    older.executescript(
        """
        DROP TABLE tokens;
        DROP TABLE logins;
        DROP TABLE project;
        CREATE TABLE tokens (holder TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, used_at REAL) WITHOUT ROWID;
        INSERT INTO tokens VALUES ('editor', 'one', 0), ('researcher', 'two', NULL);
        ALTER TABLE approvals DROP COLUMN run_id;
        ALTER TABLE approvals DROP COLUMN parent_call_id;
        ALTER TABLE approvals DROP COLUMN asked_by;
        PRAGMA user_version = 6;
        """
    )
    older.close()
    with StateFile(path) as state:
        tokens = SqliteTokens(state)
        assert tokens.holders() == {"one": "editor", "two": "researcher"}
        assert tokens.unused() == {"two"}
        tokens.issue("editor")
        assert sorted(tokens.holders().values()) == ["editor", "editor", "researcher"]
