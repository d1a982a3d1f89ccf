"""Audit records are sealed with a key of the machine: what was cut, rewritten or put back is found."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove_kit import ManualClock, config
from store_kit import Scribe, stored
from toolgrove import Config, Grove
from toolgrove.store.audit import AuditFile, AuditQuery, JsonLines, Notary, Place, PublicKeys
from toolgrove.store.journal import MemoryJournal, SqliteAuditLog, SqliteJournal
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.unusable import StoreUnusable

pytestmark = pytest.mark.anyio
DAY = 86_400
Edit = Callable[[sqlite3.Connection], None]


def notary(folder: Path) -> Notary:
    return Notary(key=folder / "audit.key", mark=folder / "head")


def reader(folder: Path) -> Notary:
    one = notary(folder)
    one.read()
    return one


async def write(journal: MemoryJournal | SqliteJournal, count: int) -> None:
    scribe = Scribe()
    await journal.open()
    for _ in range(count):
        await journal.append(scribe.audit())
    await journal.close()


async def a_store(folder: Path, count: int = 6, **options: Any) -> Path:
    path = folder / "grove.db"
    await write(SqliteJournal(path, ManualClock(), notary=notary(folder), **options), count)
    return path


async def a_log(folder: Path, count: int = 6, **options: Any) -> Path:
    path, keeper = folder / "audit.jsonl", notary(folder)
    await write(MemoryJournal(ManualClock(), sinks=[JsonLines(path, keeper)], notary=keeper, **options), count)
    return path


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


def is_record(line: str) -> bool:
    """Whether a line is no signature of the record before it, and does not name the part before."""
    return line.startswith('{"number":')


def unsealed(line: str) -> str:
    """What a record says, with its place in the chain."""
    return line.partition(',"seal":"')[0].rstrip("\n").rstrip("}")


def rehash(lines: list[str]) -> list[str]:
    """The lines as somebody without the key would chain them anew."""
    previous, forged = "0" * 64, []
    for at, line in enumerate(line for line in lines if is_record(line)):
        form = {**json.loads(line), "number": at + 1, "previous": previous}
        form.pop("hash")
        form.pop("seal", None)
        body = json.dumps(form, separators=(",", ":"))
        previous = hashlib.sha256(body.encode()).hexdigest()
        forged.append(f'{body[:-1]},"hash":"{previous}"}}')
    return forged


def put_head(connection: sqlite3.Connection, **facts: Any) -> None:
    head = Head.read(connection)
    assert head is not None
    head._replace(**facts).write(connection)


def cut_tail(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM audit WHERE number > 4")
    (line,) = connection.execute("SELECT line FROM audit WHERE number = 4").fetchone()
    put_head(connection, audit_number=4, audit_hash=json.loads(line)["hash"])


def cut_head(connection: sqlite3.Connection) -> None:
    (line,) = connection.execute("SELECT line FROM audit WHERE number = 2").fetchone()
    connection.execute("DELETE FROM audit WHERE number <= 2")
    put_head(connection, audit_floor=json.loads(line)["hash"], audit_floor_number=2)


def cut_everything(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM audit")
    put_head(connection, audit_number=0, audit_hash="0" * 64, audit_floor="", audit_floor_number=0)


def rewrite(connection: sqlite3.Connection) -> None:
    lines = [line for (line,) in connection.execute("SELECT line FROM audit ORDER BY number")]
    forged = rehash([line.replace('"ann"', '"bob"') for line in lines])
    connection.executemany("UPDATE audit SET line = ? WHERE number = ?", zip(forged, range(1, 7), strict=True))
    connection.execute("UPDATE audit SET agent = 'bob'")
    put_head(connection, audit_hash=json.loads(forged[-1])["hash"], audit_seal="")


@pytest.mark.parametrize("edit", [cut_tail, cut_head, cut_everything, rewrite])
async def test_who_has_no_key_can_neither_cut_nor_rewrite_a_store_unseen(tmp_path: Path, edit: Edit) -> None:
    path = await a_store(tmp_path)
    assert (await SqliteAuditLog(path, reader(tmp_path)).verify()).breach is None
    with opened(path) as connection:
        edit(connection)
    assert (await SqliteAuditLog(path, reader(tmp_path)).verify()).breach is not None


@pytest.mark.parametrize("edit", [cut_tail, cut_head])
async def test_the_row_that_says_where_a_log_ends_is_sealed_itself(tmp_path: Path, edit: Edit) -> None:
    path = await a_store(tmp_path)
    (tmp_path / "head").unlink()
    with opened(path) as connection:
        edit(connection)
    breach = (await SqliteAuditLog(path, reader(tmp_path)).verify()).breach
    assert breach is not None
    assert "the row that says where the log ends was altered" in breach.problem


@pytest.mark.parametrize("column", ["agent", "operation", "outcome", "timestamp"])
async def test_the_columns_by_which_records_are_found_are_covered(tmp_path: Path, column: str) -> None:
    path = await a_store(tmp_path)
    with opened(path) as connection:
        connection.execute(f"UPDATE audit SET {column} = 'refused' WHERE number = 3")
    breach = (await SqliteAuditLog(path, reader(tmp_path)).verify()).breach
    assert breach is not None
    assert (breach.number, "columns" in breach.problem) == (2, True)


async def test_an_older_state_of_everything_is_found_by_an_anchor_kept_elsewhere(tmp_path: Path) -> None:
    path = await a_store(tmp_path)
    shutil.copytree(tmp_path, tmp_path / "older")
    await a_store(tmp_path)
    newest = (await SqliteAuditLog(path).records(AuditQuery(newest=True, limit=1))).records[0]
    anchor = Place.read(f"{newest['number']}:{newest['hash']}")
    assert (await SqliteAuditLog(path, reader(tmp_path)).verify([anchor])).breach is None
    older = SqliteAuditLog(tmp_path / "older" / "grove.db", reader(tmp_path / "older"))
    assert (await older.verify()).breach is None
    breach = (await older.verify([anchor])).breach
    assert breach is not None
    assert "there was a record 12" in breach.problem
    assert (await SqliteAuditLog(path).verify([anchor._replace(hash="f" * 64)])).breach is not None


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log of five records, and with its key."""
    return anyio.run(a_log, tmp_path_factory.mktemp("sealed"), 5).parent


