"""What a long call costs the others: how long another agent's get_node waits at worst while one works on a large tree.

    python -m bench.long_calls [--nodes N] [--folder DIR]

A read is asked for every two milliseconds. Its wait counts from the moment at which it is due until it is answered, so
that the time in which the event loop hears nobody is in it. Other work on the machine is in it too, but not in the CPU
time of this process within a wait; "(nothing)" tells what reads wait while nobody works.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolgrove import Agent, Config, Grove

EVERY = 0.002
LIMIT = 0.050
FAN_OUT = 10
AGENTS = {"worker": {"role": "editor", "tools": ["*"]}, "other": {"role": "reader", "tools": ["*"]}}
RULES = {"rules": [{"id": "large", "required": ["large"]}]}


def document(nodes: int) -> dict[str, Any]:
    """A flat document of a tree in which every node has ten children."""
    items = []
    for at in range(nodes):
        above = "root" if at < FAN_OUT else f"k{at // FAN_OUT - 1}"
        payload = {"name": f"node {at}", "size": at % 997, "price": at / 7, "status": "open", "done": False}
        items.append({"nodeId": f"k{at}", "parentId": above, "payloadType": "T", "payload": payload})
    return {"items": items}


@dataclass(frozen=True, kw_only=True)
class Wait:
    """How long a read waited, and how much of that this process was computing."""

    wall: float
    cpu: float


async def waits_during(work: asyncio.Future[dict[str, Any]], other: Agent) -> tuple[float, list[Wait]]:
    """How long the work took, and how long each read of the other agent waited meanwhile."""
    begun = time.perf_counter()
    waits: list[Wait] = []
    while not work.done():
        due, cpu = time.perf_counter() + EVERY, time.process_time()
        await asyncio.sleep(EVERY)
        await other.call("get_node", {"nodeId": "root"})
        waits.append(Wait(wall=time.perf_counter() - due, cpu=time.process_time() - cpu))
    answer = work.result()
    if "error" in answer:
        raise RuntimeError(answer["error"]["message"])
    return time.perf_counter() - begun, waits


async def measure(store: str, nodes: int) -> None:
    limits = {"importNodes": nodes, "copyNodes": nodes + 1, "updateNodes": nodes + 1}
    workspace = {"store": store, "rulesets": RULES, "limits": limits}
    async with Grove(Config.model_validate({"agents": AGENTS, "workspace": workspace})) as grove:
        worker, other = await grove.agent("worker"), await grove.agent("other")
        calls: list[tuple[str, dict[str, Any]]] = [
            ("import_merge", {"json": document(nodes), "strategy": "upsert"}),
            ("update_nodes", {"filter": "size > 0", "patch": {"status": "done"}}),
            ("undo", {}),
            ("copy_subtree", {"sourceId": "k0", "targetParentId": "k1", "mode": "reference"}),
            ("remove_node", {"nodeId": "k1"}),
        ]
        reads: list[tuple[str, dict[str, Any]]] = [
            ("export_subtree", {"nodeId": "root"}),
            ("search_advanced", {"rootId": "root", "predicates": [], "sortBy": {"path": "price"}}),
            ("validate_tree", {"rulesetId": "rules"}),
        ]
        tell(store, "(nothing)", *await waits_during(asyncio.ensure_future(nothing()), other))
        for tool, arguments in (*calls, *reads):
            version = (await worker.call("get_node", {"nodeId": "root"}))["version"]
            asked = {**arguments, "versionToken": version} if (tool, arguments) in calls else arguments
            gc.collect()
            tell(store, tool, *await waits_during(asyncio.ensure_future(worker.call(tool, asked)), other))


async def nothing() -> dict[str, Any]:
    """What reads wait on this machine as it is."""
    await asyncio.sleep(3.0)
    return {}


def tell(store: str, tool: str, took: float, waits: list[Wait]) -> None:
    worst = max(waits, key=lambda wait: wait.wall)
    verdict = "within" if worst.wall < LIMIT else "ABOVE"
    middle = statistics.median(wait.wall for wait in waits)
    print(
        f"{store.partition(':')[0]:7} {tool:15} {took:6.2f} s  get_node of another agent: "
        f"median {middle * 1000:5.1f} ms, p100 {worst.wall * 1000:6.1f} ms, "
        f"{verdict} the limit of {LIMIT * 1000:.0f} ms "
        f"(own CPU in any wait: {max(wait.cpu for wait in waits) * 1000:.0f} ms)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the store is made; a temporary folder by default")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=chosen.folder))
    try:
        for store in ("memory", f"sqlite:{folder}/grove.db"):
            asyncio.run(measure(store, chosen.nodes))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
