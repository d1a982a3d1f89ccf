"""What a read costs with one replica and with two: whether the second is worth its core."""

import itertools
from functools import partial
from typing import Any

from bench.gates import Ours
from bench.gateway import connected, plant, reading, right_node
from bench.measure import Round, interleaved
from bench.replicas.fleet import Setting, replicas
from bench.report import Report, say
from bench.wire import MODERN, Connection, drive

NODES = 1_000
READERS = 16
MOST = 1.15
TWICE = 2.0


def reads(report: Report, setting: Setting) -> None:
    """`get_node` by sixteen connections, at one replica of a project with one, and spread over two of another."""
    numbers = itertools.count()

    def make() -> dict[str, Any]:
        return reading(f"i{next(numbers) % NODES}")

    with replicas(setting, "alone", 1) as alone, replicas(setting, "both", 2) as both:
        for gates in (alone, both):
            plant(gates[0], NODES)
        fleets = {"one": alone, "two": both}
        spent = dict.fromkeys(fleets, 0.0)

        def measure(name: str) -> Round:
            before = setting.database_cpu
            done = _read(fleets[name], make, setting.effort.slice)
            spent[name] += setting.database_cpu - before
            return done

        say("get_node at one replica and at two")
        found = interleaved(fleets, measure, rounds=setting.effort.rounds, budget=setting.effort.budget)
    cpu = {name: each.cpu for name, each in found.items()}
    setting.figures["read"] = cpu["two"]
    ratio = cpu["two"] / cpu["one"]
    table = report.table("`get_node` by 16 connections, on PostgreSQL (ratio of two replicas to one)")
    table.add("ms of the gateways' CPU per read", dict(cpu), ratio=ratio, target=f"≤ {MOST:.2f}×", met=ratio <= MOST)
    derived = TWICE / ratio
    table.add(
        "… so two on cores of their own serve (derived: 2 / the ratio above)",
        {"two": derived},
        ratio=derived,
        target="≥ 1.70×",
        met=derived >= 1.7,
    )
    table.add("reads/s, on the cores of this machine", {name: each.rate for name, each in found.items()})
    table.add("… ms, p50", {name: each.p50 for name, each in found.items()})
    table.add("… ms, p99", {name: each.p99 for name, each in found.items()})
    counts = {name: sum(len(each.latencies) for each in series.rounds) for name, series in found.items()}
    table.add("ms of the database's CPU per read", {name: 1000 * spent[name] / counts[name] for name in fleets})


def _read(gates: list[Ours], make: Any, seconds: float) -> Round:
    connections: list[Connection] = []
    with connected(gates[0], MODERN, READERS // len(gates)) as first:
        connections += first
        if len(gates) == 1:
            return gates[0].cpu_of(partial(drive, connections, make, seconds=seconds, most=4000, right=right_node))
        with connected(gates[1], MODERN, READERS // len(gates)) as second:
            connections += second
            work = partial(drive, connections, make, seconds=seconds, most=4000, right=right_node)
            return gates[0].cpu_of(work, gates[1])
