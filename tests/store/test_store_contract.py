"""What every store promises, whatever it is made of."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sqlite3
import zlib
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from store_kit import DATABASE, STORES, AnyJournal, ManualClock, Scribe, grown_older
from toolgrove.notation.json_value import compact
from toolgrove.notation.times import to_milliseconds
from toolgrove.store.audit import NO_BODIES, AuditQuery, Bodies, JsonLines, Outcome, Sealed, verify
from toolgrove.store.journal import Behind, JournalEntry, KeyLimits, SqliteJournal
from toolgrove.store.unusable import StoreUnusable

pytestmark = pytest.mark.anyio
DAY = 86_400


class Shelf:
    """A store of one kind that is open, with its clock and someone who writes entries."""

    def __init__(self, kind: str, folder: Path, **options: Any) -> None:
        self.clock = ManualClock()
        self.kind, self.folder, self.options = kind, folder, options
        self.journal: AnyJournal = STORES[kind](folder, self.clock, **options)
        self.scribe = Scribe()

    def later(self, seconds: float) -> None:
        """Let time pass for the keys."""
        self.clock.now += seconds
        if self.kind == "postgresql":
            grown_older((self.folder / DATABASE).read_text(), seconds)

    async def open(self) -> None:
        """Open the store; the one who writes entries goes on with what it holds."""
        self.scribe.go_on(await self.journal.open())

    async def numbers(self, **query: Any) -> list[int]:
        page = await self.journal.records(AuditQuery(**query))
        return [record["number"] for record in page.records]


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A kind of store; the database of one that needs it is there."""
    kind: str = request.param
    if kind == "postgresql":
        (tmp_path / DATABASE).write_text(request.getfixturevalue("database"))
    return kind


@pytest.fixture
async def shelf(kind: str, tmp_path: Path) -> AsyncIterator[Shelf]:
    shelf = Shelf(kind, tmp_path, limits=KeyLimits(per_agent=3, lifetime=60))
    await shelf.open()
    yield shelf
    await shelf.journal.close()


async def test_an_entry_is_kept_with_all_its_parts(shelf: Shelf) -> None:
    entry = shelf.scribe.change()
    key = shelf.scribe.key("k", {"n": 1, "list": [1.5, None, "é"]}).idempotency
    await shelf.journal.append(type(entry)(audit=entry.audit, effects=entry.effects, idempotency=key))
    assert await shelf.journal.recall("ann", "k") == key
    page = await shelf.journal.records(AuditQuery())
    assert [(record["number"], record["operation"]) for record in page.records] == [(1, "add_child")]
    assert page.next is None
    assert (await shelf.journal.verify()).breach is None


async def test_a_key_belongs_to_one_agent_and_an_unknown_one_to_nobody(shelf: Shelf) -> None:
    await shelf.journal.append(shelf.scribe.key("k", {"n": 1}))
    await shelf.journal.append(shelf.scribe.key("k", {"n": 2}, agent="bob"))
    kept = [await shelf.journal.recall(agent, "k") for agent in ("ann", "bob")]
    assert [record and record.result for record in kept] == [{"n": 1}, {"n": 2}]
    assert await shelf.journal.recall("ann", "other") is None
    assert await shelf.journal.recall("carl", "k") is None


@pytest.mark.parametrize("key", ["k", "\ud800", "\0", "ключ", "'; DROP TABLE node; --", "%_"])
async def test_any_text_can_be_a_key(shelf: Shelf, key: str) -> None:
    await shelf.journal.append(shelf.scribe.key(key, {"text": key}, agent=key))
    found = await shelf.journal.recall(key, key)
    assert found is not None
    assert (found.agent, found.key, found.result) == (key, key, {"text": key})


