"""Laws that hold for every tree: undo, restore, diff, paging, merge, export, failure."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grove_kit import Hand, config, hand
from toolgrove import Grove
from toolgrove.tree.tree import walk

AGENTS: dict[str, Any] = {
    "editor": {"role": "editor"},
    "second": {"role": "editor"},
    "careful": {"role": "editor", "approve": ["remove_node"]},
}
SEEDS = st.integers(0, 10**9)
LAW = settings(max_examples=40, deadline=None)


class Garden:
    """A grove with a random tree and a source of random changes."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)

    async def plant(self, size: int = 25, **workspace: Any) -> None:
        self.grove = Grove(config(agents=AGENTS, workspace=workspace))
        self.editor = await hand(self.grove)
        self.second = await hand(self.grove, "second")
        ids = ["root"]
        items: list[dict[str, Any]] = []
        for at in range(self.pick.randint(1, size)):
            items.append(
                {
                    "nodeId": f"i{at}",
                    "parentId": self.pick.choice(ids),
                    "payloadType": self.pick.choice("TU"),
                    "payload": self.payload(),
                    "tags": [tag for tag in ("x", "y") if self.pick.random() < 0.2],
                }
            )
            ids.append(f"i{at}")
        await self.editor.ok("import_merge", json={"items": items}, strategy="upsert", matchBy="nodeId")

    def payload(self) -> dict[str, Any]:
        choices = [1, 1.0, True, None, "a", "é", [1, {"k": "v"}], {"deep": {"er": [0]}}, ""]
        return {key: self.pick.choice(choices) for key in ("name", "size", "meta") if self.pick.random() < 0.6}

    async def ids(self) -> list[str]:
        found: list[str] = []
        token: dict[str, str] = {}
        while True:
            page = await self.editor.ok("get_subtree", nodeId="root", pageSize=200, **token)
            found += [item["nodeId"] for item in page["items"]]
            if "nextPageToken" not in page:
                return found
            token = {"pageToken": page["nextPageToken"]}

    async def change(self, who: Hand) -> dict[str, Any]:
        ids = await self.ids()
        one, two = self.pick.choice(ids), self.pick.choice(ids)
        cases: list[tuple[str, dict[str, Any]]] = [
            ("add_child", {"parentNodeId": one, "payloadType": "T", "payloadProps": self.payload()}),
            ("update_payload", {"nodeId": one, "patch": self.payload()}),
            ("remove_node", {"nodeId": one}),
            ("move_node", {"nodeId": one, "newParentId": two}),
            ("move_before", {"nodeId": one, "siblingId": two}),
            ("sort_children", {"parentId": one, "byProp": "size", "direction": "desc"}),
            (
                "copy_subtree",
                {"sourceId": one, "targetParentId": two, "mode": self.pick.choice(["reference", "duplicate"])},
            ),
            ("clone_node", {"nodeId": one, "targetParentId": two}),
            ("tag_node", {"nodeId": one, "tags": ["z"]}),
            ("update_nodes", {"filter": "@type = U", "patch": self.payload()}),
            (
                "import_merge",
                {"json": {"nodeId": one, "payloadType": "T", "payload": self.payload()}, "strategy": "replace"},
            ),
        ]
        tool, arguments = self.pick.choice(cases)
        return await who(tool, **arguments)

    async def state(self) -> tuple[Any, ...]:
        workspace = self.grove._workspace
        groups = {key: sorted(holders) for key, holders in workspace.tree.groups.items()}
        return (await self.editor.tree(), groups, {tag: sorted(on) for tag, on in workspace.tree.tagged.items()})


def law(test: Any) -> Any:
    """Run an async law for many seeds."""

    @LAW
    @given(seed=SEEDS)
    def run(seed: int) -> None:
        asyncio.run(test(Garden(seed)))

    run.__name__ = test.__name__
    return run