@pytest.mark.long
@given(data=st.data())
def test_no_edit_of_a_log_file_goes_unseen(sealed: Path, data: st.DataObject) -> None:
    lines = (sealed / "audit.jsonl").read_text().splitlines(keepends=True)
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(lines)), st.integers(0, len(lines)))))
    before, piece, after = lines[:start], lines[start:end], lines[end:]
    kind = data.draw(st.sampled_from(("drop", "double", "reverse", "move", "alter", "chain anew")))
    if kind == "alter" and piece:
        at = data.draw(st.integers(0, len(piece[0]) - 2))
        piece = [piece[0][:at] + chr(ord(piece[0][at]) ^ 1) + piece[0][at + 1 :], *piece[1:]]
    edited = {
        "drop": before + after,
        "double": before + piece + piece + after,
        "reverse": before + piece[::-1] + after,
        "move": piece + before + after,
        "alter": before + piece + after,
        "chain anew": [f"{line}\n" for line in rehash(before + after)],
    }[kind]
    (sealed / "edited.jsonl").write_text("".join(edited))
    proof = anyio.run(AuditFile(sealed / "edited.jsonl", reader(sealed)).verify)
    if proof.whole is True:
        assert [unsealed(line) for line in edited if is_record(line)] == [unsealed(line) for line in lines[:-1]]
    else:
        assert edited != lines


async def test_without_the_key_it_is_told_what_nobody_checked(tmp_path: Path) -> None:
    path, log = await a_store(tmp_path), await a_log(tmp_path)
    for proof in (await SqliteAuditLog(path).verify(), await AuditFile(log).verify()):
        assert (proof.breach, proof.sealed_from) == (None, None)
        assert proof.unchecked == ("the seals, since the key of this machine is not here",)
    with opened(path) as connection:
        cut_tail(connection)
    assert (await SqliteAuditLog(path).verify()).breach is None


