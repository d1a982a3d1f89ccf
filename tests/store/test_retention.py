"""Audit records that have become too old leave the store, and what stays still proves itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from grove_kit import ManualClock
from toolgrove import Config, Grove
from toolgrove.store.audit import AuditQuery, JsonLines, Sealed

pytestmark = pytest.mark.anyio
DAY = 86_400


def keeping(path: Path, days: int | None) -> Config:
    workspace = {"store": f"sqlite:{path}", "auditDays": days}
    return Config.model_validate({"agents": {"ann": {"role": "editor", "tools": ["*"]}}, "workspace": workspace})


async def read(grove: Grove, times: int = 1) -> None:
    ann = await grove.agent("ann")
    for _ in range(times):
        assert "error" not in await ann.call("get_node", {"nodeId": "root"})


async def numbers(grove: Grove) -> list[int]:
    return [record["number"] for record in (await grove.audit_log.records(AuditQuery(limit=10_000))).records]


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


async def test_without_a_number_of_days_none_ever_goes(tmp_path: Path) -> None:
    clock = ManualClock()
    async with Grove(keeping(tmp_path / "grove.db", None), clock=clock) as grove:
        await read(grove)
        clock.now += 10_000 * DAY
        await read(grove)
        assert await numbers(grove) == [1, 2]


async def test_many_go_in_parts_with_the_calls_that_follow(tmp_path: Path) -> None:
    clock = ManualClock()
    async with Grove(keeping(tmp_path / "grove.db", 1), clock=clock) as grove:
        await read(grove, 2_500)
        assert len(await numbers(grove)) == 2_500
        clock.now += 2 * DAY
        left = []
        for _ in range(4):
            await read(grove)
            left.append(len(await numbers(grove)))
            assert (await grove.audit_log.verify()).breach is None
        assert left == [1_501, 502, 3, 4]


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
    with pytest.raises(ValueError, match="auditDays needs a store of 'sqlite:'"):
        Config.model_validate({"workspace": {"auditDays": 30}})
