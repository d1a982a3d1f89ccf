"""What durability costs: mutations per second beside the memory store and beside bare SQLite, and opening a large tree.

    python -m bench.store [--seconds N] [--nodes N] [--folder DIR]

The three are measured turn by turn in one run; what counts is the ratio. CPU time tells what one core could do if the
disk and other processes cost nothing; the sync of the disk bounds writers that wait for each answer.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from toolgrove import Config, Grove

WRITERS = 16
DEPTHS = (1, 8)
PAYLOAD = {"name": "Room", "size": 12, "status": "open", "note": "x" * 40, "price": 10.5}


def settings(store: str) -> Config:
    agents = {f"a{at}": {"role": "editor", "tools": ["*"]} for at in range(WRITERS)}
    return Config.model_validate({"agents": agents, "workspace": {"store": store, "concurrency": "node"}})


async def mutations(store: str, seconds: float, depth: int) -> tuple[float, float, float]:
    """Mutations per second, the median of one, and its CPU time, with so many calls of each writer in flight."""
    done, spent = 0, []
    async with Grove(settings(store)) as grove:
        end = 0.0

        async def write(agent: Any, node: str, version: str) -> None:
            nonlocal done
            at = 0
            while time.perf_counter() < end:
                at += 1
                start = time.perf_counter()
                answer = await agent.call(
                    "update_payload_property",
                    {"nodeId": node, "propertyName": "size", "newValue": at, "versionToken": version},
                )
                spent.append(time.perf_counter() - start)
                version = answer["version"]
                done += 1

        lanes = []
        for name in grove.config.agents:
            agent = await grove.agent(name)
            for _ in range(depth):
                version = (await agent.call("get_node", {"nodeId": "root"}))["version"]
                form = {"parentNodeId": "root", "payloadType": "T", "payloadProps": PAYLOAD, "versionToken": version}
                made = await agent.call("add_child", form)
                lanes.append((agent, made["nodeId"], made["version"]))
        start, used = time.perf_counter(), time.process_time()
        end = start + seconds
        await asyncio.gather(*(write(*lane) for lane in lanes))
        used = time.process_time() - used
        return done / (time.perf_counter() - start), statistics.median(spent), used / done


def bare(path: Path, seconds: float, group: int) -> float:
    """Rows per second of bare SQLite with the same settings and groups of the size that the writers make."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE entry (number INTEGER PRIMARY KEY, body TEXT)")
    done, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO entry (body) VALUES (?)", [("x" * 900,)] * group)
        connection.execute("COMMIT")
        done += group
    rate = done / (time.perf_counter() - start)
    connection.close()
    return rate


def sync(path: Path) -> float:
    """The median time of writing a page and waiting for the disk."""
    spent = []
    with path.open("wb", buffering=0) as file:
        for _ in range(100):
            start = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def report_mutations(folder: Path, seconds: float, rounds: int) -> None:
    print(f"\n## Durable mutations per second, {WRITERS} agents, p50 of {rounds} rounds\n")
    one = sync(folder / "sync")
    print(f"a sync takes {one * 1e3:.2f} ms: {WRITERS} that wait for it get at most {WRITERS / one:,.0f}/s")
    for depth in DEPTHS:
        rates: dict[str, list[float]] = {"memory": [], "sqlite": [], "bare SQLite": []}
        waits, cpu = [], []
        for at in range(rounds):
            rates["memory"].append(asyncio.run(mutations("memory", seconds, depth))[0])
            rate, wait, used = asyncio.run(mutations(f"sqlite:{folder}/m{depth}-{at}.db", seconds, depth))
            rates["sqlite"].append(rate)
            waits.append(wait)
            cpu.append(used)
            rates["bare SQLite"].append(bare(folder / f"b{depth}-{at}.db", seconds, WRITERS * depth))
        medians = {name: statistics.median(found) for name, found in rates.items()}
        took, used = statistics.median(waits) * 1e3, statistics.median(cpu) * 1e6
        print(f"{depth} call(s) of each agent in flight; a call takes {took:.1f} ms and {used:.0f} µs of CPU:")
        for name, rate in medians.items():
            print(f"  {name:12}{rate:10,.0f}/s   {rate / medians['bare SQLite']:6.2f} of bare SQLite")


async def planted(store: str, nodes: int) -> float:
    """Put so many nodes into a store; the seconds that the last import took."""
    begun = time.perf_counter()
    async with Grove(settings(store)) as grove:
        agent = await grove.agent("a0")
        for start in range(0, nodes, 10_000):
            items = [
                {
                    "nodeId": f"i{at}",
                    "parentId": f"i{(at - 1) // 10}" if at else "root",
                    "payloadType": "T",
                    "payload": {**PAYLOAD, "size": at},
                }
                for at in range(start, min(nodes, start + 10_000))
            ]
            version = (await agent.call("get_node", {"nodeId": "root"}))["version"]
            begun = time.perf_counter()
            answer = await agent.call(
                "import_merge", {"json": {"items": items}, "strategy": "upsert", "versionToken": version}
            )
            assert "error" not in answer, answer
        return time.perf_counter() - begun


async def opened(path: Path, rounds: int = 3) -> tuple[float, float]:
    """The seconds that opening a store takes, and its CPU time; medians."""
    spent = []
    for _ in range(rounds):
        begun, used = time.perf_counter(), time.process_time()
        async with Grove(settings(f"sqlite:{path}")):
            spent.append((time.perf_counter() - begun, time.process_time() - used))
    wall, cpu = (statistics.median(column) for column in zip(*spent, strict=True))
    return wall, cpu


async def opening(path: Path, nodes: int) -> None:
    print(f"\n## Opening a tree of {nodes:,} nodes\n")
    print(f"import of the last 10,000: {await planted(f'sqlite:{path}', nodes):.2f} s")
    wall, cpu = await opened(path)
    print(f"open: {wall:.2f} s, CPU {cpu:.2f} s, file {path.stat().st_size / 2**20:.1f} MiB")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=2.0)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--nodes", type=int, default=100_000)
    arguments.add_argument("--folder", type=Path, default=None, help="on the disk to be measured")
    chosen = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(dir=chosen.folder))
    try:
        asyncio.run(opening(folder / "large.db", chosen.nodes))
        report_mutations(folder, chosen.seconds, chosen.rounds)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
