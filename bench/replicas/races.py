"""Changes that were run again because the other replica was quicker, with sixteen writers at two replicas."""

import asyncio
import time
import urllib.request
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.crowd import Client
from bench.gates import Ours
from bench.measure import percentile
from bench.replicas.fleet import AGENTS, Setting, replicas
from bench.report import Report, say
from bench.store import PAYLOAD
from bench.wire import MODERN, WrongAnswer
from toolgrove.store.state import OPERATOR

COUNTER = "toolgrove_change_reruns_total "


@dataclass
class Race:
    """What became of the writers' changes."""

    latencies: list[float] = field(default_factory=list)
    conflicts: int = 0
    reruns: float = 0.0
    seconds: float = 0.0


def races(report: Report, setting: Setting) -> None:
    table = report.table(f"{len(AGENTS)} writers at two replicas, each at a node of its own, without a pause")
    for mode in ("node", "tree"):
        say(f"{len(AGENTS)} writers at two replicas, concurrency: {mode}")
        with replicas(setting, f"race-{mode}", 2, concurrency=mode) as gates:
            before = sum(map(reruns, gates))
            race = asyncio.run(run(gates, setting.effort.seconds))
            race.reruns = sum(map(reruns, gates)) - before
        done = len(race.latencies)
        table.add(f"`{mode}`: re-runs per write", {"two": race.reruns / done})
        table.add("… conflicts that a writer was told of, per write", {"two": race.conflicts / done})
        table.add("… writes/s", {"two": done / race.seconds})
        table.add("… ms, p50", {"two": percentile(race.latencies, 50)})
        table.add("… ms, p99", {"two": percentile(race.latencies, 99)})


def reruns(gate: Ours) -> float:
    """The counter of one replica."""
    asked = urllib.request.Request(f"http://127.0.0.1:{gate.port}/metrics")
    asked.add_header("Authorization", f"Bearer {gate.tokens[OPERATOR]}")
    with urllib.request.urlopen(asked, timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.removeprefix(COUNTER) for line in lines if line.startswith(COUNTER)))


async def run(gates: list[Ours], seconds: float) -> Race:
    """All writers until the time is over; one that is told of a conflict takes the latest version and tries again."""
    race = Race()
    async with AsyncExitStack() as stack:
        writers = []
        for number, agent in enumerate(AGENTS):
            connect = partial(gates[number % len(gates)].connect, MODERN, agent)
            client = await stack.enter_async_context(Client(connect))
            writers.append((client, await planted(client)))
        begun = time.perf_counter()
        await asyncio.gather(*(write(race, *writer, begun + seconds) for writer in writers))
        race.seconds = time.perf_counter() - begun
    return race


async def planted(client: Client) -> str:
    """A node of the writer's own."""
    form = {"parentNodeId": "root", "payloadType": "T", "payloadProps": PAYLOAD}
    version = (await client.call("get_node", {"nodeId": "root"}))["version"]
    return str((await changed(client, "add_child", form, version))[0]["nodeId"])


async def write(race: Race, client: Client, node: str, end: float) -> None:
    version, count = "", 0
    while (begun := time.perf_counter()) < end:
        count += 1
        change = {"nodeId": node, "propertyName": "size", "newValue": count}
        if not version:
            version = (await client.call("get_node", {"nodeId": node}))["version"]
        answer, conflicts = await changed(client, "update_payload_property", change, version)
        race.latencies.append((time.perf_counter() - begun) * 1000)
        race.conflicts += conflicts
        version = answer["version"]


async def changed(client: Client, tool: str, form: dict[str, Any], version: str) -> tuple[dict[str, Any], int]:
    """The answer to a change, and how many conflicts came before it."""
    conflicts = 0
    while True:
        answer = await client.call(tool, {**form, "versionToken": version})
        refused = answer.get("error")
        if refused is None:
            return answer, conflicts
        if refused["code"] != "conflict":
            raise WrongAnswer(f"a writer was told {refused}")
        conflicts += 1
        version = refused.get("latestVersion", version)
