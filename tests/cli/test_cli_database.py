"""Commands on a project whose store is a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_kit import Project, Toolgrove
from services.postgres import Postgres


def test_tokens_pins_and_approvals_of_a_database_are_looked_after(
    toolgrove: Toolgrove, project: Project, database: str
) -> None:
    project(workspace={"store": database}, agents={"editor": {"tools": ["*"]}})
    made = toolgrove("tokens", "new", "editor", "--json").json["id"]
    assert [row["id"] for row in toolgrove("tokens", "--json").json if row["issued"]] == [made]
    assert toolgrove("tokens", "revoke", made).code == 0
    assert [row for row in toolgrove("tokens", "--json").json if row["issued"]] == []
    assert toolgrove("approvals", "list", "--json").json == []
    assert toolgrove("pins", "list", "--json").json == []


def test_a_password_comes_from_a_reference_and_is_never_shown(
    toolgrove: Toolgrove, project: Project, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROVE_DB_PASSWORD", "s3cret/@: word")
    store = f"postgresql://nobody:${{env:GROVE_DB_PASSWORD}}@127.0.0.1:{postgres.port}/postgres?schema=x"
    project(workspace={"store": store})
    said = toolgrove("tokens")
    assert said.code == 1
    assert f"127.0.0.1:{postgres.port}/postgres?schema=x cannot be used" in said.err
    assert 'role "nobody" does not exist' in said.err
    assert "s3cret" not in said.err + said.out


def test_a_variable_that_is_not_set_is_named(toolgrove: Toolgrove, project: Project) -> None:
    project(workspace={"store": "postgresql://app:${env:GROVE_NO_SUCH}@127.0.0.1/grove"})
    said = toolgrove("tokens")
    assert said.code == 1
    assert "GROVE_NO_SUCH" in said.err
    assert "workspace.store" in said.err


@pytest.mark.parametrize("store", ["postgres://app:s3cret@db/grove", "postgresql://app:s3cret@db/grove?schema=No"])
def test_an_address_that_cannot_be_right_is_refused_without_being_repeated(
    toolgrove: Toolgrove, project: Project, store: str
) -> None:
    project(workspace={"store": store})
    said = toolgrove("tokens")
    assert said.code != 0
    assert "store" in said.err
    assert "s3cret" not in said.err + said.out


def test_a_backup_of_a_database_is_its_own_matter(toolgrove: Toolgrove, project: Project, tmp_path: Path) -> None:
    project(workspace={"store": "postgresql://127.0.0.1:1/grove"})
    said = toolgrove("backup", str(tmp_path / "x.tar"))
    assert said.code == 1
    assert "pg_dump" in said.err