async def test_what_retention_took_away_is_told_from_what_somebody_cut_off(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = stored(tmp_path / "grove.db", auditDays=1)
    async with Grove(settings, clock=clock) as grove:
        ann = await grove.agent("ann")
        for _ in range(3):
            await ann.call("get_node", {"nodeId": "root"})
        clock.now += 2 * DAY
        await ann.call("get_node", {"nodeId": "root"})
        proof = await grove.audit_log.verify()
        assert (proof.breach, proof.first, proof.removed) == (None, 4, 3)
        gone, newest = Place(2, "a" * 64), list(grove.audit)[2]
        proof = await grove.audit_log.verify([gone, Place(newest["number"], newest["hash"])])
        assert (proof.breach, proof.unchecked) == (None, ("the anchor at record 2, which is no longer kept",))
        breach = (await grove.audit_log.verify([Place(3, "b" * 64)])).breach
        assert breach is not None
        assert "not those that stood there" in breach.problem


class WanderingClock(ManualClock):
    """A wall clock that somebody sets."""

    ahead = 0.0

    def wall(self) -> float:
        return super().wall() + self.ahead


async def test_a_record_from_a_clock_that_ran_ahead_does_not_stop_retention(tmp_path: Path) -> None:
    clock = WanderingClock()
    async with Grove(stored(tmp_path / "grove.db", auditDays=1), clock=clock) as grove:
        ann = await grove.agent("ann")
        for clock.ahead in (0, 1_000 * DAY, 0):
            await ann.call("get_node", {"nodeId": "root"})
        clock.now += 2 * DAY
        await ann.call("get_node", {"nodeId": "root"})
        assert [one["number"] for one in (await grove.audit_log.records(AuditQuery())).records] == [4]
        assert (await grove.audit_log.verify()).breach is None


async def test_a_store_from_before_there_were_seals_goes_on_with_a_marked_change(tmp_path: Path) -> None:
    path = tmp_path / "grove.db"
    await write(SqliteJournal(path, ManualClock()), 3)
    with opened(path) as connection:
        connection.execute("DROP TABLE unfinished")
        connection.execute("DROP TABLE audit_body")
        for name in ("agent", "operation", "timestamp", "outcome", "kind"):
            connection.execute(f"DROP INDEX audit_{name}")
        connection.execute("PRAGMA user_version=1")
    assert (await SqliteAuditLog(path, reader(tmp_path)).verify()).breach is None
    await a_store(tmp_path, 1)
    log = SqliteAuditLog(path, reader(tmp_path))
    assert [one["operation"] for one in (await log.records(AuditQuery())).records][3:] == ["audit.sealed", "get_node"]
    proof = await log.verify()
    assert (proof.breach, proof.first, proof.sealed_from) == (None, 1, 4)
    assert proof.unchecked == ("records 1 to 3, which no seal of this key covers",)
    with opened(path) as connection:
        connection.execute("UPDATE audit SET line = replace(line, 'ann', 'bob') WHERE number = 2")
    assert (await log.verify()).breach is not None


@pytest.mark.parametrize("make", ["store", "log"])
async def test_a_log_of_another_key_is_refused_until_somebody_lets_it_go_on_with_a_marked_change(
    tmp_path: Path, make: str
) -> None:
    begin: Any = {"store": a_store, "log": a_log}[make]
    check: Any = {"store": SqliteAuditLog, "log": AuditFile}[make]
    path = await begin(tmp_path, 2)
    earlier = reader(tmp_path).public
    (tmp_path / "audit.key").write_text("f" * 64)
    proof = await check(path, reader(tmp_path)).verify()
    assert (proof.whole, proof.unchecked != ()) == (None, True)
    with pytest.raises(StoreUnusable, match=r"another key sealed.*'toolgrove audit key --change'"):
        await begin(tmp_path, 1)
    await begin(tmp_path, 1, change_key=True)
    await begin(tmp_path, 1)
    proof = await check(path, reader(tmp_path)).verify()
    assert (proof.whole, proof.sealed_from, proof.last) == (None, 3, 5)
    assert proof.unchecked == ("records 1 to 2, which no seal of this key covers",)
    both = PublicKeys([earlier, reader(tmp_path).public])
    assert (await check(path, both).verify()).whole is True


async def calls(grove: Grove, count: int) -> None:
    ann = await grove.agent("ann")
    for _ in range(count):
        await ann.call("get_node", {"nodeId": "root"})


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["number"] for line in path.read_text().splitlines() if is_record(line)]