async def test_a_key_expires_and_its_place_is_free_again(shelf: Shelf) -> None:
    await shelf.journal.append(shelf.scribe.key("k", {"n": 1}))
    shelf.later(50)
    assert await shelf.journal.recall("ann", "k") is not None
    shelf.later(11)
    assert await shelf.journal.recall("ann", "k") is None
    await shelf.journal.append(shelf.scribe.key("k", {"n": 2}))
    found = await shelf.journal.recall("ann", "k")
    assert found is not None
    assert found.result == {"n": 2}


async def test_an_agent_has_a_quota_of_keys_and_the_oldest_go_first(shelf: Shelf) -> None:
    await shelf.journal.append(shelf.scribe.key("k0", {}, agent="bob"))
    for at in range(5):
        await shelf.journal.append(shelf.scribe.key(f"k{at}", {}))
    held = [key for key in (f"k{at}" for at in range(5)) if await shelf.journal.recall("ann", key)]
    assert held == ["k2", "k3", "k4"]
    assert await shelf.journal.recall("bob", "k0") is not None


async def test_keys_that_had_to_go_before_their_time_are_told_once(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    for at in range(5):
        shelf.later(61)  # none of these is forgotten early: each has expired
        await shelf.journal.append(shelf.scribe.key(f"old{at}", {}))
    assert caplog.messages == []
    for at in range(8):
        await shelf.journal.append(shelf.scribe.key(f"k{at}", {}))
    (told,) = caplog.messages
    assert told.startswith("Agent ann used more than 3 idempotency keys within")


@pytest.mark.long
async def test_a_store_on_disk_holds_the_keys_of_a_busy_day(tmp_path: Path) -> None:
    clock, scribe = ManualClock(), Scribe()
    journal = SqliteJournal(tmp_path / "grove.db", clock)
    await journal.open()
    for _ in range(12):
        async with anyio.create_task_group() as group:
            for _ in range(1_000):
                group.start_soon(journal.append, scribe.key(f"k{scribe.count}", {}))
        clock.now += 3_600
    assert await journal.recall("ann", "k0") is not None
    clock.now += 12 * 3_600 + 1
    assert await journal.recall("ann", "k0") is None
    assert await journal.recall("ann", "k11000") is not None
    await journal.close()


async def test_a_wall_clock_that_jumps_neither_expires_keys_nor_keeps_them(shelf: Shelf) -> None:
    await shelf.journal.append(shelf.scribe.key("k", {}))
    for jump in (86_400.0, -86_400.0):
        shelf.clock.wall = lambda jump=jump: 1_800_000_000.0 + jump  # type: ignore[method-assign,misc]
        assert await shelf.journal.recall("ann", "k") is not None
    shelf.later(61)
    assert await shelf.journal.recall("ann", "k") is None


async def test_a_change_that_rests_on_another_revision_is_refused_whole(shelf: Shelf) -> None:
    first, second, third = (shelf.scribe.change() for _ in range(3))
    await shelf.journal.append(first)
    key = shelf.scribe.key("k", {}).idempotency
    assert first.effects is not None
    with pytest.raises(Behind, match=f"stands at {first.effects.id}"):
        await shelf.journal.append(type(third)(audit=third.audit, effects=third.effects, idempotency=key))
    with pytest.raises(OSError, match=f"rests on {first.effects.parent}"):
        await shelf.journal.append(first)
    assert await shelf.journal.recall("ann", "k") is None
    assert await shelf.numbers() == [1]
    await shelf.journal.append(second)
    await shelf.journal.append(third)
    assert await shelf.numbers() == [1, 2, 3]
    assert (await shelf.journal.verify()).breach is None


async def test_entries_are_kept_in_the_order_they_came(shelf: Shelf) -> None:
    entries = [entry for _ in range(50) for entry in (shelf.scribe.change(), shelf.scribe.audit())]
    async with anyio.create_task_group() as group:
        for entry in entries:
            group.start_soon(shelf.journal.append, entry)
    page = await shelf.journal.records(AuditQuery(limit=200))
    assert [record["callId"] for record in page.records] == [entry.audit.call_id for entry in entries]
    assert (await shelf.journal.verify()).breach is None


async def test_what_rests_on_a_refused_change_is_refused_as_well(shelf: Shelf) -> None:
    entries = [shelf.scribe.change() for _ in range(4)]
    refused: list[int] = []

    async def append(at: int) -> None:
        try:
            await shelf.journal.append(entries[at])
        except Behind:
            refused.append(at)

    async with anyio.create_task_group() as group:
        for at in (0, 2, 3, 1):
            group.start_soon(append, at)
    assert refused == [2, 3]
    assert await shelf.numbers() == [1, 2]


async def test_a_cancelled_caller_leaves_a_whole_entry(shelf: Shelf) -> None:
    entry, after = shelf.scribe.change(), []
    async with anyio.create_task_group() as group:

        async def append() -> None:
            group.cancel_scope.cancel()
            await shelf.journal.append(entry)
            await anyio.lowlevel.checkpoint()
            after.append("never")

        group.start_soon(append)
    assert await shelf.numbers() == [1]
    assert after == []


async def test_a_cancelled_caller_still_hears_that_its_change_was_refused(shelf: Shelf) -> None:
    shelf.scribe.change()
    groundless, heard = shelf.scribe.change(), []
    async with anyio.create_task_group() as group:

        async def append() -> None:
            group.cancel_scope.cancel()
            with pytest.raises(Behind):
                await shelf.journal.append(groundless)
            heard.append("refused")

        group.start_soon(append)
    assert heard == ["refused"]


async def test_a_task_cancelled_the_plain_way_leaves_a_whole_entry_and_ends(shelf: Shelf) -> None:
    entry = shelf.scribe.change()

    async def append() -> None:
        await shelf.journal.append(entry)
        await asyncio.Event().wait()

    task = asyncio.create_task(append())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await shelf.numbers() == [1]


QUERIES: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [1, 2, 3, 4, 5, 6]),
    ({"agent": "bob"}, [2, 4, 6]),
    ({"tool": "undo"}, [3, 6]),
    ({"outcome": "refused"}, [4]),
    ({"since": "2030-01-01T00:00:03"}, [4, 5, 6]),
    ({"after": 4}, [5, 6]),
    ({"agent": "bob", "after": 2, "since": "2030-01-01T00:00:05"}, [6]),
    ({"newest": True}, [6, 5, 4, 3, 2, 1]),
    ({"newest": True, "before": 5, "agent": "ann"}, [3, 1]),
    ({"before": 3}, [1, 2]),
    ({"outcome": "waiting"}, [5]),
    ({"tool_part": "EAR"}, [1, 2, 4, 5]),
    ({"tool_part": "%"}, []),
    ({"tool_part": "un", "agent": "bob"}, [6]),
    ({"until": "2030-01-01T00:00:02"}, [1, 2]),
    ({"since": "2030-01-01T00:00:01", "until": "2030-01-01T00:00:03"}, [2, 3]),
    ({"text": "BOB"}, [2, 4, 6]),
    ({"text": "café 100%"}, [3]),
    ({"text": "café_100%"}, []),
    ({"call": "c4"}, [4]),
    ({"run": "r1"}, [1, 2]),
    ({"run": "r1", "newest": True}, [2, 1]),
    ({"agent": "nobody"}, []),
    ({"agent": "' OR 1=1 --"}, []),
]


