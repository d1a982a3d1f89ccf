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
RECORDS = 2_000
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
    for at in range(RECORDS):
        await journal.append(scribe.audit(at=at % 60))
    await journal.close()


@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.parametrize("asked", RARE)
async def test_what_is_not_there_is_found_out_in_a_few_steps(
    many: Path, steps: list[int], asked: str, newest: bool
) -> None:
    page = await SqliteAuditLog(many).records(replace(RARE[asked], newest=newest))
    assert page.lines == []
    assert steps[0] < RECORDS, f"{steps[0]} steps for {RECORDS} records"


COMMON = (
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
