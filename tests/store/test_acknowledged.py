"""What the audit log acknowledges is in the journal, once, and the other way round; else the log does not hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from grove_kit import ManualClock, hand
from store_kit import stored
from toolgrove import Grove
from toolgrove.store.audit import Proof
from toolgrove.store.journal import SqliteAuditLog
from toolgrove.store.journal.postgres.audit_log import PostgresAuditLog
from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.postgres.connecting import connect

pytestmark = pytest.mark.anyio
ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}}
Edit = Callable[[Connection], object]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    return tmp_path / "grove.db" if request.param == "sqlite" else str(request.getfixturevalue("database"))


def edited(place: Path | str, edit: Edit) -> None:
    """Change the tables by hand, where nobody else has them open."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as connection, connection:
            edit(connection)
    else:
        with closing(connect(DatabaseAddress.of(place))) as connected, connected:
            edit(PostgresTables(connected))


async def verified(place: Path | str) -> Proof:
    """What 'audit verify' says beside a store that nobody has open: one that is damaged does not even open."""
    if isinstance(place, Path):
        return await SqliteAuditLog(place).verify()
    return await PostgresAuditLog(DatabaseAddress.of(place)).verify()


async def a_day(place: Path | str) -> list[str]:
    """Some changes; their identities."""
    async with Grove(stored(place), clock=ManualClock()) as grove:
        ann = await hand(grove, "ann")
        for _ in range(4):
            await ann.ok("add_child", **ADD)
        await ann.ok("undo")
    found: list[str] = []
    edited(place, lambda tables: found.extend(row[0] for row in tables.execute(_IDS).fetchall()))
    return found


_IDS = "SELECT id FROM journal ORDER BY revision"


async def test_a_day_of_changes_agrees(place: Path | str) -> None:
    assert len(set(await a_day(place))) == 5
    assert (await verified(place)).breach is None


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("what", ["dropped", "another", "added"])
async def test_a_change_that_is_only_in_the_log_or_only_in_the_journal_is_found(
    place: Path | str, what: str, at: int
) -> None:
    changes = await a_day(place)
    one = changes[at]
    statement, values = {
        "dropped": ("DELETE FROM journal WHERE id = ?", (one,)),
        "another": ("UPDATE journal SET id = ? WHERE id = ?", (f"f{one}", one)),
        "added": (
            "INSERT INTO journal (revision, base, id, parent, body, crc) "
            "SELECT revision + 100, base, ?, parent, body, crc FROM journal WHERE id = ?",
            (f"f{one}", one),
        ),
    }[what]
    edited(place, lambda tables: tables.execute(statement, values))
    breach = (await verified(place)).breach
    assert breach is not None
    told = "of which no record tells" if what == "added" else "is not in the journal"
    assert (one in breach.problem, told in breach.problem) == (True, True)
