"""Changes that were run again because the other replica was quicker: writers that stay at one of two replicas, and
writers that go from one to the other with each change."""

import asyncio
import time
import urllib.request
from collections.abc import Sequence
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
    overtaken: int = 0
    reruns: float = 0.0
    seconds: float = 0.0


RACES = {"node": ("node", 16, False), "tree": ("tree", 16, False), "node, bouncing": ("node", 12, True)}
"""Under each name: the concurrency, how many writers, and whether they change the replica with each change."""


def races(report: Report, setting: Setting) -> None:
    table = report.table("Writers at two replicas, each at a node of its own, without a pause")
    for name, (mode, count, bouncing) in RACES.items():
        say(f"{count} writers at two replicas: {name}")
        with replicas(setting, f"race-{mode}-{count}", 2, concurrency=mode) as gates:
            before = sum(map(reruns, gates))
            race = asyncio.run(run(gates, AGENTS[:count], setting.effort.seconds, bouncing=bouncing))
            race.reruns = sum(map(reruns, gates)) - before
        done = len(race.latencies)
        table.add(f"`{name}`, {count} writers: re-runs per write", {"two": race.reruns / done})
        table.add("… conflicts that a writer was told of, per write", {"two": race.conflicts / done})
        table.add("… refused as overtaken", {"two": race.overtaken})
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


async def run(gates: list[Ours], agents: Sequence[str], seconds: float, *, bouncing: bool) -> Race:
    """All writers until the time is over; one that is told of a conflict takes the latest version and tries again."""
    race = Race()
    async with AsyncExitStack() as stack:
        writers = []
        for number, agent in enumerate(agents):
            own = gates if bouncing else [gates[number % len(gates)]]
            connects = [partial(gate.connect, MODERN, agent) for gate in own]
            clients = [await stack.enter_async_context(Client(connect)) for connect in connects]
            writers.append((clients, await planted(race, clients[0])))
        begun = time.perf_counter()
        await asyncio.gather(*(write(race, *writer, begun + seconds) for writer in writers))
        race.seconds = time.perf_counter() - begun
    return race


async def planted(race: Race, client: Client) -> str:
    """A node of the writer's own."""
    form = {"parentNodeId": "root", "payloadType": "T", "payloadProps": PAYLOAD}
    version = (await client.call("get_node", {"nodeId": "root"}))["version"]
    return str((await changed(race, client, "add_child", form, version))["nodeId"])


async def write(race: Race, clients: Sequence[Client], node: str, end: float) -> None:
    version, count = "", 0
    while (begun := time.perf_counter()) < end:
        client = clients[count % len(clients)]
        count += 1
        change = {"nodeId": node, "propertyName": "size", "newValue": count}
        if not version:
            version = (await client.call("get_node", {"nodeId": node}))["version"]
        version = (await changed(race, client, "update_payload_property", change, version))["version"]
        race.latencies.append((time.perf_counter() - begun) * 1000)


async def changed(race: Race, client: Client, tool: str, form: dict[str, Any], version: str) -> dict[str, Any]:
    """The answer to a change, once it succeeded."""
    while True:
        answer = await client.call(tool, {**form, "versionToken": version})
        refused = answer.get("error")
        if refused is None:
            return answer
        if refused["code"] != "conflict":
            raise WrongAnswer(f"a writer was told {refused}")
        race.conflicts += 1
        race.overtaken += refused.get("reason") == "overtaken"
        version = refused.get("latestVersion", version)
