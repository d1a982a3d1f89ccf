"""A whole project as a release left it opens, proves itself and goes on as if nothing had been."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psycopg
import pytest

from cli_kit import Said
from grove_kit import ManualClock, hand
from naive_journal import exported, unwound
from services.postgres import Postgres
from store.formats.make import SCHEMA, project
from toolgrove import Config, Grove
from toolgrove.cli import main
from toolgrove.store.audit import AuditQuery, Place
from toolgrove.store.state import hashed

pytestmark = pytest.mark.anyio
RELEASED = sorted(path.parent.name for path in Path(__file__).parent.glob("formats/*/facts.json.gz"))
Ask = Callable[[str], list[Any]]


class Released:
    """A project as it was kept, unpacked into a folder, and what was told on the day that it was made."""

    def __init__(self, name: str, folder: Path, kind: str, server: Postgres | None) -> None:
        self._kept = Path(__file__).parent / "formats" / name
        self.folder, self.kind, self._server = folder, kind, server
        self.facts: dict[str, Any] = json.loads(self._text(self._kept / "facts.json"))[kind]
        self.clock = ManualClock()
        self.clock.now = self.facts["now"] + 1
        self.config = self._in_a_file() if server is None else self._in_a_database(server)

    @property
    def backup(self) -> Path:
        """What `toolgrove backup` made of it."""
        return self._kept / "backup.zip"

    def grove(self, config: Config | None = None) -> Grove:
        """It, opened by this version."""
        return Grove(config or self.config, clock=self.clock)

    def ask(self, query: str) -> list[Any]:
        """Read its tables beside the journal."""
        if self._server is not None:
            with psycopg.connect(self._server.address(), options=f"-c search_path={self._schema}") as connection:
                return connection.execute(query.encode()).fetchall()
        with closing(sqlite3.connect(self.folder / "grove.db")) as connection:
            return connection.execute(query).fetchall()

    def _in_a_file(self) -> Config:
        self._take(self._kept, ("audit.jsonl", "grove.db-archive.jsonl", "state/audit.key", "state/grove.db.head"))
        for name in ("grove.db", "state/state.db"):
            with closing(sqlite3.connect(self.folder / name)) as connection:
                connection.executescript(self._text(self._kept / f"{name}.sql"))
        return project(self.folder, auditDays="forever")

    def _in_a_database(self, server: Postgres) -> Config:
        kept = self._kept / "database"
        self._take(kept, ("audit.jsonl", "grove.db-archive.jsonl", "state/audit.key", "state/database.head"))
        address = server.fresh()
        self._schema = address.rpartition("=")[2]
        with psycopg.connect(server.address(), autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
            connection.execute(self._text(kept / "dump.sql").encode())
            connection.execute(f"ALTER SCHEMA {SCHEMA} RENAME TO {self._schema}".encode())
        return project(self.folder, address, auditDays="forever")

    def _take(self, kept: Path, names: Sequence[str]) -> None:
        (self.folder / "state").mkdir(mode=0o700, parents=True)
        for name in names:
            if name.endswith(".jsonl"):
                (self.folder / name).write_text(self._text(kept / name))
            else:
                shutil.copyfile(kept / name, self.folder / name)
                (self.folder / name).chmod(0o600)

    @staticmethod
    def _text(path: Path) -> str:
        return gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes()).decode()


@pytest.fixture(params=[(name, kind) for name in RELEASED for kind in ("file", "database")], ids="-".join)
def released(request: pytest.FixtureRequest, tmp_path: Path) -> Released:
    name, kind = request.param
    server: Postgres | None = None if kind == "file" else request.getfixturevalue("postgres")
    return Released(name, tmp_path / "project", kind, server)


async def test_what_was_there_is_there_and_proves_itself(released: Released) -> None:
    facts = released.facts
    for _ in range(2):
        async with released.grove() as grove:
            ann, bob = await hand(grove, "ann"), await hand(grove, "bob")
            assert await ann.tree() == facts["tree"]
            for who in (ann, bob):
                assert (await who.ok("list_bookmarks"))["items"] == facts["bookmarks"][who.agent.name]
                view = await who.ok("get_view", rootNodeId="root")
                assert without_version(view) == without_version(facts["views"][who.agent.name])
            assert (await ann.ok("snapshot_list"))["items"] == facts["snapshot"]["subtree"]
            again = facts["replay"]
            assert await ann.agent.call("add_child", again["arguments"]) == again["result"]
            assert {pin.own_name: [pin.state, pin.pinned_by, pin.hash] for pin in grove.pins.list()} == facts["pins"]
            holders = grove.tokens.holders()
            assert {name: holders.get(hashed(token)) for name, token in facts["tokens"].items()} == {
                name: name for name in facts["tokens"]
            }
            states = {one.id: one.state for one in await grove.approvals.list()}
            # A database goes by its own clock, by which what nobody used in time is over.
            lasting = {key: state for key, state in facts["approvals"].items() if released.kind == "file"} or {
                key: state for key, state in facts["approvals"].items() if state in ("used", "rejected")
            }
            assert lasting.items() <= states.items()
            proof = await grove.audit_log.verify([Place(facts["proof"]["last"], facts["end"])])
            assert (proof.breach, proof.first, proof.breaks) == (None, facts["proof"]["first"], ())
            assert proof.sealed_from == facts["proof"]["sealedFrom"]
            unknown = (await grove.audit_log.records(AuditQuery(outcome="unknown"))).records
            assert [record["operation"] for record in unknown] == ["order"]


def without_version(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in ("version", "changed")}


async def test_a_version_that_it_gave_out_is_still_the_current_one(released: Released) -> None:
    async with released.grove() as grove:
        ann = await hand(grove, "ann")
        form = {"parentNodeId": "garden", "payloadType": "T", "versionToken": released.facts["version"]}
        assert "error" not in await ann.agent.call("add_child", form)
        assert (await ann.agent.call("add_child", form))["error"]["code"] == "conflict"


async def test_what_was_done_last_can_be_taken_back_and_all_that_came_since(released: Released) -> None:
    async with released.grove() as grove:
        ann = await hand(grove, "ann")
        await ann.ok("undo")
        assert await ann.tree() == released.facts["undone"]
        await ann.ok("redo")
        assert await ann.tree() == released.facts["tree"]
        told = await ann.ok("changes_since", version=next(iter(released.facts["trees"])), limit=200)
        assert told["items"]


async def test_its_journal_leads_back_to_every_tree_that_was_told(released: Released) -> None:
    async with released.grove() as grove:  # which brings the tables to the format of today
        ann = await hand(grove, "ann")
        await ann.ok("add_child", parentNodeId="garden", payloadType="T", payloadProps={"since": "then"})
        newest = await ann.tree()
    nodes, journal = (
        [body for (body,) in released.ask(query)]
        for query in ("SELECT body FROM node", "SELECT body FROM journal ORDER BY revision")
    )
    trees = list(unwound(nodes, journal))
    assert trees[0][1] == exported(newest)
    told = {int(version.rpartition("-")[2]): tree for version, tree in released.facts["trees"].items()}
    assert len(told) > 10
    found = {number: next(tree for seq, tree in trees if seq <= number) for number in told}
    assert found == {number: exported(tree) for number, tree in told.items()}


@pytest.mark.parametrize("name", RELEASED)
async def test_a_backup_that_it_made_is_put_back(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    released = Released(name, tmp_path / "project", "file", None)
    other = tmp_path / "other"
    (other / "state").mkdir(mode=0o700, parents=True)
    shutil.copyfile(released.folder / "state/audit.key", other / "state/audit.key")
    config = project(other)

    def say(*words: str) -> Said:
        code = main((*words, "--config", str(other / "toolgrove.yaml")))
        return Said(code, *capsys.readouterr())

    said = await anyio.to_thread.run_sync(say, "restore", str(released.backup))
    assert said.code == 0, said.err
    async with released.grove(config) as grove:
        assert await (await hand(grove, "ann")).tree() == released.facts["tree"]
        assert set(grove.tokens.holders()) == {hashed(token) for token in released.facts["tokens"].values()}
    said = await anyio.to_thread.run_sync(say, "audit", "verify")
    assert said.code == 0, said.err
