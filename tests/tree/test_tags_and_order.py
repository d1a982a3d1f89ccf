"""Tags show wherever nodes are shown, diffs tell places, imports bring their order, and rules can be read."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from grove_kit import sample
from toolgrove.tools.sample import RULESETS

pytestmark = pytest.mark.anyio


async def test_every_read_shows_the_tags_of_a_node() -> None:
    _, editor = await sample()
    await editor.ok("tag_node", nodeId="kitchen", tags=["warm", "big"])
    shown: list[Any] = [
        await editor.ok("get_node", nodeId="kitchen"),
        (await editor.ok("query_by_tag", tag="warm"))["items"][0],
        (await editor.ok("select_nodes", queryDsl="#kitchen"))["items"][0],
        (await editor.ok("get_subtree", nodeId="kitchen"))["subtree"],
        (await editor.ok("get_subtree", nodeId="kitchen", pageSize=1))["items"][0],
        (await editor.ok("get_view", rootNodeId="kitchen"))["view"],
        next(one for one in (await editor.ok("list_children", nodeId="house"))["items"] if one["nodeId"] == "kitchen"),
        json.loads((await editor.ok("export_view", rootNodeId="kitchen"))["viewJson"])["view"],
    ]
    assert [set(one["tags"]) >= {"big", "warm"} for one in shown] == [True] * len(shown)
    outline = (await editor.ok("get_subtree", nodeId="kitchen", format="outline"))["outline"]
    assert '"big"' in outline.splitlines()[0]


async def test_tags_are_listed_with_their_counts_below_any_node_and_in_pages() -> None:
    _, editor = await sample()
    for tag in (await editor.ok("list_tags"))["items"]:
        for hit in (await editor.ok("query_by_tag", tag=tag["tag"]))["items"]:
            await editor.ok("tag_node", nodeId=hit["nodeId"], tags=[], remove=[tag["tag"]])
    for node_id, tags in (("kitchen", ["a", "b"]), ("living", ["b"]), ("shed", ["b", "c"])):
        await editor.ok("tag_node", nodeId=node_id, tags=tags)
    everywhere = [{"tag": "b", "count": 3}, {"tag": "a", "count": 1}, {"tag": "c", "count": 1}]
    assert (await editor.ok("list_tags"))["items"] == everywhere
    assert (await editor.ok("list_tags", rootNodeId="house"))["items"] == [
        {"tag": "b", "count": 2},
        {"tag": "a", "count": 1},
    ]
    first = await editor.ok("list_tags", limit=2)
    rest = await editor.ok("list_tags", limit=2, pageToken=first["nextPageToken"])
    assert first["items"] + rest["items"] == everywhere


async def test_a_diff_tells_tags_places_and_parents() -> None:
    _, editor = await sample()
    await editor.ok("tag_node", nodeId="kitchen", tags=["warm"])
    place = [one["nodeId"] for one in (await editor.ok("list_children", nodeId="house"))["items"]].index("kitchen")
    tags = (await editor.ok("get_node", nodeId="kitchen"))["tags"]
    await editor.ok("snapshot_create", label="x")
    await editor.ok("update_payload", nodeId="living", patch={"status": "new"})
    await editor.ok("move_node", nodeId="living", newParentId="shed")
    await editor.ok("remove_node", nodeId="kitchen")
    diff = await editor.ok("snapshot_diff", a="s1", b="current")
    assert (diff["removed"][0]["tags"], diff["removed"][0]["parentId"], diff["removed"][0]["index"]) == (
        tags,
        "house",
        place,
    )
    assert (diff["moved"][0]["newParentId"], diff["moved"][0]["newIndex"]) == ("shed", 0)
    assert diff["changed"][0]["parentId"] == "shed"


@pytest.mark.parametrize("strategy", ["upsert", "replace"])
async def test_an_import_brings_a_new_order_of_siblings(strategy: str) -> None:
    _, editor = await sample()
    document = json.loads((await editor.ok("export_subtree", nodeId="house"))["json"])
    before = await editor.tree()
    again = await editor.ok("import_merge", json=copy.deepcopy(document), strategy=strategy)
    assert (again["updatedCount"], await editor.tree()) == (0, before)
    wanted = [child["nodeId"] for child in reversed(document["children"])]
    document["children"].reverse()
    answer = await editor.ok("import_merge", json=document, strategy=strategy)
    assert [one["nodeId"] for one in (await editor.ok("list_children", nodeId="house"))["items"]] == wanted
    assert set(answer["updated"]) <= set(wanted)
    assert answer["updatedCount"] >= 2
    await editor.ok("undo")
    assert await editor.tree() == before


async def test_a_partial_import_orders_what_it_lists_and_leaves_the_others_in_their_places() -> None:
    _, editor = await sample()
    names = "abxc"
    tree = {"nodeId": "p", "payloadType": "T", "children": [{"nodeId": name, "payloadType": "T"} for name in names]}
    await editor.ok("import_merge", json=tree, strategy="upsert")
    children = [{"nodeId": name, "payloadType": "T"} for name in "cab"]
    await editor.ok("import_merge", json={"nodeId": "p", "payloadType": "T", "children": children}, strategy="upsert")
    assert [one["nodeId"] for one in (await editor.ok("list_children", nodeId="p"))["items"]] == ["c", "a", "x", "b"]
    await editor.ok("import_merge", json={**tree, "children": tree["children"][::-1]}, strategy="skip")
    assert [one["nodeId"] for one in (await editor.ok("list_children", nodeId="p"))["items"]] == ["c", "a", "x", "b"]


async def test_the_rules_of_a_ruleset_can_be_read() -> None:
    _, editor = await sample()
    name, rules = next(iter(RULESETS.items()))
    told = (await editor.ok("get_ruleset", rulesetId=name))["rules"]
    assert len(told) == len(rules)
    for rule, given in zip(told, rules, strict=True):
        assert {**rule, **given, "types": sorted(given.get("types", []))} == {**rule, "types": rule.get("types", [])}
    assert (await editor.refused("get_ruleset", rulesetId="none"))["code"] == "not_found"
