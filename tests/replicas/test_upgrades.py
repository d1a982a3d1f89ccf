"""Replicas are upgraded one by one while clients write: this build, and the same build with one more schema step."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

import toolgrove
from replicas.fleet import Fleet, Replica
from replicas.writers import AGENTS, Writers, writing
from services.postgres import Postgres
from toolgrove.store.postgres.migrations import version
from waiting import DEADLINE, eventually

pytestmark = [pytest.mark.anyio, pytest.mark.services]
CLIENTS = AGENTS[:5]
ADDS = "CREATE TABLE novelty (id text PRIMARY KEY); ALTER TABLE bookmark ADD COLUMN novelty text"
FORBIDS = f"""
ALTER TABLE journal ADD COLUMN novelty text;
UPDATE head SET oldest = {version() + 1};
ALTER TABLE head ALTER COLUMN oldest SET DEFAULT {version() + 1}
"""


def next_version(folder: Path, step: str) -> Path:
    """The packages of this build, with one more step of the schema."""
    packages = Path(toolgrove.__file__).parents[1]
    source = shutil.copytree(packages, folder / "next", ignore=shutil.ignore_patterns("__pycache__"))
    beside = source / "toolgrove" / "store" / "postgres" / "migrations"
    (beside / f"{version() + 1:04}_novelty.sql").write_text(step)
    return source


def schema_of(fleet: Fleet, postgres: Postgres) -> list[tuple[object, ...]]:
    (schema,) = postgres.ask("SELECT nspname FROM pg_namespace WHERE nspname LIKE 't%' ORDER BY oid DESC LIMIT 1")
    return postgres.ask(f"SELECT max(number) FROM {schema[0]}.schema_steps")


async def stopped(fleet: Fleet, replica: Replica, writers: Writers) -> None:
    """End a replica as its operator does: unready first, then gone."""
    replica.signal()
    await fleet.until(replica, up=False)
    await writers.more(CLIENTS)
    replica.signal()
    assert await replica.ended() == 0


async def is_stopping(fleet: Fleet, replica: Replica) -> bool:
    return "stopping" in (await fleet.ready(replica))["troubles"]


async def begun(fleet: Fleet, replica: Replica, source: Path) -> None:
    replica.source = source
    await anyio.to_thread.run_sync(replica.start)
    await fleet.until(replica, up=True)


async def test_a_rolling_upgrade_fails_no_call(fleet: Fleet, postgres: Postgres, tmp_path: Path) -> None:
    newer = next_version(tmp_path, ADDS)
    with anyio.fail_after(3 * DEADLINE):
        async with writing(fleet, CLIENTS) as writers:
            for replica in fleet.replicas:
                assert schema_of(fleet, postgres) == [(version() + (replica is fleet.two),)]
                await stopped(fleet, replica, writers)
                await begun(fleet, replica, newer)
                await writers.more(CLIENTS)  # both versions write side by side
                assert [(await fleet.ready(one))["troubles"] for one in fleet.replicas] == [[], []]
        assert writers.broken == {}
        assert writers.refusals == []


async def test_a_replica_that_is_too_old_stops_writing_and_nothing_that_it_answered_is_lost(
    fleet: Fleet, tmp_path: Path
) -> None:
    newer = next_version(tmp_path, FORBIDS)
    with anyio.fail_after(3 * DEADLINE):
        async with writing(fleet, CLIENTS) as writers:
            await stopped(fleet, fleet.one, writers)
            await begun(fleet, fleet.one, newer)
            await eventually(partial(fleet.is_troubled_by, fleet.two, "version_outdated"))
            await fleet.until(fleet.two, up=False)
            await writers.more(CLIENTS)  # the new one goes on
            fleet.two.signal()
            await eventually(partial(is_stopping, fleet, fleet.two))
            fleet.two.signal()
            assert await fleet.two.ended() == 0
            await begun(fleet, fleet.two, newer)
            await writers.more(CLIENTS)
        assert writers.broken == {}
        assert {refusal["reason"] for refusal in writers.refusals} <= {"journal_unavailable"}