@pytest.mark.long
@law
async def test_undo_after_any_change_is_the_identity_and_redo_brings_it_back(garden: Garden) -> None:
    await garden.plant()
    for _ in range(6):
        before = await garden.state()
        version = await garden.editor.version()
        answer = await garden.change(garden.editor)
        after = await garden.state()
        if "error" in answer or answer["version"] == version:
            assert after == before
            continue
        await garden.editor.ok("undo")
        assert await garden.state() == before
        await garden.editor.ok("redo")
        assert await garden.state() == after


def doomed(document: dict[str, Any], node_id: str, parent: str | None = None, inside: bool = False) -> dict[str, str]:
    """What removing a node takes away, each with its parent and content; the order of siblings is no part of it."""
    inside = inside or document["nodeId"] == node_id
    found = {}
    if inside:
        content = [parent, document["payloadType"], document["payload"], document.get("tags", [])]
        found[document["nodeId"]] = json.dumps(content, sort_keys=True)
    for child in document.get("children", ()):
        found |= doomed(child, node_id, document["nodeId"], inside)
    return found


@law
async def test_an_approval_to_remove_holds_exactly_as_long_as_what_it_would_remove(garden: Garden) -> None:
    await garden.plant()
    careful = await hand(garden.grove, "careful")
    node = garden.pick.choice([one for one in await garden.ids() if one != "root"])
    asked = (await careful.refused("remove_node", nodeId=node))["approvalId"]
    await garden.grove.approvals.decide(asked, approve=True, by="grace")
    before = doomed(json.loads(await garden.editor.tree()), node)
    for _ in range(garden.pick.randint(1, 4)):
        await garden.change(garden.second)
    after = doomed(json.loads(await garden.editor.tree()), node)
    answer = await careful("remove_node", nodeId=node)
    if not after:
        assert answer["error"]["code"] == "not_found"
    elif after == before:
        assert answer["removedCount"] == len(before)
    else:
        assert (answer["error"]["reason"], answer["error"]["replaces"]) == ("approval_required", asked)


@law
async def test_restoring_a_snapshot_leaves_no_difference(garden: Garden) -> None:
    await garden.plant()
    before = await garden.state()
    snapshot = (await garden.editor.ok("snapshot_create", label="x"))["snapshotId"]
    for _ in range(5):
        await garden.change(garden.pick.choice([garden.editor, garden.second]))
    await garden.editor.ok("snapshot_restore", snapshotId=snapshot)
    diff = await garden.editor.ok("snapshot_diff", a=snapshot, b="current")
    assert not any(diff[name] for name in ("added", "removed", "moved", "reordered", "changed"))
    assert await garden.state() == before


def inverted(diff: dict[str, Any]) -> dict[str, Any]:
    swap = {
        "old": "new",
        "new": "old",
        "oldParentId": "newParentId",
        "newParentId": "oldParentId",
        "oldIndex": "newIndex",
        "newIndex": "oldIndex",
    }

    def turn(value: Any) -> Any:
        if isinstance(value, dict):
            return {swap.get(key, key): turn(item) for key, item in value.items()}
        return value

    lists = {"added": "removed", "removed": "added", "moved": "moved", "reordered": "reordered", "changed": "changed"}
    return {
        lists[name]: [entry if name in ("added", "removed") else turn(entry) for entry in diff[name]] for name in lists
    }


def plain(diff: dict[str, Any]) -> str:
    names = ("added", "removed", "moved", "reordered", "changed")
    for entry in diff["changed"]:
        entry.pop("parentId", None)  # the one that it has at the end
    return json.dumps({name: sorted(map(str_of, diff[name])) for name in names}, sort_keys=True)


def str_of(entry: Any) -> str:
    return json.dumps(entry, sort_keys=True)


@law
async def test_a_diff_inverts_the_diff_the_other_way_round(garden: Garden) -> None:
    await garden.plant()
    for label in "ab":
        await garden.editor.ok("snapshot_create", label=label)
        for _ in range(4):
            await garden.change(garden.editor)
    for a, b in (("s1", "s2"), ("s1", "current"), ("s2", "current")):
        there = await garden.editor.ok("snapshot_diff", a=a, b=b)
        back = await garden.editor.ok("snapshot_diff", a=b, b=a)
        assert plain(inverted(there)) == plain(back)


