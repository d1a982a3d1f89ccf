"""Deep, wide and real trees: nothing recurses, nothing costs more than what it returns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grove_kit import Hand, config, hand
from real_trees import icd_items, icd_raw, world_items
from toolgrove import Grove

pytestmark = [pytest.mark.anyio, pytest.mark.long]
DEEP = 5_000
WIDE = 99_999


async def grown(items: list[dict[str, Any]]) -> Hand:
    editor = await hand(Grove(config(workspace={"limits": {"importNodes": 500_000}})))
    answer = await editor.ok("import_merge", json={"items": items}, strategy="upsert", matchBy="nodeId")
    assert answer["createdCount"] == len(items)
    return editor


def chain() -> list[dict[str, Any]]:
    return [
        {"nodeId": f"d{at}", "parentId": f"d{at - 1}" if at else "root", "payloadType": "T", "payload": {"at": at}}
        for at in range(DEEP)
    ]


async def test_five_thousand_levels_are_read_searched_changed_and_copied() -> None:
    editor = await grown(chain())
    last = f"d{DEEP - 1}"
    assert len((await editor.ok("get_path", nodeId=last, maxTokens=10**6))["path"]) == DEEP + 1
    view = await editor.ok("get_view", rootNodeId="root", defaultExpanded=True)
    assert view["cut"]["children"] == 1
    assert json.dumps(view).count("moreChildren") == 1
    found = await editor.ok("select_nodes", queryDsl=f"ancestor(at = 0) and at >= {DEEP - 2}", limit=1)
    rest = await editor.ok(
        "select_nodes", queryDsl=f"ancestor(at = 0) and at >= {DEEP - 2}", limit=1, pageToken=found["nextPageToken"]
    )
    assert [found["items"][0]["nodeId"], rest["items"][0]["nodeId"]] == [f"d{DEEP - 2}", last]
    assert (await editor.ok("get_common_ancestor", nodeIds=[last, "d17"]))["nodeId"] == "d17"
    exported = (await editor.ok("export_subtree", nodeId="d0"))["json"]
    other = await hand(Grove())
    await other.ok("import_merge", json=exported, strategy="upsert", matchBy="nodeId")
    assert (await other.ok("export_subtree", nodeId="d0"))["json"] == exported
    copy = await editor.ok("copy_subtree", sourceId="d2500", targetParentId="root", mode="duplicate")
    diff = await editor.ok("diff_subtree", aId="d2500", bId=copy["nodeId"])
    assert not any(diff[name] for name in ("added", "removed", "moved", "reordered", "changed"))
    await editor.ok("expand_all", rootNodeId="root")
    await editor.ok("snapshot_create", label="x")
    assert (await editor.ok("remove_node", nodeId="d1"))["removedCount"] == DEEP - 1
    await editor.ok("undo")
    assert (await editor.ok("get_node", nodeId=last))["parentId"] == f"d{DEEP - 2}"
    assert (await editor.refused("move_node", nodeId="d0", newParentId=last))["code"] == "invalid_argument"


async def test_pages_reach_the_bottom_of_a_deep_tree() -> None:
    editor = await grown(chain()[:2_000])
    seen = 0
    token: dict[str, str] = {}
    while True:
        page = await editor.ok("get_subtree", nodeId="root", pageSize=200, **token)
        assert [item["depth"] for item in page["items"]] == list(range(seen, seen + len(page["items"])))
        seen += len(page["items"])
        if "nextPageToken" not in page:
            break
        token = {"pageToken": page["nextPageToken"]}
    assert seen == 2_001


async def test_a_hundred_thousand_children_are_listed_sorted_moved_and_cut() -> None:
    items = [
        {"nodeId": f"w{at}", "parentId": "root", "payloadType": "T", "payload": {"at": WIDE - at}} for at in range(WIDE)
    ]
    editor = await grown(items)
    first = await editor.ok("list_children", nodeId="root", limit=200)
    second = await editor.ok("list_children", nodeId="root", limit=200, pageToken=first["nextPageToken"])
    assert second["items"][0]["nodeId"] == "w200"
    small = await editor.ok("get_view", rootNodeId="root", defaultExpanded=True, maxTokens=500)
    assert len(json.dumps(small)) / 4 <= 500
    assert small["view"]["moreChildren"] + len(small["view"]["children"]) == WIDE
    await editor.ok("move_before", nodeId=f"w{WIDE - 1}", siblingId="w0")
    await editor.ok("sort_children", parentId="root", byProp="at")
    found = await editor.ok("select_nodes", queryDsl="@index = 5 or @index = 99998")
    assert [hit["payload"]["at"] for hit in found["items"]] == [6, WIDE]
    refused = await editor.refused("expand_all", rootNodeId="root") if WIDE > 100_000 else None
    assert refused is None


@pytest.mark.parametrize("budget", [60, 200, 1_000, 5_000])
@pytest.mark.parametrize("form", ["json", "outline"])
async def test_an_answer_keeps_to_its_token_budget_and_says_what_it_cut(budget: int, form: str) -> None:
    editor = await grown([dict(item) for item in icd_items()[:3_000]])
    answer = await editor.ok("get_subtree", nodeId="root", maxTokens=budget, format=form)
    assert len(json.dumps(answer)) / 4 <= max(budget, 100)
    assert answer["cut"]["children"] > 0
    exported = await editor.ok("export_subtree", nodeId="root", maxTokens=budget)
    assert len(json.dumps(exported)) / 4 <= max(budget, 100)
    assert "moreChildren" in exported["json"]
    refused = await editor.refused("import_merge", json=exported["json"], strategy="replace", matchBy="nodeId")
    assert refused["code"] == "invalid_argument"


@pytest.mark.long
async def test_the_icd_catalogue_is_refused_as_published_and_works_once_every_node_is_itself() -> None:
    editor = await hand(Grove(config(workspace={"limits": {"importNodes": 200_000}})))
    raw = [dict(item) for item in icd_raw()]
    twice = await editor.refused("import_merge", json={"items": raw}, strategy="upsert", matchBy="nodeId")
    assert twice["reason"] == "duplicate_ids"
    assert "B10" in twice["nodeIds"]
    once = list({item["nodeId"]: item for item in raw}.values())
    circle = await editor.refused("import_merge", json={"items": once}, strategy="upsert", matchBy="nodeId")
    assert circle["reason"] == "cycle"
    assert "B10" in circle["nodeIds"]
    whole = await grown(list(icd_items()))
    assert (await whole.ok("get_path", nodeId="A00.0"))["path"][-2]["name"] == "A00"
    found = await whole.ok(
        "select_nodes", queryDsl='title contains cholera and @type = Code and not title contains "due to"'
    )
    assert {"A00", "Z22.1"} & {hit["nodeId"] for hit in found["items"]}
    removed = await whole.ok("remove_node", nodeId="A00-A09")
    assert removed["removedCount"] > 50
    await whole.ok("undo")
    assert (await whole.ok("get_node", nodeId="A00.0"))["payload"]["name"] == "A00.0"


@pytest.mark.long
async def test_the_cities_of_the_world_are_found_and_sorted() -> None:
    items = world_items()
    assert len(items) > 200_000
    editor = await grown(items)
    top = await editor.ok(
        "search_advanced",
        rootId="c-FR",
        predicates={"path": "population", "op": "gt", "value": 200_000},
        sortBy={"path": "population", "direction": "desc"},
        limit=3,
    )
    assert [hit["payload"]["name"] for hit in top["items"]][:2] == ["Paris", "Marseille"]
    view = await editor.ok("get_view", rootNodeId="root", defaultExpanded=True, maxTokens=300, format="outline")
    assert len(json.dumps(view)) < 1_300
