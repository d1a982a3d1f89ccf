"""`toolgrove migrate`: all of a project from one store to another, the same on both sides."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cli_kit import Project, Toolgrove
from pool.test_approvals import ASKED
from services.postgres import Postgres
from store_kit import portrait
from toolgrove import Config, Grove
from toolgrove.store.audit import AuditQuery
from toolgrove.store.postgres import DatabaseAddress

pytestmark = pytest.mark.anyio
EDITORS = {name: {"role": "editor", "tools": ["*"]} for name in ("ann", "bob")}


@pytest.fixture
def written(project: Project, tmp_path: Path) -> Config:
    project(agents=EDITORS, workspace={"store": "sqlite:data/grove.db", "payloadTypes": {"T": {}}})
    return Config.load(tmp_path / "toolgrove.yaml")


def at(config: Config, store: str) -> Config:
    """The same project with another store."""
    return config.model_copy(update={"workspace": config.workspace.model_copy(update={"store": store})})


async def filled(config: Config) -> dict[str, Any]:
    """A project with some of everything; what agents and the operator can read of it."""
    async with Grove(config) as grove:
        ann = await grove.agent("ann")
        version = (await ann.call("get_node", {"nodeId": "root"}))["version"]
        for number in range(5):
            added = await ann.call(
                "add_child",
                {
                    "parentNodeId": "root",
                    "payloadType": "T",
                    "payloadProps": {"title": f"ü{number}"},
                    "versionToken": version,
                    "idempotencyKey": f"k{number}",
                },
            )
            version = added["version"]
        await ann.call("snapshot_create", {"label": "one"})
        grove.tokens.issue("ann", by="grace")
        asked = await grove.approvals.request(ASKED)
        await grove.approvals.decide(asked.id, approve=True, by="grace")
        grove.pins.met("wiki")
        grove.pins.pin("wiki", "se\x00arch", "h", {"name": "se\x00arch"})
    return await told(config)


async def told(config: Config) -> dict[str, Any]:
    async with Grove(config) as grove:
        records = (await grove.audit_log.records(AuditQuery(limit=1_000))).records
        proof = await grove.audit_log.verify()
        assert proof.breach is None
        calls = [one["callId"] for one in records if one["operation"] == "add_child"]
        return {
            "tree": await portrait(grove),
            "calls": calls,
            "tokens": grove.tokens.holders(),
            "approvals": [(one.id, one.state) for one in await grove.approvals.list()],
            "pins": grove.pins.list(),
            "project": grove.project,
        }


async def test_a_project_moves_to_a_database_and_back_and_is_the_same(
    toolgrove: Toolgrove, written: Config, database: str, tmp_path: Path
) -> None:
    before = await filled(written)
    source = tmp_path / "data" / "grove.db"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    said = toolgrove("migrate", "sqlite:data/grove.db", database, "--json")
    assert said.code == 0, said.err
    moved = {one["table"]: one["rows"] for one in said.json["moved"]}
    assert moved["node"] == moved["journal"] == 5
    assert moved["idempotency"] == 5
    assert moved["approvals"] == moved["tokens"] == moved["pins"] == 1
    assert hashlib.sha256(source.read_bytes()).hexdigest() == digest
    assert await told(at(written, database)) == before
    (tmp_path / ".toolgrove" / "state.db").rename(tmp_path / "state.old")
    back = toolgrove("migrate", database, "sqlite:data/back.db", "--json")
    assert back.code == 0, back.err
    assert await told(at(written, f"sqlite:{tmp_path / 'data' / 'back.db'}")) == before


async def test_a_store_that_is_not_empty_is_not_filled(toolgrove: Toolgrove, written: Config, database: str) -> None:
    await filled(written)
    assert toolgrove("migrate", "sqlite:data/grove.db", database).code == 0
    again = toolgrove("migrate", "sqlite:data/grove.db", database)
    assert again.code == 1
    assert "is not empty" in again.err
    assert "name another schema" in again.err
    onto = toolgrove("migrate", database, "sqlite:data/grove.db")
    assert onto.code == 1
    assert "is there already" in onto.err


async def test_a_store_in_use_is_not_moved(toolgrove: Toolgrove, written: Config, database: str) -> None:
    await filled(written)
    async with Grove(written):
        used = toolgrove("migrate", "sqlite:data/grove.db", database)
    assert used.code == 1
    assert "is in use by another process" in used.err
    assert toolgrove("migrate", "sqlite:data/grove.db", database).code == 0
    async with Grove(at(written, database)):
        used = toolgrove("migrate", database, "sqlite:data/other.db")
    assert used.code == 1
    assert "is in use: stop its gateways first" in used.err


async def test_a_move_that_differs_or_is_cut_short_leaves_nothing(
    toolgrove: Toolgrove, written: Config, database: str, postgres: Postgres, tmp_path: Path
) -> None:
    await filled(written)
    assert toolgrove("migrate", database).code == 0  # tables, and nothing in them
    schema = DatabaseAddress.of(database).schema
    postgres.ask(
        f"CREATE FUNCTION {schema}.lose() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN IF NEW.number = 2 THEN RETURN NULL; END IF; RETURN NEW; END'"
    )
    postgres.ask(f"CREATE TRIGGER lose BEFORE INSERT ON {schema}.audit FOR EACH ROW EXECUTE FUNCTION {schema}.lose()")
    lost = toolgrove("migrate", "sqlite:data/grove.db", database)
    assert lost.code == 1
    assert "audit is not the same on both sides" in lost.err
    assert postgres.ask(f"SELECT count(*) FROM {schema}.node") == [(0,)]
    with sqlite3.connect(tmp_path / "data" / "grove.db") as source:
        assert source.execute("SELECT count(*) FROM audit").fetchone()[0] > 2
    source.close()


def test_a_database_is_made_ready_with_a_role_for_the_application(
    toolgrove: Toolgrove, project: Project, database: str, postgres: Postgres
) -> None:
    project()
    role = f"app_{DatabaseAddress.of(database).schema}"
    postgres.ask(f"CREATE ROLE {role} LOGIN")
    assert toolgrove("migrate", database, "--app-role", role).code == 0
    app = postgres.address(DatabaseAddress.of(database).schema, user=role)
    project(workspace={"store": app}, agents=EDITORS)
    said = toolgrove("call", "ann", "get_node", "nodeId=root")
    assert said.code == 0, said.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("sqlite:a.db",), "name two stores"),
        (("sqlite:a.db", "b.db"), "a store is sqlite: with a path"),
        (("sqlite:a.db", "sqlite:b.db", "sqlite:c.db"), "name two stores"),
        (("sqlite:missing.db", "sqlite:b.db"), "missing.db is not there"),
    ],
)
def test_what_cannot_be_moved_is_said(
    toolgrove: Toolgrove, project: Project, words: tuple[str, ...], problem: str
) -> None:
    project()
    said = toolgrove("migrate", *words)
    assert said.code == 1
    assert problem in said.err