@law
async def test_pages_of_any_size_together_are_the_whole(garden: Garden) -> None:
    await garden.plant(40)
    whole = await garden.ids()
    size = garden.pick.randint(1, 9)
    reads: list[tuple[str, dict[str, Any], str]] = [
        ("get_view", {"rootNodeId": "root", "defaultExpanded": True}, "pageSize"),
        ("get_subtree", {"nodeId": "root"}, "pageSize"),
        ("search", {"rootNodeId": "root", "filters": []}, "limit"),
        ("select_nodes", {"queryDsl": "#root | //*"}, "limit"),
    ]
    for tool, arguments, name in reads:
        gathered: list[str] = []
        token: dict[str, str] = {}
        while True:
            page = await garden.editor.ok(tool, **arguments, **{name: size}, **token)
            assert len(page["items"]) <= size
            gathered += [item["nodeId"] for item in page["items"]]
            if "nextPageToken" not in page:
                break
            token = {"pageToken": page["nextPageToken"]}
        assert gathered == (whole[1:] if tool == "search" else whole), tool


@law
async def test_a_node_that_stays_is_returned_once_whatever_happens_around_it(garden: Garden) -> None:
    await garden.plant(40)
    start = {item: at for at, item in enumerate(await garden.ids())}
    disturbed: set[str] = set()
    gathered: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = await garden.editor.ok("get_subtree", nodeId="root", pageSize=4, **token)
        gathered += [item["nodeId"] for item in page["items"]]
        if "nextPageToken" not in page:
            break
        token = {"pageToken": page["nextPageToken"]}
        ids = await garden.ids()
        victim = garden.pick.choice(ids)
        version = await garden.editor.version()
        if garden.pick.random() < 0.5:
            await garden.second.ok("add_child", parentNodeId=victim, payloadType="T", payloadProps={})
        else:
            answer = await garden.second("move_node", nodeId=victim, newParentId=garden.pick.choice(ids))
            if "error" in answer and victim != "root":
                await garden.second("remove_node", nodeId=victim)
        workspace = garden.grove._workspace
        for commit in workspace.history.since(workspace.seq_of(version) or 0):
            for node_id in commit.before:
                node = workspace.tree.nodes.get(node_id)
                disturbed.add(node_id)
                if node is not None:
                    disturbed.update(one.id for one in walk(node))
    for node_id in start:
        if node_id not in disturbed:
            assert gathered.count(node_id) == 1, node_id


@law
async def test_merging_an_export_into_where_it_came_from_changes_nothing(garden: Garden) -> None:
    await garden.plant()
    for _ in range(3):
        await garden.change(garden.editor)
    before, version = await garden.state(), await garden.editor.version()
    node = garden.pick.choice(await garden.ids())
    exported = (await garden.editor.ok("export_subtree", nodeId=node))["json"]
    for strategy in ("upsert", "skip", "replace"):
        answer = await garden.editor.ok("import_merge", json=exported, strategy=strategy, matchBy="nodeId")
        assert (answer["created"], answer["updated"], answer["removed"]) == ([], [], [])
    assert await garden.state() == before
    assert await garden.editor.version() == version


@law
async def test_export_import_export_is_byte_identical(garden: Garden) -> None:
    await garden.plant()
    for _ in range(3):
        await garden.change(garden.editor)
    for node in ("root", garden.pick.choice(await garden.ids())):
        exported = (await garden.editor.ok("export_subtree", nodeId=node))["json"]
        empty = await hand(Grove())
        await empty.ok("import_merge", json=exported, strategy="upsert", matchBy="nodeId")
        assert (await empty.ok("export_subtree", nodeId=node))["json"] == exported


