"""Asking the audit log for something rare costs a few steps, not one for every record."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from store_kit import ManualClock, Scribe
from toolgrove.store.audit import AuditQuery
from toolgrove.store.journal import SqliteAuditLog, SqliteJournal

pytestmark = pytest.mark.anyio
RECORDS = 9_000
SELDOM = (1, 2_048, 4_095, 4_096, 4_097, 8_191, 8_192, 8_999)
"""Records of an agent and of a tool that have few, on both sides of where spans meet."""
RARE = {
    "agent": AuditQuery(agent="nobody"),
    "tool": AuditQuery(tool="no_such_tool"),
    "outcome": AuditQuery(outcome="unknown"),
    "kind": AuditQuery(kind="token"),
    "time": AuditQuery(since="2031-01-01T00:00:00.000+00:00"),
    "agent and time": AuditQuery(agent="nobody", since="2029-01-01T00:00:00.000+00:00"),
}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps the machine inside of SQLite takes, on all connections that are made from now on."""
    counted = [0]
    connect = sqlite3.connect

    def counting(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)

        def count() -> None:
            counted[0] += 1

        connection.set_progress_handler(count, 1)
        return connection

    monkeypatch.setattr(sqlite3, "connect", counting)
    return counted


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some thousand records of plain calls."""
    path = tmp_path_factory.mktemp("many") / "grove.db"
    anyio.run(_fill, path)
    return path


async def _fill(path: Path) -> None:
    journal, scribe = SqliteJournal(path, ManualClock()), Scribe()
    await journal.open()
    for number in range(1, RECORDS + 1):
        agent, tool = ("bob", "undo") if number in SELDOM else ("ann", "get_node")
        await journal.append(scribe.audit(agent, tool, at=number % 60))
    await journal.close()


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("asked", RARE)
async def test_what_is_not_there_is_found_out_in_a_few_steps(
    many: Path, steps: list[int], asked: str, newest: bool
) -> None:
    page = await SqliteAuditLog(many).records(replace(RARE[asked], newest=newest))
    assert page.lines == []
    assert steps[0] < RECORDS, f"{steps[0]} steps for {RECORDS} records"


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("asked", [{"agent": "bob"}, {"tool": "undo"}, {"agent": "bob", "tool": "undo"}])
async def test_what_is_seldom_is_found_page_by_page_in_a_few_steps(
    many: Path, steps: list[int], asked: dict[str, str], newest: bool
) -> None:
    found: list[int] = []
    query = replace(AuditQuery(newest=newest, limit=3), agent=asked.get("agent"), tool=asked.get("tool"))
    while True:
        page = await SqliteAuditLog(many).records(query)
        found += [record["number"] for record in page.records]
        if page.next is None:
            break
        query = replace(query, before=page.next) if newest else replace(query, after=page.next)
    assert found == sorted(SELDOM, reverse=newest)
    assert steps[0] < RECORDS, f"{steps[0]} steps for {RECORDS} records"


async def test_a_store_from_before_there_were_spans_is_asked_in_a_few_steps_too(
    many: Path, tmp_path: Path, steps: list[int]
) -> None:
    older = tmp_path / "older.db"
    with closing(sqlite3.connect(many)) as source, closing(sqlite3.connect(older)) as target, target:
        source.backup(target)
        for column in ("agent", "operation"):
            target.execute(f"DROP INDEX audit_{column}")
            target.execute(f"CREATE INDEX audit_{column} ON audit ({column})")
    steps[0] = 0
    page = await SqliteAuditLog(older).records(AuditQuery(agent="bob"))
    assert [record["number"] for record in page.records] == [*SELDOM]
    assert steps[0] < RECORDS


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("number", [2**40, 2**63 - 1])
async def test_a_record_put_in_far_ahead_costs_a_few_steps(
    many: Path, tmp_path: Path, steps: list[int], number: int, newest: bool
) -> None:
    altered = tmp_path / "altered.db"
    with closing(sqlite3.connect(many)) as source, closing(sqlite3.connect(altered)) as target, target:
        source.backup(target)
        target.execute("UPDATE audit SET number = ? WHERE number = ?", [number, RECORDS])
    steps[0] = 0
    page = await SqliteAuditLog(altered).records(AuditQuery(agent="bob", newest=newest))
    assert [record["number"] for record in page.records] == sorted(SELDOM, reverse=newest)
    assert steps[0] < RECORDS


COMMON = (
    AuditQuery(agent="ann", after=4_090, limit=20),
    AuditQuery(agent="ann", before=8_200, newest=True, limit=20),
    AuditQuery(agent="bob", after=4_096, before=8_191),
    AuditQuery(outcome="success", kind="call", agent="ann", limit=7),
    AuditQuery(since="2030-01-01T00:00:30.000+00:00", limit=9),
    AuditQuery(since="2030-01-01T00:00:59.000+00:00", newest=True, limit=9),
)


@pytest.mark.parametrize("query", [*RARE.values(), *COMMON])
async def test_an_answer_does_not_depend_on_the_index(many: Path, tmp_path: Path, query: AuditQuery) -> None:
    bare = tmp_path / "bare.db"
    with closing(sqlite3.connect(many)) as source, closing(sqlite3.connect(bare)) as target, target:
        source.backup(target)
        for name in ("agent", "operation", "timestamp", "outcome", "kind"):
            target.execute(f"DROP INDEX audit_{name}")
    assert await SqliteAuditLog(many).records(query) == await SqliteAuditLog(bare).records(query)