@pytest.mark.parametrize(("query", "found"), QUERIES, ids=[str(query) for query, _ in QUERIES])
async def test_audit_records_are_found_by_agent_tool_outcome_and_time(
    shelf: Shelf, query: dict[str, Any], found: list[int]
) -> None:
    await six_records(shelf)
    assert await shelf.numbers(**query) == found


async def six_records(shelf: Shelf) -> None:
    for at in range(6):
        agent, tool = ("bob" if at % 2 else "ann"), ("undo" if at in (2, 5) else "search")
        outcome: Outcome = "refused" if at == 3 else "waiting" if at == 4 else "success"
        record = shelf.scribe.record(agent, tool, outcome, at)._replace(run_id="r1" if at < 2 else "r2")
        bodies = Bodies(arguments=compact({"note": "Café 100%"}, ascii=True)) if at == 2 else NO_BODIES
        await shelf.journal.append(JournalEntry(audit=record._replace(bodies=bodies)))


async def test_audit_records_come_in_pages(shelf: Shelf) -> None:
    await six_records(shelf)
    pages, after = [], 0
    while True:
        page = await shelf.journal.records(AuditQuery(agent="bob", limit=2, after=after))
        pages.append([record["number"] for record in page.records])
        if page.next is None:
            break
        after = page.next
    assert pages == [[2, 4], [6]]
    newest = await shelf.journal.records(AuditQuery(newest=True, limit=4))
    assert newest.next == 3
    rest = await shelf.journal.records(AuditQuery(newest=True, limit=4, before=newest.next))
    assert [record["number"] for record in (*newest.records, *rest.records)] == [6, 5, 4, 3, 2, 1]
    assert (await shelf.journal.records(AuditQuery(limit=6))).next is None