async def test_a_backup_that_is_older_than_the_copy_is_told_and_the_copy_goes_on_with_a_marked_break(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, log = tmp_path / "grove.db", tmp_path / "audit.jsonl"
    settings = stored(path, auditLog=str(log))
    async with Grove(settings) as grove:
        await calls(grove, 5)
    shutil.copy(path, tmp_path / "backup.db")
    async with Grove(settings) as grove:
        await calls(grove, 10)
    shutil.copy(tmp_path / "backup.db", path)
    (tmp_path / "grove.db-head").unlink()  # the copy alone proves it
    with caplog.at_level(logging.ERROR):
        async with Grove(settings) as grove:
            await calls(grove, 2)
            proof = await grove.audit_log.verify()
    assert "The audit log ends at record 5, and once had 15" in caplog.text
    assert proof.breach is None
    assert [(one.number, one.after, one.lost) for one in proof.breaks] == [(16, 5, 15)]
    assert numbers(log) == list(range(1, 19))
    copy = await AuditFile(log, reader_of(path)).verify()
    assert (copy.breach, [(one.number, one.after, one.lost) for one in copy.breaks]) == (None, [(16, 15, 15)])
    async with Grove(settings) as grove:  # it is told once, and stays in the log
        assert len((await grove.audit_log.verify()).breaks) == 1
        lost = Place(12, json.loads(log.read_text().splitlines()[11])["hash"])
        breach = (await grove.audit_log.verify([lost])).breach
        assert breach is not None
        assert "record 12 was lost when the log was put back to an older state" in breach.problem


async def test_changes_that_went_with_a_removed_wal_file_are_told_at_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "grove.db"
    async with Grove(stored(path)) as grove:
        await calls(grove, 3)
    async with Grove(stored(path)) as grove:
        await calls(grove, 4)
        assert len((await grove.audit_log.records(AuditQuery())).lines) == 7
        shutil.copy(path, tmp_path / "without_wal.db")  # as a crash leaves it, if somebody then removes the -wal
    shutil.copy(tmp_path / "without_wal.db", path)
    with caplog.at_level(logging.ERROR):
        async with Grove(stored(path)) as grove:
            proof = await grove.audit_log.verify()
    assert "The audit log ends at record 3, and once had 7" in caplog.text
    assert [(one.number, one.after, one.lost) for one in proof.breaks] == [(8, 3, 7)]


def reader_of(path: Path) -> Notary:
    one = Notary(key=path.with_name(f"{path.name}-key"), mark=path.with_name(f"{path.name}-head"))
    one.read()
    return one


async def test_a_store_that_went_its_own_way_never_mixes_with_the_copy_of_another(tmp_path: Path) -> None:
    path, log = tmp_path / "grove.db", tmp_path / "audit.jsonl"
    async with Grove(stored(path)) as grove:
        await calls(grove, 5)
    shutil.copy(path, tmp_path / "backup.db")
    async with Grove(stored(path, auditLog=str(log))) as grove:
        await calls(grove, 5)
    shutil.copy(tmp_path / "backup.db", path)
    (tmp_path / "grove.db-head").unlink()
    async with Grove(stored(path)) as grove:
        await calls(grove, 9)
    async with Grove(stored(path, auditLog=str(log))) as grove:
        await calls(grove, 1)
        proof = await grove.audit_log.verify()
    assert (proof.breach, [(one.number, one.after, one.lost) for one in proof.breaks]) == (None, [(15, 14, 14)])
    assert numbers(log) == [*range(1, 11), 15, 16]


async def test_a_store_that_was_put_back_is_noticed_without_a_copy_as_well(tmp_path: Path) -> None:
    path = await a_store(tmp_path, 3)
    shutil.copy(path, tmp_path / "backup.db")
    await a_store(tmp_path, 3)
    shutil.copy(tmp_path / "backup.db", path)
    assert (await SqliteAuditLog(path, reader(tmp_path)).verify()).breach is not None
    await a_store(tmp_path, 1)
    proof = await SqliteAuditLog(path, reader(tmp_path)).verify()
    assert (proof.breach, [(one.number, one.lost) for one in proof.breaks]) == (None, [(7, 6)])


async def test_a_log_file_that_lost_its_end_goes_on_with_a_marked_break(tmp_path: Path) -> None:
    log = await a_log(tmp_path, 6)
    left = log.read_text().splitlines(keepends=True)[:4]
    signed = max((number for number, line in enumerate(left, 1) if '"seal"' in line), default=0)
    log.write_text("".join(left))
    await a_log(tmp_path, 1)
    assert numbers(log) == [1, 2, 3, 4, 7, 8]
    proof = await AuditFile(log, reader(tmp_path)).verify()
    assert (proof.breach, [(one.number, one.after, one.lost) for one in proof.breaks]) == (None, [(7, 4, 6)])
    which = f"records {signed + 1} to 4" if signed < 3 else "record 4"
    assert (proof.whole, proof.unchecked) == (None, (f"{which}, which no seal of this key covers",))


async def test_a_copy_that_was_cut_is_found_though_the_store_is_whole(tmp_path: Path) -> None:
    path, log = tmp_path / "grove.db", tmp_path / "audit.jsonl"
    async with Grove(stored(path, auditLog=str(log))) as grove:
        await calls(grove, 4)
    lines = log.read_text().splitlines(keepends=True)
    for kept in (lines[:3], lines[1:], []):
        log.write_text("".join(kept))
        breach = (await SqliteAuditLog(path, reader_of(path), copies=[log]).verify()).breach
        assert breach is not None
        assert breach.file == "audit.jsonl"


async def test_a_file_that_is_moved_away_goes_on_in_a_new_one_that_names_its_head(tmp_path: Path) -> None:
    path, keeper, scribe = tmp_path / "audit.jsonl", notary(tmp_path), Scribe()
    journal = MemoryJournal(ManualClock(), sinks=[JsonLines(path, keeper)], notary=keeper)
    await journal.open()
    await journal.append(scribe.audit())
    await journal.append(scribe.audit())
    path.rename(tmp_path / "audit.1.jsonl")
    await journal.append(scribe.audit())
    await journal.close()
    path.rename(tmp_path / "audit.2.jsonl")
    await a_log(tmp_path, 1)
    for name, first, removed in (("audit.1.jsonl", 1, 0), ("audit.2.jsonl", 3, 2), ("audit.jsonl", 4, 3)):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
        proof = AuditFile(tmp_path / name, reader(tmp_path)).prove([], is_sealed=True)
        assert (proof.breach, proof.first, proof.removed) == (None, first, removed)
    heading, record, signature = (tmp_path / "audit.2.jsonl").read_text().splitlines(keepends=True)
    head = json.loads((tmp_path / "audit.1.jsonl").read_text().splitlines()[1])
    assert json.loads(heading)["goesOnFrom"] == {"number": 2, "hash": head["hash"]}
    path.write_text(record + signature)
    assert AuditFile(path, reader(tmp_path)).prove([], is_sealed=True).breach is not None
    path.write_text(heading.replace('"seal":"', '"seal":"0') + record + signature)
    breach = AuditFile(path, reader(tmp_path)).prove([], is_sealed=True).breach
    assert breach is not None
    assert "was altered" in breach.problem


async def test_of_two_values_under_one_name_a_record_has_the_sealed_one(tmp_path: Path) -> None:
    log = await a_log(tmp_path, 2)
    log.write_text(log.read_text().replace('"}\n', '","agent":"bob"}\n', 1))
    breach = (await AuditFile(log, reader(tmp_path)).verify()).breach
    assert breach is not None
    assert breach.problem == "the record was altered"


async def test_the_key_is_private_and_stands_outside_of_what_it_seals(tmp_path: Path) -> None:
    project = tmp_path / "toolgrove.yaml"
    project.write_text("workspace: {store: 'sqlite:data/grove.db'}\n")
    async with Grove(Config.load(project)):
        key = tmp_path / ".toolgrove" / "audit.key"
        assert key.stat().st_mode & 0o777 == 0o600
        assert key.read_bytes().strip() not in (tmp_path / "data" / "grove.db").read_bytes()
        assert (tmp_path / ".toolgrove" / "grove.db.head").stat().st_mode & 0o777 == 0o600


async def test_a_key_may_come_from_elsewhere_and_is_never_written_into_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = stored(tmp_path / "grove.db", auditKey="${env:GROVE_AUDIT_KEY}")
    with pytest.raises(StoreUnusable, match="GROVE_AUDIT_KEY"):
        await Grove(settings).__aenter__()
    monkeypatch.setenv("GROVE_AUDIT_KEY", "short")
    with pytest.raises(StoreUnusable, match="shorter than 16"):
        await Grove(settings).__aenter__()
    monkeypatch.setenv("GROVE_AUDIT_KEY", "a long and random key of this machine")
    async with Grove(settings) as grove:
        await calls(grove, 1)
        assert (await grove.audit_log.verify()).sealed_from == 1
    assert not (tmp_path / "grove.db-key").exists()
    with pytest.raises(ValueError, match="auditKey"):
        config(workspace={"store": f"sqlite:{tmp_path / 'grove.db'}", "auditKey": "a literal key of this machine"})


SIGNING = """
import asyncio, sys, threading
from toolgrove import Config, Grove

class Watch:
    loaded = set()
    def find_spec(self, name, path=None, target=None):
        if name.startswith("cryptography"):
            self.loaded.add(threading.current_thread() is threading.main_thread())

async def day():
    form = {"agents": {"ann": {"tools": ["*"]}}, "workspace": {"auditLog": sys.argv[1]}}
    async with Grove(Config.model_validate(form)) as grove:
        ann = await grove.agent("ann")
        while not Watch.loaded or (await grove.audit_log.verify()).whole is not True:
            await ann.call("get_node", {"nodeId": "root"})

assert "cryptography" not in sys.modules
sys.meta_path.insert(0, Watch())
asyncio.run(day())
print(*Watch.loaded)
"""


@pytest.mark.cold
def test_what_it_takes_to_sign_a_log_file_is_not_loaded_where_calls_are_answered(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SIGNING, str(tmp_path / "audit.jsonl")]
    for _ in range(2):  # a new log, and one that goes on
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert (ended.stdout, ended.stderr) == ("False\n", "")
