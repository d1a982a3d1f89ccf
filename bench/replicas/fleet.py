"""A durable PostgreSQL, and real `toolgrove serve` processes of one project on it."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.gates import Ours
from bench.pool import running, tree_cpu
from bench.store import WRITERS
from services.postgres import Postgres

os.environ.setdefault("GROVE_BENCH_KEY", "a key that all replicas of a bench have")
AGENTS = tuple(f"a{number}" for number in range(WRITERS))


@dataclass(frozen=True, kw_only=True)
class Effort:
    rounds: int
    slice: float
    budget: float
    seconds: float
    changes: int
    nodes: int


FULL = Effort(rounds=8, slice=0.5, budget=20, seconds=6.0, changes=150, nodes=100_000)
QUICK = Effort(rounds=3, slice=0.3, budget=8, seconds=2.0, changes=30, nodes=10_000)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What every part is measured with."""

    effort: Effort
    folder: Path
    database: Postgres
    figures: dict[str, float] = field(default_factory=dict)
    """What parts leave for those after them, in milliseconds."""

    @property
    def database_cpu(self) -> float:
        return tree_cpu(self.database.pid)


@contextlib.contextmanager
def durable_postgres() -> Iterator[Postgres]:
    """One that loses nothing in a power cut, as the SQLite store does not; its other settings are PostgreSQL's own."""
    server = Postgres("fsync=on", "synchronous_commit=on")
    try:
        server.start()
        yield server
    finally:
        server.close()


def project(store: str, *, concurrency: str = "node", **more: Any) -> dict[str, Any]:
    """Sixteen agents that may do everything in the tree."""
    agents = {name: {"role": "editor", "tools": ["*"]} for name in AGENTS}
    workspace = {"store": store, "concurrency": concurrency, "auditKey": "${env:GROVE_BENCH_KEY}"}
    more["agents"] = agents | more.get("agents", {})
    return {"workspace": workspace, **more}


@contextlib.contextmanager
def replicas(setting: Setting, name: str, count: int, **more: Any) -> Iterator[list[Ours]]:
    """So many of one new project; the first has made the tokens, which are good at all of them."""
    config = project(setting.database.fresh(), **more)
    with contextlib.ExitStack() as stack:
        gates: list[Ours] = []
        for number in range(count):
            gate = Ours(f"{name}-{number}", setting.folder / f"{name}-{number}", config)
            stack.enter_context(running(gate))
            gates.append(gate)
            gate.tokens = gates[0].tokens
        yield gates
