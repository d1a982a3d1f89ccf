"""The tree against a plain dict of dicts and the libraries that people pick instead, in one interleaved run.

python -m bench.tree [--nodes 10000 100000] [--million] [--calls] [--keep]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from toolgrove import Grove
from toolgrove.tree.dsl import Selection
from toolgrove.tree.effects import SnapshotChange, TreeSnapshot
from toolgrove.tree.node import Node
from toolgrove.tree.tree import walk
from toolgrove.tree.workspace import Workspace
from toolgrove.types import Caller

ROUNDS = 7
FAN_OUT = 10
CALLER = Caller(agent="bench", session="bench", role="editor")
Operation = Callable[[], object]


def payload(at: int) -> dict[str, Any]:
    return {"name": f"node {at}", "size": at % 997, "price": at / 7, "status": "open", "done": False}


class Ours:
    """toolgrove.tree, the structure layer."""

    name = "toolgrove"
    keep = False

    def __init__(self, nodes: int) -> None:
        self.kept: list[Any] = []
        self.workspace = Workspace()
        tree = self.tree = self.workspace.tree
        ids = ["root"]
        for at in range(nodes - 1):
            ids.append(tree.add(tree.nodes[ids[at // FAN_OUT]], "T", payload(at)).id)
        self.ids = ids
        tree.take()

    def get(self, key: str) -> object:
        return self.tree.nodes[key]

    def path(self, key: str) -> object:
        return self.tree.nodes[key].ancestry()

    def scan(self) -> object:
        count = 0
        for node in walk(self.tree.root):
            if node.payload.get("size", 0) > 900:
                count += 1
        return count

    def add(self, key: str, at: int) -> object:
        return self.tree.add(self.tree.nodes[key], "T", payload(at))

    def update(self, key: str, at: int) -> object:
        node = self.tree.nodes[key]
        return self.tree.write(node, {**node.payload, "size": at})

    def move(self, key: str, parent: str) -> object:
        self.tree.move(self.tree.nodes[key], self.tree.nodes[parent])
        return None

    def settle(self) -> None:
        """Close the transaction; the writers of the others have nothing like it."""
        images = self.tree.take()
        if self.keep:
            self.kept.append(images)


class Plain:
    """What one would write without a library: a dict of dicts, no history, no checks."""

    name = "plain dicts"

    def __init__(self, nodes: int) -> None:
        self.nodes: dict[str, dict[str, Any]] = {
            "root": {"id": "root", "parent": None, "type": "Root", "payload": {}, "children": []}
        }
        self.ids = ["root"]
        for at in range(nodes - 1):
            self.add(self.ids[at // FAN_OUT], at)
            self.ids.append(f"n{len(self.nodes) - 1}")

    def get(self, key: str) -> object:
        return self.nodes[key]

    def path(self, key: str) -> object:
        chain = []
        at: str | None = key
        while at is not None:
            node = self.nodes[at]
            chain.append(node)
            at = node["parent"]
        chain.reverse()
        return chain

    def scan(self) -> object:
        count, stack, nodes = 0, ["root"], self.nodes
        while stack:
            node = nodes[stack.pop()]
            if node["payload"].get("size", 0) > 900:
                count += 1
            stack.extend(reversed(node["children"]))
        return count

    def add(self, key: str, at: int) -> object:
        new = f"n{len(self.nodes)}"
        self.nodes[new] = {"id": new, "parent": key, "type": "T", "payload": payload(at), "children": []}
        self.nodes[key]["children"].append(new)
        return new

    def update(self, key: str, at: int) -> object:
        node = self.nodes[key]
        node["payload"] = {**node["payload"], "size": at}
        return node

    def move(self, key: str, parent: str) -> object:
        at: str | None = parent
        while at is not None:
            if at == key:
                raise ValueError("a node cannot move below itself")
            at = self.nodes[at]["parent"]
        node = self.nodes[key]
        self.nodes[node["parent"]]["children"].remove(key)
        self.nodes[parent]["children"].append(key)
        node["parent"] = parent
        return node

    def diff(self, past: dict[str, dict[str, Any]]) -> object:
        """The least that tells what became of some nodes, given copies of what they were."""
        moved, changed = [], []
        for key, was in past.items():
            now = self.nodes[key]
            if was["parent"] != now["parent"]:
                moved.append({"nodeId": key, "oldParentId": was["parent"], "newParentId": now["parent"]})
            properties = {}
            old, new = was["payload"], now["payload"]
            for name in old.keys() | new.keys():
                if old.get(name) != new.get(name):
                    properties[name] = {"old": old.get(name), "new": new.get(name)}
            if properties:
                changed.append({"nodeId": key, "properties": properties})
        return moved, changed

    def settle(self) -> None:
        """Nothing to do."""


class Indexed:
    """A library whose nodes are objects, with the id index that its users add."""

    def get(self, key: str) -> object:
        return self.nodes[key]

    nodes: dict[str, Any]
    ids: list[str]

    def settle(self) -> None:
        """Nothing to do."""


class Anytree(Indexed):
    name = "anytree"

    def __init__(self, nodes: int) -> None:
        import anytree  # type: ignore[import-untyped]  # noqa: PLC0415  # it ships no types

        self.lib = anytree
        self.nodes = {"root": anytree.Node("root", payload={})}
        self.ids = ["root"]
        for at in range(nodes - 1):
            self.add(self.ids[at // FAN_OUT], at)
            self.ids.append(f"n{at}")

    def path(self, key: str) -> object:
        return self.nodes[key].path

    def scan(self) -> object:
        return sum(node.payload.get("size", 0) > 900 for node in self.lib.PreOrderIter(self.nodes["root"]))

    def add(self, key: str, at: int) -> object:
        node = self.nodes[f"n{at}"] = self.lib.Node(f"n{at}", parent=self.nodes[key], payload=payload(at))
        return node

    def update(self, key: str, at: int) -> object:
        node = self.nodes[key]
        node.payload = {**node.payload, "size": at}
        return node

    def move(self, key: str, parent: str) -> object:
        self.nodes[key].parent = self.nodes[parent]
        return None


class Bigtree(Anytree):
    name = "bigtree"

    def __init__(self, nodes: int) -> None:
        import bigtree  # noqa: PLC0415

        self.big = bigtree
        self.nodes = {"root": bigtree.Node("root", payload={})}
        self.ids = ["root"]
        for at in range(nodes - 1):
            self.add(self.ids[at // FAN_OUT], at)
            self.ids.append(f"n{at}")

    def path(self, key: str) -> object:
        return list(self.nodes[key].node_path)

    def scan(self) -> object:
        return sum(node.payload.get("size", 0) > 900 for node in self.big.preorder_iter(self.nodes["root"]))

    def add(self, key: str, at: int) -> object:
        node = self.nodes[f"n{at}"] = self.big.Node(f"n{at}", parent=self.nodes[key], payload=payload(at))
        return node


class Treelib(Indexed):
    name = "treelib"

    def __init__(self, nodes: int) -> None:
        import treelib  # noqa: PLC0415

        self.tree: Any = treelib.Tree()  # type: ignore[attr-defined]  # it does not say what it exports
        self.tree.create_node("root", "root", data={})
        self.ids = ["root"]
        for at in range(nodes - 1):
            self.add(self.ids[at // FAN_OUT], at)
            self.ids.append(f"n{at}")

    def get(self, key: str) -> object:
        return self.tree[key]

    def path(self, key: str) -> object:
        return list(self.tree.rsearch(key))

    def scan(self) -> object:
        nodes = self.tree.nodes
        return sum(nodes[key].data.get("size", 0) > 900 for key in self.tree.expand_tree(sorting=False))

    def add(self, key: str, at: int) -> object:
        return self.tree.create_node(f"n{at}", f"n{at}", parent=key, data=payload(at))

    def update(self, key: str, at: int) -> object:
        node = self.tree[key]
        node.data = {**node.data, "size": at}
        return node

    def move(self, key: str, parent: str) -> object:
        return self.tree.move_node(key, parent)


class Nutree(Indexed):
    name = "nutree"

    def __init__(self, nodes: int) -> None:
        import nutree  # noqa: PLC0415

        self.tree = nutree.Tree("bench")
        self.nodes = {"root": self.tree.add({}, data_id="root")}
        self.ids = ["root"]
        for at in range(nodes - 1):
            self.add(self.ids[at // FAN_OUT], at)
            self.ids.append(f"n{at}")

    def path(self, key: str) -> object:
        return self.nodes[key].get_parent_list(add_self=True)

    def scan(self) -> object:
        return sum(node.data.get("size", 0) > 900 for node in self.tree)

    def add(self, key: str, at: int) -> object:
        node = self.nodes[f"n{at}"] = self.nodes[key].add(payload(at), data_id=f"n{at}")
        return node

    def update(self, key: str, at: int) -> object:
        node = self.nodes[key]
        node.set_data({**node.data, "size": at}, data_id=key)
        return node

    def move(self, key: str, parent: str) -> object:
        return self.nodes[key].move_to(self.nodes[parent])


def timed(operation: Operation) -> float:
    """CPU time: on shared cores the clock on the wall measures the neighbours."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    operation()
    spent = time.process_time() - start
    gc.enable()
    return spent


