"""Audit records that have become too old leave the store, and what stays still proves itself."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient

from grove_kit import ManualClock
from toolgrove import Config, Grove
from toolgrove.store.audit import AuditFile, AuditQuery, JsonLines, Notary, Sealed

pytestmark = pytest.mark.anyio
DAY = 86_400


def keeping(path: Path, days: int | str | None, **more: Any) -> Config:
    workspace = {"store": f"sqlite:{path}", "auditDays": days, **more}
    return Config.model_validate({"agents": {"ann": {"role": "editor", "tools": ["*"]}}, "workspace": workspace})


async def read(grove: Grove, times: int = 1) -> None:
    ann = await grove.agent("ann")
    for _ in range(times):
        assert "error" not in await ann.call("get_node", {"nodeId": "root"})


async def numbers(grove: Grove) -> list[int]:
    return [record["number"] for record in (await grove.audit_log.records(AuditQuery(limit=10_000))).records]


def reader_of(path: Path) -> Notary:
    one = Notary(key=path.with_name(f"{path.name}-key"), mark=path.with_name(f"{path.name}-head"))
    one.read()
    return one


async def test_records_go_when_they_are_old_and_the_rest_holds(tmp_path: Path) -> None:
    clock = ManualClock()
    async with Grove(keeping(tmp_path / "grove.db", 2), clock=clock) as grove:
        await read(grove, 3)
        assert await numbers(grove) == [1, 2, 3]
        clock.now += DAY
        await read(grove, 2)
        assert await numbers(grove) == [1, 2, 3, 4, 5]
        clock.now += DAY + 1
        await read(grove)
        assert await numbers(grove) == [4, 5, 6]
        assert (await grove.audit_log.verify()).breach is None
    async with Grove(keeping(tmp_path / "grove.db", 2), clock=clock) as grove:
        assert (await grove.audit_log.verify()).breach is None
        clock.now += 10 * DAY
        await read(grove)
        assert await numbers(grove) == [7]
        assert (await grove.audit_log.verify()).breach is None


async def test_where_all_are_wanted_none_ever_goes(tmp_path: Path) -> None:
    clock = ManualClock()
    async with Grove(keeping(tmp_path / "grove.db", "forever"), clock=clock) as grove:
        await read(grove)
        clock.now += 10_000 * DAY
        await read(grove)
        assert await numbers(grove) == [1, 2]


async def test_a_new_store_keeps_them_for_ninety_days_unless_told_otherwise(tmp_path: Path) -> None:
    clock = ManualClock()
    async with Grove(keeping(tmp_path / "grove.db", None), clock=clock) as grove:
        await read(grove)
        clock.now += 90 * DAY
        await read(grove)
        assert await numbers(grove) == [1, 2]
        clock.now += 61
        await read(grove)
        assert await numbers(grove) == [2, 3]
    async with Grove(keeping(tmp_path / "grove.db", None), clock=clock) as grove:  # it is a matter of the store
        clock.now += 91 * DAY
        await read(grove)
        assert await numbers(grove) == [4]


def archived(path: Path) -> list[int]:
    return [record["number"] for record in map(json.loads, path.read_text().splitlines()) if "number" in record]


async def test_what_leaves_the_store_is_in_the_archive_first_with_its_seals(tmp_path: Path) -> None:
    clock, archive = ManualClock(), tmp_path / "grove.db-archive.jsonl"
    config = keeping(tmp_path / "grove.db", 1)
    for _ in range(2):
        async with Grove(config, clock=clock) as grove:
            await read(grove, 2)
            clock.now += 2 * DAY
            await read(grove)
            clock.now += 2 * DAY
            assert (await grove.audit_log.verify()).breach is None
    assert archived(archive) == [1, 2, 3, 4, 5]
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    proof = AuditFile(archive, reader_of(tmp_path / "grove.db")).prove([], is_sealed=True)
    assert (proof.breach, proof.first, proof.last, proof.sealed_from) == (None, 1, 5, 1)
    assert json.loads(archive.read_text().splitlines()[0])["arguments"] == {"nodeId": "root"}
    archive.write_text(archive.read_text().replace('"ann"', '"bob"', 1))
    async with Grove(config, clock=clock) as grove:
        breach = (await grove.audit_log.verify()).breach
        assert breach is not None
        assert (breach.file, breach.number) == (archive.name, 0)


async def test_an_archive_that_is_moved_away_begins_anew_and_says_where(tmp_path: Path) -> None:
    clock, archive = ManualClock(), tmp_path / "old.jsonl"
    async with Grove(keeping(tmp_path / "grove.db", 1, auditArchive=str(archive)), clock=clock) as grove:
        for _ in range(2):
            await read(grove, 2)
            clock.now += 2 * DAY
            await read(grove)
            assert (await numbers(grove))[-1] in (3, 6)
            clock.now += 61
            if not (tmp_path / "2026.jsonl").exists():
                archive.rename(tmp_path / "2026.jsonl")
        assert (await grove.audit_log.verify()).breach is None
    assert (archived(tmp_path / "2026.jsonl"), archived(archive)) == ([1, 2], [3, 4, 5])
    assert json.loads(archive.read_text().splitlines()[0])["goesOnFrom"]["number"] == 2
    proof = AuditFile(archive, reader_of(tmp_path / "grove.db")).prove([], is_sealed=True)
    assert (proof.breach, proof.first, proof.removed) == (None, 3, 2)


async def test_a_record_stays_until_the_archive_can_take_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock, folder = ManualClock(), tmp_path / "archive"
    config = keeping(tmp_path / "grove.db", 1, auditArchive=str(folder / "old.jsonl"))
    async with Grove(config, clock=clock) as grove:
        await read(grove, 2)
        for _ in range(2):
            clock.now += 2 * DAY
            await read(grove)
            await numbers(grove)
        assert await numbers(grove) == [1, 2, 3, 4]
        assert len([one for one in caplog.messages if "Old audit records stay in the store" in one]) == 1
        folder.mkdir()
        clock.now += 61
        await read(grove)
        assert await numbers(grove) == [4, 5]
        assert archived(folder / "old.jsonl") == [1, 2, 3]


async def test_what_a_crash_archived_but_did_not_take_out_is_archived_once(tmp_path: Path) -> None:
    clock, archive = ManualClock(), tmp_path / "grove.db-archive.jsonl"
    config = keeping(tmp_path / "grove.db", 1)
    async with Grove(config, clock=clock) as grove:
        await read(grove, 4)
    shutil.copy(tmp_path / "grove.db", tmp_path / "before.db")
    clock.now += 2 * DAY
    async with Grove(config, clock=clock) as grove:
        await read(grove)
    assert archived(archive) == [1, 2, 3, 4]
    shutil.copy(tmp_path / "before.db", tmp_path / "grove.db")  # the transaction that took them out did not happen
    (tmp_path / "grove.db-head").unlink()
    with archive.open("a") as file:
        file.write('{"number":5,"timest')
    async with Grove(config, clock=clock) as grove:
        await read(grove, 2)
        assert await numbers(grove) == [5, 6]
        assert (await grove.audit_log.verify()).breach is None
    assert archived(archive) == [1, 2, 3, 4]


async def test_without_an_archive_they_go_for_good(tmp_path: Path) -> None:
    clock = ManualClock()
    async with Grove(keeping(tmp_path / "grove.db", 1, auditArchive=False), clock=clock) as grove:
        await read(grove)
        clock.now += 2 * DAY
        await read(grove)
        assert await numbers(grove) == [2]
    assert not list(tmp_path.glob("*archive*"))


class SetClock(ManualClock):
    """A wall clock that somebody sets."""

    off = 0.0

    def wall(self) -> float:
        return super().wall() + self.off


async def test_one_record_from_a_clock_that_was_set_back_takes_no_others_along(tmp_path: Path) -> None:
    clock = SetClock()
    async with Grove(keeping(tmp_path / "grove.db", 30), clock=clock) as grove:
        for clock.off in (0, 0, -1_000 * DAY, 0):
            await read(grove)
        clock.now += DAY
        await read(grove)
        assert await numbers(grove) == [1, 2, 3, 4, 5]


async def test_one_record_from_a_clock_that_ran_a_little_ahead_does_not_stop_the_others(tmp_path: Path) -> None:
    clock = SetClock()
    async with Grove(keeping(tmp_path / "grove.db", 30), clock=clock) as grove:
        for clock.off in (0, 20 * DAY, 0, 0):
            await read(grove)
        clock.now += 31 * DAY  # the second looks eleven days old
        await read(grove)
        assert await numbers(grove) == [5]


async def test_the_room_of_old_records_goes_back_to_the_disk(tmp_path: Path) -> None:
    clock, path = ManualClock(), tmp_path / "grove.db"
    config = keeping(path, 1)
    async with Grove(config, clock=clock) as grove:
        ann = await grove.agent("ann")
        for _ in range(1_000):
            await ann.call("get_node", {"nodeId": "x" * 8_000})
    full = path.stat().st_size
    async with Grove(config, clock=clock) as grove:
        for _ in range(60):
            clock.now += 2 * DAY
            await read(grove)
            await numbers(grove)
    assert path.stat().st_size < full / 2


@pytest.mark.parametrize("seed", range(2))
async def test_no_call_carries_more_than_a_few_of_a_backlog_and_all_of_it_leaves(tmp_path: Path, seed: int) -> None:
    pick, clock, archive = random.Random(seed), ManualClock(), tmp_path / "grove.db-archive.jsonl"
    config = keeping(tmp_path / "grove.db", 1)
    async with Grove(config, clock=clock) as grove:
        ann = await grove.agent("ann")
        for _ in range(700):
            size = pick.choice((1, 1, 1, 100, 7_000))
            await ann.call("get_node", {"nodeId": "x" * size, "view": "y"})
        assert len(await numbers(grove)) == 700
        clock.now += 2 * DAY
        first, size = 1, 0
        while first <= 600:
            await read(grove)
            before, (first, *_) = first, await numbers(grove)
            assert 1 <= first - before <= 200
            grown, size = archive.stat().st_size - size, archive.stat().st_size
            assert grown <= 400 * 1024, "that is what a disk takes in a moment"
            assert (await grove.audit_log.verify()).breach is None
        for _ in range(5):
            await read(grove)
        assert (await numbers(grove))[0] == 701
    assert archived(archive) == list(range(1, 701))


async def test_a_beginning_that_somebody_cut_off_is_noticed(tmp_path: Path) -> None:
    async with Grove(keeping(tmp_path / "grove.db", 1), clock=ManualClock()) as grove:
        await read(grove, 3)
        assert await numbers(grove) == [1, 2, 3]
        with closing(sqlite3.connect(tmp_path / "grove.db")) as connection:
            connection.execute("DELETE FROM audit WHERE number = 1")
            connection.commit()
        breach = (await grove.audit_log.verify()).breach
        assert breach is not None
        assert (breach.number, breach.problem) == (0, "records before it are missing")


class Full(JsonLines):
    """A log on a disk without room."""

    def write(self, sealed: Sealed) -> None:
        raise OSError("no room")


async def test_a_record_waits_for_its_copy(tmp_path: Path) -> None:
    clock = ManualClock()
    config = keeping(tmp_path / "grove.db", 1)
    async with Grove(config, clock=clock, audit_sinks=[Full(tmp_path / "log.jsonl")]) as grove:
        await read(grove, 2)
        assert await numbers(grove) == [1, 2]
        clock.now += 2 * DAY
        await read(grove)
        assert await numbers(grove) == [1, 2, 3]
    log = JsonLines(tmp_path / "log.jsonl")
    async with Grove(config, clock=clock, audit_sinks=[log]) as grove:
        await read(grove)
        assert await numbers(grove) == [3, 4]
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 4


def test_only_a_store_on_disk_takes_a_number_of_days() -> None:
    with pytest.raises(ValueError, match="auditDays needs a store that is kept"):
        Config.model_validate({"workspace": {"auditDays": 30}})


async def test_metrics_tell_how_far_a_store_has_grown_and_when_a_mark_is_passed(tmp_path: Path) -> None:
    config = keeping(tmp_path / "grove.db", 1, auditMark=2, diskMark=0)
    async with Grove(config, clock=ManualClock()) as grove:
        app = grove.asgi_app(anonymous=True)
        async with AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1") as http:
            for count, passed in ((2, 0), (4, 1)):
                await read(grove, 2)
                assert len(await numbers(grove)) == count
                told = (await http.get("/metrics")).text.splitlines()
                assert f"toolgrove_audit_records {count}.0" in told
                assert f'toolgrove_mark_passed{{mark="auditMark"}} {passed}.0' in told
                assert 'toolgrove_mark_passed{mark="diskMark"} 0.0' in told
                assert any(line.startswith("toolgrove_disk_free_bytes ") for line in told)
