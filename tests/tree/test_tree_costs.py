"""What work grows with: twice the nodes cost about twice the steps, never four times."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from grove_kit import config, hand
from toolgrove import Grove
from toolgrove.tree.boundary import outside
from toolgrove.tree.diff import diff_states
from toolgrove.tree.document import read
from toolgrove.tree.history import Commit, History
from toolgrove.tree.merge import Merge
from toolgrove.tree.payload_type import PayloadTypes
from toolgrove.tree.tree import Tree
from toolgrove.tree.undo import revert
from toolgrove.tree.view import View

SMALL = 100
MOST = 3.0


def steps(work: Callable[[], Any]) -> int:
    """How many calls a piece of work makes, of Python and of C."""
    with counting() as count:
        work()
    return count[0]


@contextmanager
def counting() -> Iterator[list[int]]:
    count = [0]

    def note(frame: FrameType, event: str, argument: Any) -> None:
        count[0] += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        yield count
    finally:
        sys.setprofile(None)


def merging_by_path(size: int) -> Callable[[], Any]:
    tree = Tree()
    form = {"nodeId": "root", "payloadType": "Root"}
    children = [{"payloadType": "T", "payload": {"name": f"k{at}"}} for at in range(size)]
    incoming = read({**form, "children": children}, limit=size + 1)
    merge = Merge(tree, PayloadTypes(), strategy="upsert", match_by="path", parent=tree.root)
    return lambda: merge.run(incoming)


def broom(size: int) -> Tree:
    """A long handle with bristles at its end."""
    tree = Tree()
    node = tree.root
    for _ in range(size):
        node = tree.add(node, "T", {})
    for _ in range(size):
        tree.add(node, "T", {})
    tree.take()
    return tree


def undoing_a_removal(size: int) -> Callable[[], Any]:
    tree = broom(size)
    tree.remove(tree["n1"])
    history = History(10)
    history.append(Commit(seq=1, agent="a", tool="remove_node", before=tree.take(), parents=frozenset()))
    return lambda: revert(tree, history, history.since(0))


def checking_a_write_root(size: int) -> Callable[[], Any]:
    tree = broom(size)
    for node in list(tree.nodes.values())[2:]:
        tree.write(node, {"at": 1})
    return lambda: outside(tree, tree.before, "n1")


def comparing_sorted_parents(size: int) -> Callable[[], Any]:
    tree = Tree()
    for _ in range(size):
        parent = tree.add(tree.root, "T", {})
        for _ in range(2):
            tree.add(parent, "T", {})
    tree.take()
    for parent in list((tree.root.children or {}).values()):
        tree.reorder(parent, list(reversed((parent.children or {}).values())))
    return lambda: diff_states(tree, tree.before, {})


@pytest.mark.parametrize(
    "task",
    [merging_by_path, undoing_a_removal, checking_a_write_root, comparing_sorted_parents],
    ids=lambda task: task.__name__,
)
def test_twice_the_nodes_cost_about_twice_the_steps(task: Callable[[int], Callable[[], Any]]) -> None:
    assert steps(task(2 * SMALL)) < MOST * steps(task(SMALL))


@pytest.mark.anyio
async def test_looking_from_many_sessions_leaves_nothing_behind() -> None:
    async with Grove() as grove:
        gc.collect()
        before = sum(isinstance(one, View) for one in gc.get_objects())
        for at in range(50):
            reader = await hand(grove, "reader", session=f"s{at}")
            await reader.ok("get_view", rootNodeId="root")
        gc.collect()
        assert sum(isinstance(one, View) for one in gc.get_objects()) == before


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "arguments", "key"),
    [
        ("search_advanced", {"rootId": "root", "predicates": [], "sortBy": {"path": "at"}}, "items"),
        ("validate_tree", {"rulesetId": "rules"}, "violations"),
        ("query_by_tag", {"tag": "red"}, "items"),
    ],
)
async def test_further_pages_of_what_takes_the_whole_tree_to_find_cost_only_what_they_show(
    tool: str, arguments: dict[str, Any], key: str
) -> None:
    rules = {"rules": [{"id": "named", "required": ["name"], "types": ["T"]}]}
    editor = await hand(Grove(config(workspace={"rulesets": rules})))
    items = [
        {"nodeId": f"k{at}", "parentId": "root", "payloadType": "T", "payload": {"at": -at}, "tags": ["red"]}
        for at in range(600)
    ]
    await editor.ok("import_merge", json={"items": items}, strategy="upsert")
    counts: list[int] = []
    found: list[str] = []
    more: dict[str, str] = {}
    while True:
        with counting() as count:
            page = await editor.ok(tool, **arguments, limit=100, **more)
        counts.append(count[0])
        found += [one["nodeId"] for one in page[key]]
        if "nextPageToken" not in page:
            break
        more = {"pageToken": page["nextPageToken"]}
    assert sorted(found) == sorted(f"k{at}" for at in range(600))
    assert len(counts) == 6
    with counting() as count:
        await editor.ok(tool, **arguments, limit=100)
    again = count[0]
    await editor.ok("add_child", parentNodeId="root", payloadType="U")
    with counting() as count:
        await editor.ok(tool, **arguments, limit=100)
    # A page of what was found already takes no walk through the tree; after a change there is one again.
    assert max(*counts[1:], again) + 600 < min(counts[0], count[0])