def interleaved(operations: dict[str, Callable[[int], Operation]], rounds: int) -> dict[str, float]:
    """The median time of each, measured turn by turn so that all meet the same machine."""
    times: dict[str, list[float]] = {name: [] for name in operations}
    for at in range(rounds):
        for name, prepare in operations.items():
            times[name].append(timed(prepare(at)))
    return {name: statistics.median(spent) for name, spent in times.items()}


def repeat(subject: Any, method: str, cases: list[tuple[Any, ...]]) -> Operation:
    def run() -> None:
        call = getattr(subject, method)
        for case in cases:
            call(*case)
        subject.settle()

    return run


def structure(nodes: int, everyone: bool) -> None:
    print(f"\n## {nodes:,} nodes with five properties: time relative to plain dicts (below 1 is faster)\n")
    kinds: list[Any] = [Plain, Ours, *((Anytree, Bigtree, Treelib, Nutree) if everyone else ())]
    subjects: list[Any] = [kind(nodes) for kind in kinds]
    print(f"{'':8}{'plain':>12}" + "".join(f"{subject.name:>13}" for subject in subjects[1:]))
    size = min(2_000, nodes // 5)
    # A round of a small tree takes milliseconds: more of them, or the neighbours decide.
    rounds = max(ROUNDS, 150_000 // nodes)
    past = ""
    for method in ("get", "path", "scan", "update", "move", "add"):
        if method == "add":
            # The tree grows from here on.
            past = history(subjects[1], subjects[0], rounds)

        def prepare(subject: Any, method: str = method) -> Callable[[int], Operation]:
            def make(at: int) -> Operation:
                pick = random.Random(at)
                ids = subject.ids
                if method in ("get", "path"):
                    return repeat(subject, method, [(pick.choice(ids),) for _ in range(size)])
                if method == "scan":
                    return repeat(subject, method, [()])
                if method == "add":
                    base = nodes * 10 + at * size
                    return repeat(subject, method, [(pick.choice(ids), base + one) for one in range(size)])
                if method == "update":
                    return repeat(subject, method, [(pick.choice(ids), one) for one in range(size)])
                half = len(ids) // FAN_OUT
                # Leaves move under inner nodes, so that no case is refused.
                leaves, inner = ids[half * 2 :], ids[1:half]
                return repeat(subject, method, [(pick.choice(leaves), pick.choice(inner)) for _ in range(size)])

            return make

        medians = interleaved({subject.name: prepare(subject) for subject in subjects}, rounds)
        count = 1 if method == "scan" else size
        plain = medians["plain dicts"]
        unit = f"{plain / count * 1e6:.2f} µs" if method != "scan" else f"{plain * 1e3:.1f} ms"
        print(f"{method:8}{unit:>12}" + "".join(f"{medians[one.name] / plain:>12.2f}×" for one in subjects[1:]))
    print(past)


def history(ours: Ours, plain: Plain, rounds: int) -> str:
    workspace, tree = ours.workspace, ours.tree
    changed = max(1, len(ours.ids) // 100)
    spent = []
    for at in range(rounds):
        start = time.perf_counter()
        snapshot = TreeSnapshot(id=f"b{at}", label="", agent="", seq=workspace.tree_seq, created=0.0, nodes=len(tree))
        workspace.record(CALLER, (), [SnapshotChange(snapshot=snapshot)])
        spent.append(time.perf_counter() - start)
    pick = random.Random(1)
    places = pick.sample(range(len(ours.ids)), changed)
    past = {plain.ids[at]: dict(plain.nodes[plain.ids[at]]) for at in places}
    for at in places:
        ours.update(ours.ids[at], -1)
        plain.update(plain.ids[at], -1)
    workspace.commit(CALLER, "bench")
    query = "size > 900 and status = open"

    def test(node: Node) -> bool:
        return node.payload.get("size", 0) > 900 and node.payload.get("status") == "open"

    medians = interleaved(
        {
            "plain diff": lambda at: lambda: plain.diff(past),
            "diff": lambda at: lambda: workspace.diff("b0", "current"),
            "lambda": lambda at: lambda: [node for node in walk(tree.root) if test(node)],
            "dsl": lambda at: lambda: list(Selection(tree, query).nodes()),
        },
        rounds,
    )
    again = [timed(lambda: [workspace.diff("b0", "current") for _ in range(5)]) / 5 for _ in range(rounds)]
    return (
        f"snapshot {statistics.median(spent) * 1e3:.4f} ms\n"
        f"diff of 1 % changed: {medians['diff'] / changed * 1e6:.2f} µs per changed node with cold caches, "
        f"{medians['diff'] / medians['plain diff']:.2f}× plain dicts; asked five times "
        f"{statistics.median(again) / changed * 1e6:.2f} µs\n"
        f"DSL scan {medians['dsl'] * 1e3:.1f} ms, {medians['dsl'] / medians['lambda']:.2f}× a Python lambda"
    )


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def grow(kind: Any, nodes: int, answer: Any) -> None:
    gc.collect()
    before = resident()
    subject = kind(nodes)
    gc.collect()
    answer.send((resident() - before, len(subject.ids)))


def memory(nodes: int, everyone: bool) -> None:
    print(f"\n## Memory of {nodes:,} nodes with five properties (resident, own process each)\n")
    context = multiprocessing.get_context("spawn")
    for kind in [Plain, Ours, *((Anytree, Bigtree, Treelib, Nutree) if everyone else ())]:
        ours, theirs = context.Pipe()
        child = context.Process(target=grow, args=(kind, nodes, theirs))
        child.start()
        grown, count = ours.recv()
        child.join()
        print(f"{kind.name:14}{grown / count:8.0f} bytes per node, {grown / 2**20:8.1f} MiB")


async def whole_calls(nodes: int) -> None:
    from apcore import Executor, Registry  # noqa: PLC0415
    from pydantic import BaseModel  # noqa: PLC0415

    class Number(BaseModel):
        x: int = 0

    class Trivial:
        description = "Gives back what it got."
        input_schema = Number
        output_schema = Number

        def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
            return {"x": inputs["x"]}

    registry = Registry()
    registry.register("bench.trivial", Trivial())
    executor = Executor(registry)
    grove = Grove()
    workspace = grove._workspace
    tree = workspace.tree
    for at in range(nodes):
        tree.add(tree.root if at < 100 else tree.nodes[f"n{at % 100 + 1}"], "T", payload(at))
    workspace.commit(CALLER, "bench")
    agent = await grove.agent("editor")
    version = (await agent.call("get_node", {"nodeId": "root"}))["version"]
    times: dict[str, list[float]] = {"apcore": [], "get_node": [], "update_payload_property": []}
    for at in range(3_000):
        start = time.perf_counter()
        await executor.call_async("bench.trivial", {"x": at})
        first = time.perf_counter()
        await agent.call("get_node", {"nodeId": f"n{at + 1}"})
        second = time.perf_counter()
        answer = await agent.call(
            "update_payload_property",
            {"nodeId": f"n{at + 1}", "propertyName": "size", "newValue": -at - 1, "versionToken": version},
        )
        third = time.perf_counter()
        version = answer["version"]
        for name, spent in zip(times, (first - start, second - first, third - second), strict=True):
            times[name].append(spent)
    medians = {name: statistics.median(spent) * 1e6 for name, spent in times.items()}
    print(f"\n## Whole calls in process, p50 of 3,000 each, turn by turn, tree of {nodes:,} nodes\n")
    for name, spent in medians.items():
        share = "" if name == "apcore" else f"  1/{medians['apcore'] / spent:.1f} of a trivial apcore call"
        print(f"{name:26}{spent:8.1f} µs{share}")


def views(nodes: int) -> None:
    print("\n## get_view with maxTokens: what it costs as the tree grows\n")
    for size in (nodes // 100, nodes // 10, nodes):
        asyncio.run(view_cost(size))


async def view_cost(nodes: int) -> None:
    grove = Grove()
    workspace = grove._workspace
    tree = workspace.tree
    for at in range(nodes):
        tree.add(tree.nodes[f"n{at // FAN_OUT}"] if at >= FAN_OUT else tree.root, "T", payload(at))
    workspace.commit(CALLER, "bench")
    agent = await grove.agent("reader")
    spent = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        await agent.call("get_view", {"rootNodeId": "root", "defaultExpanded": True, "maxTokens": 1_000})
        spent.append(time.perf_counter() - start)
    print(f"{nodes:>10,} nodes  {statistics.median(spent) * 1e3:6.2f} ms")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", type=int, nargs="+", default=[10_000, 100_000])
    arguments.add_argument("--million", action="store_true", help="also one million nodes, without the libraries")
    arguments.add_argument("--calls", action="store_true", help="only the whole calls")
    arguments.add_argument(
        "--keep", action="store_true", help="keep before-images, as a commit does; else freeing them counts"
    )
    chosen = arguments.parse_args()
    Ours.keep = chosen.keep
    asyncio.run(whole_calls(10_000))
    if chosen.calls:
        return
    for nodes in chosen.nodes:
        structure(nodes, everyone=True)
    views(max(chosen.nodes))
    memory(max(chosen.nodes), everyone=True)
    if chosen.million:
        structure(1_000_000, everyone=False)
        memory(1_000_000, everyone=False)


if __name__ == "__main__":
    main()
