"""What one replica holds: a large tree, on PostgreSQL."""

import asyncio
import contextlib
import time

from bench.gates import Ours
from bench.gateway import reading, right_node
from bench.pool import running
from bench.replicas.fleet import Setting, project
from bench.report import Report, say
from bench.store import planted
from bench.wire import MODERN, drive


def holds(report: Report, setting: Setting) -> None:
    """A tree of many nodes: planted once, opened by a replica that comes later."""
    nodes = setting.effort.nodes
    say(f"a tree of {nodes:,} nodes")
    store = setting.database.fresh()
    begun = time.perf_counter()
    asyncio.run(planted(store, nodes))
    took = time.perf_counter() - begun
    empty = Ours("empty", setting.folder / "empty", project(setting.database.fresh()))
    with running(empty):
        alone = empty.megabytes
    ours = Ours("holds", setting.folder / "holds", project(store))
    table = report.table(f"One replica with {nodes:,} nodes, on PostgreSQL")
    with running(ours), contextlib.closing(ours.connect(MODERN)) as one:
        found = drive([one], lambda: reading("i1"), seconds=1, most=200, right=right_node)
        table.add("seconds to import them, ten thousand in a call", {"postgres": took})
        table.add("seconds until a replica that comes later greets", {"postgres": ours.started})
        table.add("megabytes of the process, empty", {"postgres": alone})
        table.add("… with the nodes", {"postgres": ours.megabytes})
        table.add("… kilobytes for each node", {"postgres": 1024 * (ours.megabytes - alone) / nodes})
        table.add("ms of `get_node`, p50", {"postgres": found.p50})
