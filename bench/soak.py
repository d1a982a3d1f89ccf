"""`python -m bench.soak [SECONDS] [--warm-up CALLS]`: does the gateway grow while it only goes on working?

Ten minutes unless told. `toolgrove serve` with a SQLite store, tokens and four agents, two of each protocol era, that
read, write with idempotency keys, undo by hand what they wrote, and are refused, 30 times a second. What it may fill by
design, such as the last 10,000 audit records in memory, is filled first; with a shorter warm-up that counts as growth.
The growth since then is the difference of the medians of the first and the last tenth of the samples; the limit is
1 MB. Exits with 1 beyond it, or when a call was answered wrongly.
"""

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bench.crowd import Client
from bench.gates import Ours
from bench.pool import LOGS, running
from bench.wire import LEGACY, MODERN

SECONDS = 600.0
LIMIT = 1.0
PACE = 30.0
AGENTS = 4
WARM_UP = 40_000
"""Calls: the ring of audit records in memory is full by then, and so are SQLite's caches."""
HISTORY = 500
"""Commits that undo remembers, so that they are all there after the warm-up."""
SAMPLES = 100


def project(folder: Path) -> dict[str, Any]:
    agents = {f"a{number}": {"role": "editor", "tools": ["*"]} for number in range(AGENTS)}
    workspace = {"store": f"sqlite:{folder}/grove.db", "concurrency": "node", "limits": {"history": HISTORY}}
    return {"workspace": workspace, "agents": agents}


class Worker:
    """One agent that leaves the tree as large as it found it."""

    def __init__(self, name: str, client: Client) -> None:
        self._name, self._client = name, client
        self._keys = itertools.count()
        self._version = self._added = self._home = ""
        self._steps = self._cycle()
        self.wrong: list[str] = []

    async def settle(self) -> None:
        """Have a node of its own, so that nobody else makes its versions stale."""
        await self.step()
        await self.step()
        self._home = self._added
        self._steps = self._cycle()

    async def step(self) -> None:
        """The next call."""
        tool, arguments, expected = next(self._steps)
        answer = await self._client.call(tool, arguments)
        if answer.get("error", {}).get("code", "") != expected:
            self.wrong.append(f"{tool}: {str(answer)[:200]}")
        self._version = answer.get("version", self._version)
        if tool == "add_child":
            self._added = answer.get("nodeId", "")

    def _cycle(self) -> Iterator[tuple[str, dict[str, Any], str]]:
        while True:
            home = self._home or "root"
            yield "get_node", {"nodeId": home}, ""
            key = f"{self._name}-{next(self._keys)}"
            payload = {"payloadType": "T", "payloadProps": {"name": key, "note": "x" * 200}}
            yield (
                "add_child",
                {"parentNodeId": home, **payload, "idempotencyKey": key, "versionToken": self._version},
                "",
            )
            yield "list_children", {"nodeId": home}, ""
            yield "get_node", {"nodeId": f"nobody-{key}"}, "not_found"
            yield "remove_node", {"nodeId": self._added, "versionToken": self._version}, ""


async def soak(ours: Ours, seconds: float, warm_up: int) -> tuple[list[float], list[str]]:
    """The megabytes of the gateway from the end of the warm-up on, and what was answered wrongly."""
    async with AsyncExitStack() as stack:
        names = [f"a{number}" for number in range(AGENTS)]
        eras = itertools.cycle((MODERN, LEGACY))
        ways = [partial(ours.connect, era, name) for era, name in zip(eras, names, strict=False)]
        clients = [await stack.enter_async_context(Client(way)) for way in ways]
        workers = [Worker(name, client) for name, client in zip(names, clients, strict=True)]
        for worker in workers:
            await worker.settle()
        await asyncio.gather(*(_hurry(worker, warm_up // AGENTS) for worker in workers))
        samples = [ours.megabytes]
        end = time.monotonic() + seconds
        pacing = [asyncio.create_task(_stroll(worker, end)) for worker in workers]
        while time.monotonic() < end:
            await asyncio.sleep(seconds / SAMPLES)
            samples.append(ours.megabytes)
        await asyncio.gather(*pacing)
    return samples, [problem for worker in workers for problem in worker.wrong]


async def _hurry(worker: Worker, calls: int) -> None:
    for _ in range(calls):
        await worker.step()


async def _stroll(worker: Worker, end: float) -> None:
    at = time.monotonic()
    while at < end:
        await worker.step()
        at += AGENTS / PACE
        await asyncio.sleep(max(0.0, at - time.monotonic()))


def growth(samples: list[float]) -> float:
    """How many megabytes the last tenth is above the first."""
    part = max(1, len(samples) // 10)
    return statistics.median(samples[-part:]) - statistics.median(samples[:part])


def main() -> int:
    parser = argparse.ArgumentParser(description="Does the gateway grow while it only goes on working?")
    parser.add_argument("seconds", nargs="?", type=float, default=SECONDS, help=f"how long ({SECONDS:g})")
    parser.add_argument(
        "--warm-up", type=int, default=WARM_UP, metavar="CALLS", help=f"calls before that ({WARM_UP:,})"
    )
    chosen = parser.parse_args()
    seconds: float = chosen.seconds
    LOGS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours("soak", Path(folder), project(Path(folder)))
        with running(ours):
            samples, wrong = asyncio.run(soak(ours, seconds, chosen.warm_up))
    for at in range(0, len(samples), max(1, len(samples) // 10)):
        print(f"{at * seconds / SAMPLES:7.0f} s  {samples[at]:7.1f} MB")
    grown = growth(samples)
    verdict = "within" if grown <= LIMIT else "beyond"
    print(f"growth after warm-up: {grown:+.2f} MB in {seconds:g} s, {verdict} the limit of {LIMIT:g} MB")
    for problem in wrong[:5]:
        print(f"wrong answer: {problem}")
    return int(grown > LIMIT or bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