@law
async def test_a_failed_call_changes_nothing(garden: Garden) -> None:
    await garden.plant()
    before = (
        await garden.state(),
        await garden.editor.version(),
        await garden.editor.ok("get_view", rootNodeId="root"),
    )
    bad: list[tuple[str, dict[str, Any]]] = [
        (
            "import_merge",
            {
                "json": {
                    "items": [
                        {"nodeId": "new", "payloadType": "T"},
                        {"nodeId": "x", "parentId": "gone", "payloadType": "T"},
                    ]
                },
                "strategy": "upsert",
            },
        ),
        (
            "import_merge",
            {
                "json": {
                    "payloadType": "T",
                    "children": [{"nodeId": "root", "payloadType": "T", "children": [{"payloadType": 5}]}],
                },
                "strategy": "replace",
            },
        ),
        ("move_node", {"nodeId": "root", "newParentId": "i0"}),
        ("copy_subtree", {"sourceId": "i0", "targetParentId": "gone", "mode": "reference"}),
        ("sort_children", {"parentId": "gone", "byProp": "x"}),
        ("update_payload", {"nodeId": "i0", "patch": {"a": 1, "b": float("nan")}}),
        ("expand_all", {"rootNodeId": "gone"}),
        ("import_view", {"viewJson": {"viewRoot": {"rootNodeId": "i0", "expanded": 5}}, "payloadTypes": ["T", "U"]}),
        ("snapshot_restore", {"snapshotId": "none"}),
        ("update_nodes", {"filter": "size = ", "patch": {"a": 1}}),
    ]
    for tool, arguments in bad:
        await garden.editor.refused(tool, **copy.deepcopy(arguments))
    after = (await garden.state(), await garden.editor.version(), await garden.editor.ok("get_view", rootNodeId="root"))
    assert after == before


@pytest.mark.anyio
async def test_ids_are_never_used_twice() -> None:
    garden = Garden(1)
    await garden.plant()
    seen: set[str] = set()
    for _ in range(20):
        added = (await garden.editor.ok("add_child", parentNodeId="root", payloadType="T"))["nodeId"]
        assert added not in seen
        seen.add(added)
        if garden.pick.random() < 0.5:
            await garden.editor.ok("undo")
        else:
            await garden.editor.ok("remove_node", nodeId=added)


@pytest.mark.long
@given(seed=SEEDS, history=st.sampled_from([1, 4, 12]))
@LAW
def test_a_snapshot_leads_back_however_short_the_history_is(seed: int, history: int) -> None:
    """The same changes in two workspaces, one of which forgets almost at once."""

    async def run() -> None:
        gardens = [Garden(seed), Garden(seed)]
        for garden, keep in zip(gardens, (history, 10_000), strict=True):
            await garden.plant(limits={"history": keep})
        kept: list[str] = []
        pick = random.Random(seed)
        for _ in range(30):
            move = pick.random()
            for garden in gardens:
                if move < 0.15:
                    taken = await garden.editor.ok("snapshot_create", label="x")
                elif move < 0.25 and kept:
                    await garden.editor.ok("snapshot_delete", snapshotId=kept[0])
                elif move < 0.3 and kept:
                    await garden.editor.ok("snapshot_restore", snapshotId=kept[-1])
                elif move < 0.4:
                    await garden.editor("bookmark", nodeId=(await garden.ids())[-1], label="here")
                else:
                    await garden.change(garden.editor)
            if move < 0.15:
                kept.append(taken["snapshotId"])
            elif move < 0.25 and kept:
                kept.pop(0)
        for one in [*kept, "current"]:
            for other in [*kept, "current"]:
                short, long = [await garden.editor.ok("snapshot_diff", a=one, b=other) for garden in gardens]
                for side in (short, long):
                    side.pop("version")
                    for entries in side.values():
                        entries.sort(key=lambda entry: entry["nodeId"])
                assert short == long
        for one in kept:
            for garden in gardens:
                await garden.editor.ok("snapshot_restore", snapshotId=one)
            trees = [await garden.editor.tree() for garden in gardens]
            assert trees[0] == trees[1]
            shown = [(await garden.editor.ok("list_bookmarks"))["items"] for garden in gardens]
            assert shown[0] == shown[1]
        workspace = gardens[0].grove._workspace
        assert len(workspace.history) <= history + history // 10 + 1

    asyncio.run(run())
