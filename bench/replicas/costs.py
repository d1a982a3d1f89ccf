"""What a change costs the database and a replica that follows, and what that means for ten and a hundred replicas."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from bench.gateway import Lane, write
from bench.measure import percentile
from bench.pool import tree_cpu
from bench.replicas.fleet import AGENTS, Setting, replicas
from bench.replicas.simulation import Costs, Simulation, most_changes
from bench.report import Report, say
from store_kit import Scribe
from toolgrove.store.journal import JournalEntry
from toolgrove.store.journal.postgres.journal import PostgresJournal
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.types import SystemClock

GROUP = 16
COUNTS = {"two": 2, "ten": 10, "hundred": 100}
CALM = 20.0
"""Changes per second of all agents together, in the simulation of an ordinary day."""


def costs(report: Report, setting: Setting) -> None:
    say("what a change costs")
    one, many = asyncio.run(transactions(setting))
    entry = max(0.0, (many - one) / (GROUP - 1))
    followed, database = following(setting)
    figures = setting.figures
    measured = Costs(
        transaction=one / 1000,
        entry=max(entry, 0.01) / 1000,
        notice=figures.get("notice", 5.0) / 1000,
        follow=followed / 1000,
        read=figures.get("read", 0.4) / 1000,
        change=figures.get("change", 1.0) / 1000,
    )
    table = report.table("What a change costs, milliseconds")
    table.add("a transaction of one change, which holds the head", {"postgres": one})
    table.add("… and for each further change in it", {"postgres": entry})
    table.add("CPU of the database, for each change", {"postgres": database})
    table.add("CPU of each replica that takes it over", {"two": followed})
    simulated(report, measured)


def simulated(report: Report, measured: Costs) -> None:
    say("ten and a hundred replicas, simulated")
    calm = {name: Simulation(measured, count, CALM, reading=True).run(20) for name, count in COUNTS.items()}
    most = {name: most_changes(measured, count, reading=False) for name, count in COUNTS.items()}
    table = report.table("Replicas, SIMULATED from these costs (assumptions: bench/replicas/simulation.py)")
    table.add("reads/s, on cores of their own", {name: count / measured.read for name, count in COUNTS.items()})
    table.add(
        f"reads everywhere and {CALM:.0f} changes/s: % of the time the head is held",
        {name: 100 * each.head for name, each in calm.items()},
    )
    table.add("… re-runs per change", {name: each.reruns for name, each in calm.items()})
    table.add("… ms of a change, p99", {name: 1000 * each.p99 for name, each in calm.items()})
    table.add(
        "changes/s at most, 99 % of them within 500 ms, no reads", {name: each.kept / 10 for name, each in most.items()}
    )
    table.add("… re-runs per change", {name: each.reruns for name, each in most.items()})
    table.add("… % of each replica's core to follow", {name: 100 * each.follow for name, each in most.items()})


@asynccontextmanager
async def opened(setting: Setting) -> AsyncIterator[PostgresJournal]:
    journal = PostgresJournal(DatabaseAddress.of(setting.database.fresh()), SystemClock())
    await journal.open()
    try:
        yield journal
    finally:
        await journal.close()


async def transactions(setting: Setting) -> tuple[float, float]:
    """Milliseconds of a transaction of one entry, and of one with sixteen; of the best quarter."""
    scribe = Scribe()
    async with opened(setting) as journal:

        async def group(count: int) -> float:
            entries = [JournalEntry(audit=scribe.audit().audit, durable=True) for _ in range(count)]
            begun = time.perf_counter()
            await asyncio.gather(*map(journal.append, entries))
            return (time.perf_counter() - begun) * 1000

        one = [await group(1) for _ in range(setting.effort.changes)]
        many = [await group(GROUP) for _ in range(setting.effort.changes)]
    return percentile(one, 25), percentile(many, 25)


def following(setting: Setting) -> tuple[float, float]:
    """Milliseconds of CPU for each change at another replica, and of the database's, beside what it does idle."""
    with replicas(setting, "following", 2) as (one, two):
        lanes = [Lane(one, agent) for agent in AGENTS]
        write(lanes, 1.0)
        idle, _, began = tree_cpu(two.pid), setting.database_cpu, time.monotonic()
        time.sleep(2)
        per_second = (tree_cpu(two.pid) - idle) / (time.monotonic() - began)
        before, base = tree_cpu(two.pid), setting.database_cpu
        done = partial(write, lanes, setting.effort.seconds)()
        spent = tree_cpu(two.pid) - before - per_second * done.seconds
        database = setting.database_cpu - base
    count = len(done.latencies)
    return max(0.0, 1000 * spent / count), 1000 * database / count
