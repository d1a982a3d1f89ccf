"""What was: the history of a node, a subtree as of a moment, and a branch brought back exactly."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from grove_kit import Hand, config, hand, sample
from toolgrove import Grove
from toolgrove.tools.sample import RULESETS

pytestmark = pytest.mark.anyio


async def test_the_history_of_a_node_tells_who_when_with_what_and_what_differs() -> None:
    grove, editor = await sample(config(agents={"editor": {"role": "editor"}, "bob": {"role": "editor"}}))
    bob = await hand(grove, "bob")
    await editor.ok("update_payload", nodeId="kitchen", patch={"status": "done", "new": 1})
    await bob.ok("tag_node", nodeId="kitchen", tags=["warm"])
    await bob.ok("move_node", nodeId="kitchen", newParentId="shed")
    await editor.ok("remove_node", nodeId="kitchen")
    items = (await editor.ok("node_history", nodeId="kitchen"))["items"]
    assert [(one["agent"], one["tool"]) for one in items] == [
        ("editor", "remove_node"),
        ("bob", "move_node"),
        ("bob", "tag_node"),
        ("editor", "update_payload"),
        ("editor", "import_merge"),
    ]
    removed, moved, tagged, updated, added = items
    assert ("new" not in removed, removed["old"]["parentId"]) == (True, "shed")
    assert (moved["old"], moved["new"]) == ({"parentId": "house"}, {"parentId": "shed"})
    assert set(tagged["new"]["tags"]) - set(tagged["old"]["tags"]) == {"warm"}
    assert updated["new"] == {"payload": {"status": "done", "new": 1}}
    assert set(updated["old"]["payload"]) == {"status"}
    assert ("old" not in added, added["new"]["payload"]["name"]) == (True, "Kitchen")
    assert all(one["at"].startswith("20") for one in items)
    first = await editor.ok("node_history", nodeId="kitchen", limit=2)
    rest = await editor.ok("node_history", nodeId="kitchen", limit=3, pageToken=first["nextPageToken"])
    assert first["items"] + rest["items"] == items
    assert (first["complete"], "hint" in first) == (True, False)
    assert (await editor.refused("node_history", nodeId="never"))["code"] == "not_found"


async def test_history_says_how_far_it_reaches() -> None:
    editor = await hand(Grove(config(workspace={"limits": {"history": 10}})))
    old = (await editor.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={"n": 0}))["nodeId"]
    for number in range(1, 30):
        await editor.ok("update_payload_property", nodeId=old, propertyName="n", newValue=number)
    told = await editor.ok("node_history", nodeId=old)
    assert told["complete"] is False
    assert f"the last {len(told['items'])} changes" in told["hint"]
    fresh = (await editor.ok("add_child", parentNodeId="root", payloadType="T"))["nodeId"]
    assert (await editor.ok("node_history", nodeId=fresh))["complete"] is True


async def test_history_and_moments_survive_a_restart(tmp_path: Path) -> None:
    settings = config(workspace={"store": f"sqlite:{tmp_path}/grove.db", "rulesets": RULESETS})
    async with Grove(settings) as grove:
        editor = await hand(grove)
        node = (await editor.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={"n": 0}))["nodeId"]
        version = await editor.version()
        await editor.ok("snapshot_create", label="s")
        changes = [{"op": "set", "at": node, "path": "n", "value": 1}, {"op": "tag", "at": node, "add": ["x"]}]
        await editor.ok(
            "apply_changes", changes=[*changes, {"op": "copy", "at": node, "parentId": "root", "mode": "reference"}]
        )
        before = [await editor.ok("node_history", nodeId=node), await editor.tree()]
    async with Grove(settings) as grove:
        editor = await hand(grove)
        assert [await editor.ok("node_history", nodeId=node), await editor.tree()] == before
        for moment in ("s1", version):
            assert (await editor.ok("get_subtree", nodeId=node, asOf=moment))["subtree"]["payload"] == {"n": 0}
        await editor.ok("restore_subtree", nodeId=node, snapshotId="s1")
        shown = await editor.ok("get_node", nodeId=node)
        assert (shown["payload"], "tags" in shown) == ({"n": 0}, False)


async def test_a_subtree_is_read_as_of_a_snapshot_or_a_version_in_every_form() -> None:
    _, editor = await sample()
    version = await editor.version()
    await editor.ok("snapshot_create", label="x")
    forms: list[Any] = [{}, {"depthLimit": 1}, {"format": "outline"}, {"pageSize": 2}, {"maxTokens": 300}]
    before = [await editor.ok("get_subtree", nodeId="house", **form) for form in forms]
    await editor.ok(
        "apply_changes",
        changes=[
            {"op": "remove", "at": "kitchen"},
            {"op": "set", "at": {"query": "#house/*"}, "path": "name", "value": "x"},
            {"op": "move", "at": "living", "parentId": "shed"},
            {"op": "tag", "at": "house", "add": ["sold"]},
            {"op": "add", "parentId": "house", "payloadType": "T"},
        ],
    )
    for moment in ("s1", version):
        for form, expected in zip(forms, before, strict=True):
            answer = await editor.ok("get_subtree", nodeId="house", asOf=moment, **form)
            for key in ("version", "nextPageToken"):
                assert (answer.pop(key, None) is None) == (key not in expected)
            assert answer == {key: value for key, value in expected.items() if key in answer}
    await editor.ok("remove_node", nodeId="house")
    assert (await editor.ok("get_subtree", nodeId="house", asOf="s1"))["subtree"] == before[0]["subtree"]
    assert (await editor.refused("get_subtree", nodeId="house", asOf="s9"))["reason"] == "moment"
    late = (await editor.ok("add_child", parentNodeId="root", payloadType="T"))["nodeId"]
    assert (await editor.refused("get_subtree", nodeId=late, asOf="s1"))["code"] == "not_found"


async def test_a_branch_comes_back_exactly_and_what_came_in_goes_back() -> None:
    _, editor = await sample()
    await editor.ok("snapshot_create", label="x")
    before = (await editor.ok("get_subtree", nodeId="house"))["subtree"]
    whole = await editor.tree()
    await editor.ok(
        "apply_changes",
        changes=[
            {"op": "move", "at": "shed", "parentId": "kitchen"},
            {"op": "set", "at": "shed", "path": "kept", "value": True},
            {"op": "add", "parentId": "shed", "payloadType": "T", "payload": {"name": "under the shed"}, "ref": "new"},
            {"op": "add", "parentId": "house", "payloadType": "T", "payload": {"name": "goes"}},
            {"op": "remove", "at": "living"},
            {"op": "sort", "at": "house", "by": "name", "direction": "desc"},
            {"op": "tag", "at": "kitchen", "add": ["x"], "remove": ["urgent"]},
            {"op": "unset", "at": "kitchen", "path": "name"},
        ],
    )
    changed = await editor.tree()
    answer = await editor.ok("restore_subtree", nodeId="house", snapshotId="s1")
    assert answer["sentBack"] == ["shed"]
    assert (await editor.ok("get_subtree", nodeId="house"))["subtree"] == before
    shed = (await editor.ok("get_subtree", nodeId="shed"))["subtree"]
    assert (shed["parentId"], shed["payload"]["kept"], len(shed["children"])) == ("property", True, 1)
    await editor.ok("undo")
    assert await editor.tree() == changed
    await editor.ok("snapshot_restore", snapshotId="s1")
    assert await editor.tree() == whole


async def test_a_parent_that_is_gone_is_told_with_the_call_that_brings_it_back() -> None:
    _, editor = await sample()
    await editor.ok("add_child", parentNodeId="shed", payloadType="T", payloadProps={"name": "rake"})
    rake = (await editor.ok("list_children", nodeId="shed"))["items"][0]["nodeId"]
    await editor.ok("snapshot_create", label="x")
    await editor.ok("move_node", nodeId=rake, newParentId="kitchen")
    await editor.ok("remove_node", nodeId="shed")
    before = await editor.tree()
    error = await editor.refused("restore_subtree", nodeId="house", snapshotId="s1")
    assert (error["code"], error["reason"], error["parentId"]) == ("conflict", "parent_gone", "shed")
    assert error["restore"] == {"nodeId": "shed", "snapshotId": "s1"}
    assert await editor.tree() == before
    await editor.ok("restore_subtree", **error["restore"])
    assert (await editor.ok("get_node", nodeId=rake))["parentId"] == "shed"
    await editor.ok("restore_subtree", nodeId="house", snapshotId="s1")
    await editor.ok("remove_node", nodeId="property")
    error = await editor.refused("restore_subtree", nodeId="kitchen", snapshotId="s1")
    assert error["restore"]["nodeId"] == "property"
    error = await editor.refused("restore_subtree", nodeId="never", snapshotId="s1")
    assert error["code"] == "not_found"


async def test_a_branch_outside_the_write_root_is_not_restored() -> None:
    agents = {"editor": {"role": "editor"}, "tenant": {"role": "editor", "writeRoot": "house"}}
    grove, editor = await sample(config(agents=agents))
    tenant = await hand(grove, "tenant")
    await editor.ok("snapshot_create", label="x")
    await editor.ok("apply_changes", changes=[{"op": "set", "at": ["kitchen", "shed"], "path": "a", "value": 1}])
    assert (await tenant.refused("restore_subtree", nodeId="shed", snapshotId="s1"))["reason"] == "write_root"
    await tenant.ok("restore_subtree", nodeId="house", snapshotId="s1")
    assert "a" not in (await editor.ok("get_node", nodeId="kitchen"))["payload"]


def flat(tree: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    stack = [(json.loads(tree), None)]
    while stack:
        node, parent = stack.pop()
        children = node.pop("children", [])
        found[node["nodeId"]] = {**node, "parent": parent, "below": [child["nodeId"] for child in children]}
        found[node["nodeId"]].pop("payloadGroup", None)
        stack += [(child, node["nodeId"]) for child in children]
    return found


def below(nodes: dict[str, Any], top: str) -> set[str]:
    return {top, *(one for child in nodes[top]["below"] for one in below(nodes, child))} if top in nodes else set()


async def shuffle(editor: Hand, rng: random.Random, times: int) -> None:
    for _ in range(times):
        ids = [one for one in flat(await editor.tree()) if one != "root"] or ["root"]
        one, two = rng.choice(ids), rng.choice([*ids, "root"])
        change: dict[str, Any] = rng.choice(
            [
                {
                    "op": "add",
                    "parentId": two,
                    "payloadType": "T",
                    "payload": {"n": rng.randint(0, 9)},
                    "index": rng.randint(0, 2),
                },
                {"op": "move", "at": one, "parentId": two, "index": rng.randint(0, 2)},
                {"op": "move", "at": one, "parentId": two},
                {"op": "set", "at": one, "path": "n", "value": rng.randint(0, 9)},
                {"op": "tag", "at": one, "add": [rng.choice("xy")]},
                {"op": "sort", "at": two, "by": "n"},
                {"op": "copy", "at": one, "parentId": two, "mode": "reference" if rng.random() < 0.3 else "duplicate"},
                *([{"op": "remove", "at": one}] if len(ids) > 6 else []),
            ]
        )
        if len(ids) < 30 or change["op"] != "copy":
            await editor("apply_changes", changes=[change])


@pytest.mark.parametrize("seed", range(8))
async def test_any_branch_comes_back_exactly_and_nothing_from_elsewhere_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    grove = Grove(config())
    grove._tree_tools.long_after = rng.choice([0, 1_000_000])
    editor = await hand(grove)
    await shuffle(editor, rng, 12)
    then = flat(await editor.tree())
    version = await editor.version()
    await editor.ok("snapshot_create", label="then")
    shown = {one: (await editor.ok("get_subtree", nodeId=one))["subtree"] for one in then}
    await shuffle(editor, rng, 14)
    for one in rng.sample(sorted(then), min(4, len(then))):
        for moment in ("s1", version):
            assert (await editor.ok("get_subtree", nodeId=one, asOf=moment))["subtree"] == shown[one]
        exported, unchanged = await editor.tree(), await editor.version()
        now = flat(exported)
        answer = await editor("restore_subtree", nodeId=one, snapshotId="s1")
        if "error" in answer:
            assert answer["error"]["reason"] == "parent_gone"
            assert answer["error"]["parentId"] not in now
            assert await editor.tree() == exported
            answer = await editor.ok("restore_subtree", **answer["error"]["restore"])
            one = answer["nodeId"]
        after = flat(await editor.tree())
        assert below(after, one) == below(then, one)
        for node_id in below(then, one):
            assert after[node_id] == then[node_id]
        inside = {key for top in below(then, one) for key in below(now, top)}
        assert {key for key in now if key in then} <= set(after)
        for key in set(now) - inside - below(then, one):
            assert after[key]["parent"] == now[key]["parent"]
        for key in inside & set(then) - below(then, one):
            assert after[key]["parent"] == then[key]["parent"]
        if answer["version"] != unchanged:
            await editor.ok("undo")
        assert await editor.tree() == exported