async def test_a_log_file_gets_every_record_and_its_chain_goes_on(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    for at in range(3):
        shelf = Shelf("memory" if at == 0 else kind, tmp_path, sinks=[JsonLines(log)])
        await shelf.open()
        await shelf.journal.append(shelf.scribe.audit())
        await shelf.journal.append(shelf.scribe.key(f"k{at}", {}))
        await shelf.journal.close()
    lines = log.read_text().splitlines()
    assert len(lines) == 6
    assert verify(lines) is None


async def test_a_log_file_whose_last_line_was_torn_goes_on_with_a_whole_one(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    for opened in range(2):
        shelf = Shelf(kind, tmp_path, sinks=[JsonLines(log)])
        await shelf.open()
        for at in range(3):
            await shelf.journal.append(shelf.scribe.key(f"k{opened}.{at}", {}))
        await shelf.journal.close()
        whole = log.read_bytes()
        log.write_bytes(whole[:-40])
    log.write_bytes(whole)
    lines = log.read_text().splitlines()
    assert verify(lines) is None
    assert len(lines) == (5 if kind == "memory" else 6)


class Fickle:
    """A sink of somebody else's that fails at its second record."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault
        self.taken = 0

    def write(self, sealed: Sealed) -> None:
        self.taken += 1
        if self.taken == 2:
            raise self.fault


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), ValueError("I/O operation on closed file")])
async def test_a_sink_that_fails_leaves_the_other_logs_whole(kind: str, fault: Exception, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    shelf = Shelf(kind, tmp_path, sinks=[JsonLines(log), Fickle(fault)])
    await shelf.open()
    kept = 0
    for at in range(4):
        with contextlib.suppress(type(fault)):
            await shelf.journal.append(shelf.scribe.key(f"k{at}", {}))
            kept += 1
    await shelf.journal.close()
    lines = log.read_text().splitlines()
    assert verify(lines) is None
    assert len(lines) == kept == (3 if kind == "memory" else 4), "the store keeps what is kept, whoever copies it"


@pytest.mark.parametrize("last", ["not a record\n", "remember the milk", '{"number": "1"}\n', "[]\n"])
async def test_a_log_file_that_ends_with_something_else_is_named(kind: str, last: str, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_text(last)
    with pytest.raises(StoreUnusable) as refusal:
        await Shelf(kind, tmp_path, sinks=[JsonLines(log)]).journal.open()
    assert str(log) in str(refusal.value)
    assert "grove.db" not in str(refusal.value)
    assert log.read_text() == last


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("seed", range(3))
async def test_old_records_leave_with_what_was_called_and_the_store_goes_on(
    kind: str, tmp_path: Path, seed: int
) -> None:
    pick, shelf = random.Random(seed), Shelf(kind, tmp_path, audit_days=1, record_bytes=2_000)
    await shelf.open()
    for _ in range(40):
        match pick.choice(("call", "call", "change", "wait", "reopen")):
            case "wait":
                shelf.clock.now += pick.choice((61, DAY // 2, 2 * DAY))
            case "reopen":
                await shelf.journal.close()
                shelf.journal = STORES[kind](tmp_path, shelf.clock, **shelf.options)
                await shelf.open()
            case what:
                entry = shelf.scribe.change() if what == "change" else shelf.scribe.audit()
                told = Bodies(pick.choice((None, '{"a":1}', f'"{"x" * 300}"')), pick.choice((None, "[]")))
                at = to_milliseconds(shelf.clock.wall())
                await shelf.journal.append(entry._replace(audit=entry.audit._replace(timestamp=at, bodies=told)))
    await shelf.journal.append(shelf.scribe.change())
    assert (await shelf.journal.verify()).breach is None
    await shelf.journal.close()


async def test_a_head_whose_count_of_bytes_was_written_as_text_is_read_all_the_same(tmp_path: Path) -> None:
    shelf = Shelf("sqlite", tmp_path)
    for _ in range(2):
        await shelf.open()
        entry = shelf.scribe.audit()
        await shelf.journal.append(entry._replace(audit=entry.audit._replace(bodies=Bodies("{}", "[]")), durable=True))
        await shelf.journal.close()
        with closing(sqlite3.connect(tmp_path / "grove.db", isolation_level=None)) as connection:
            (body,) = connection.execute("SELECT body FROM head").fetchone()
            form = json.loads(body)
            body = compact({**form, "audit_body_bytes": str(form["audit_body_bytes"])}, ascii=True)
            connection.execute("UPDATE head SET body = ?, crc = ?", (body, zlib.crc32(body.encode())))
        shelf.journal = STORES["sqlite"](tmp_path, shelf.clock)


@pytest.mark.parametrize("seed", range(4))
async def test_a_call_that_a_crash_cut_off_ends_when_its_process_was_last_known_to_live(
    kind: str, tmp_path: Path, seed: int
) -> None:
    pick, options = random.Random(seed), {"sinks": [JsonLines(tmp_path / "log.jsonl")]} if kind == "memory" else {}
    shelf = Shelf(kind, tmp_path, **options)
    await shelf.journal.open()
    begun: dict[str, str] = {}
    written = ""
    for number in range(12):
        shelf.clock.now += pick.choice((0, 1, 60, 3_600))
        entry = shelf.scribe.audit(tool="pay")
        written = to_milliseconds(shelf.clock.wall())
        record = entry.audit._replace(timestamp=written)
        if pick.random() < 0.3 or number == 0:
            begun[record.call_id] = written
            record = record._replace(outcome="begun", request=record.call_id)
        await shelf.journal.append(entry._replace(audit=record, durable=True))
    await shelf.journal.close()
    shelf.clock.now += 10 * DAY
    journal = STORES[kind](tmp_path, shelf.clock, **options)
    await journal.open()
    found = [one for one in await all_records(journal, tmp_path) if one["outcome"] == "unknown"]
    await journal.close()
    assert {one["callId"] for one in found} == set(begun)
    for one in found:
        since, until = datetime.fromisoformat(begun[one["callId"]]), datetime.fromisoformat(one["timestamp"])
        # Of a process among others in a database, its own last word counts; what others wrote says nothing of it.
        assert begun[one["callId"]] <= one["timestamp"] <= written
        assert one["timestamp"] == written or kind == "postgresql"
        assert one["durationMs"] == (until - since).total_seconds() * 1000


async def all_records(journal: AnyJournal, folder: Path) -> list[dict[str, Any]]:
    log = folder / "log.jsonl"
    if log.exists():
        return [json.loads(line) for line in log.read_text().splitlines()]
    return (await journal.records(AuditQuery(limit=1_000))).records
