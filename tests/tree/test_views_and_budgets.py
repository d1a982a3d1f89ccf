"""What a session has opened and closed, and answers that keep to a budget and tell what they left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grove_kit import Hand, config, hand
from toolgrove import Grove

pytestmark = pytest.mark.anyio


async def grown(*, width: int = 9, depth: int = 3, **limits: Any) -> Hand:
    """A full tree, its nodes named by their way from the root."""
    editor = await hand(Grove(config(workspace={"limits": limits})))
    level = [("root", "r")]
    items: list[dict[str, Any]] = []
    for _ in range(depth):
        level = [(name, f"{name}-{at}") for _, name in level for at in range(width)]
        items += [
            {"nodeId": key, "parentId": above if above != "r" else "root", "payloadType": "T", "payload": {"name": key}}
            for above, key in level
        ]
    await editor.ok("import_merge", json={"items": items}, strategy="upsert")
    return editor


async def chain(length: int) -> Hand:
    editor = await hand(Grove())
    items = [
        {"nodeId": f"d{at}", "parentId": f"d{at - 1}" if at else "root", "payloadType": "T"} for at in range(length)
    ]
    await editor.ok("import_merge", json={"items": items}, strategy="upsert")
    return editor


def names(shown: dict[str, Any]) -> list[str]:
    return [shown["nodeId"], *(name for child in shown.get("children", ()) for name in names(child))]


@pytest.mark.requirement("TREE-001-03")
@pytest.mark.parametrize(
    ("tool", "arguments", "shown"),
    [
        ("collapse_all", {"rootNodeId": "root"}, ["root"]),
        ("collapse_node", {"nodeId": "r-0"}, ["root", "r-0", "r-1", "r-1-0", "r-1-1"]),
        ("set_expansion_recursive", {"nodeId": "root", "expanded": False, "maxDepth": 0}, ["root"]),
    ],
)
async def test_what_was_closed_stays_closed_in_a_read_that_opens_the_rest(
    tool: str, arguments: dict[str, Any], shown: list[str]
) -> None:
    editor = await grown(width=2, depth=2)
    answer = await editor.ok(tool, **arguments)
    assert answer["changedCount"] > 0
    view = await editor.ok("get_view", rootNodeId="root", defaultExpanded=True)
    assert names(view["view"]) == shown
    assert (await editor.ok(tool, **arguments))["changedCount"] == 0


async def test_what_was_opened_stays_open_where_the_default_was_open_and_is_closed_in_a_read() -> None:
    editor = await grown(width=2, depth=2)
    view = {"viewRoot": {"rootNodeId": "root", "defaultExpanded": True}}
    await editor.ok("import_view", viewJson=view, payloadTypes=["Root", "T"])
    await editor.ok("expand_node", nodeId="root")
    shown = await editor.ok("get_view", rootNodeId="root", defaultExpanded=False)
    assert names(shown["view"]) == ["root", "r-0", "r-1"]


@pytest.mark.long
@pytest.mark.parametrize("tool", ["get_view", "get_subtree"])
@pytest.mark.parametrize("form", ["json", "outline"])
@pytest.mark.parametrize("budget", [150, 1_000])
async def test_pages_keep_to_the_budget_and_go_on_where_they_ended(tool: str, form: str, budget: int) -> None:
    editor = await grown()
    asked: dict[str, Any] = {"maxTokens": budget, "format": form, "pageSize": 200}
    asked |= {"rootNodeId": "root", "defaultExpanded": True} if tool == "get_view" else {"nodeId": "root"}
    whole = await editor.ok(tool, **{**asked, "format": "outline", "maxTokens": 10**6, "pageSize": 200})
    seen: list[str] = []
    pages = 0
    while True:
        page = await editor.ok(tool, **asked)
        assert len(json.dumps(page)) / 4 <= budget
        assert ("outline" in page) == (form == "outline")
        seen += page["outline"].splitlines() if form == "outline" else [item["nodeId"] for item in page["items"]]
        pages += 1
        if "nextPageToken" not in page:
            break
        asked["pageToken"] = page["nextPageToken"]
    assert pages > 1
    assert len(seen) == 1 + 9 + 81 + 729
    assert [line.split()[0] for line in seen][:200] == [line.split()[0] for line in whole["outline"].splitlines()]


async def test_a_page_has_at_least_one_node_however_small_the_budget() -> None:
    editor = await grown(width=2, depth=1)
    first = await editor.ok("get_subtree", nodeId="root", maxTokens=1, pageSize=5)
    assert [item["nodeId"] for item in first["items"]] == ["root"]
    rest = await editor.ok("get_subtree", nodeId="root", maxTokens=10_000, pageSize=5, pageToken=first["nextPageToken"])
    assert [item["nodeId"] for item in rest["items"]] == ["r-0", "r-1"]


async def test_a_paged_outline_counts_the_children_that_a_view_hides() -> None:
    editor = await grown(width=2, depth=2)
    await editor.ok("expand_node", nodeId="root")
    page = await editor.ok("get_view", rootNodeId="root", format="outline", pageSize=2, includedProperties=["none"])
    assert page["outline"].splitlines() == ["root Root", "  r-0 T +2"]


def shown_in(document: Any) -> int:
    return json.dumps(document).count("payloadType")


@pytest.mark.parametrize("budget", [100, 300, 3_000])
async def test_what_is_cut_is_told_as_the_true_rest(budget: int) -> None:
    editor = await grown()
    total = 1 + 9 + 81 + 729
    subtree = await editor.ok("get_subtree", nodeId="root", maxTokens=budget)
    assert subtree["cut"]["nodes"] + shown_in(subtree["subtree"]) == total
    view = await editor.ok("get_view", rootNodeId="root", defaultExpanded=True, maxTokens=budget, format="outline")
    assert view["cut"]["nodes"] + len(view["outline"].splitlines()) == total
    limited = await editor.ok("get_subtree", nodeId="root", maxTokens=budget, depthLimit=2)
    left = limited["cut"]["nodes"] if "cut" in limited else 0
    assert left + shown_in(limited["subtree"]) == 1 + 9 + 81
    exported = await editor.ok("export_subtree", nodeId="root", maxTokens=budget)
    assert exported["cut"]["nodes"] + shown_in(json.loads(exported["json"])) == total
    assert len(json.dumps(exported)) / 4 <= max(budget, 150)
    await editor.ok("expand_all", rootNodeId="root")
    await editor.ok("collapse_node", nodeId="r-8")
    seen = await editor.ok("export_view", rootNodeId="root", includeViewRoot=False, maxTokens=budget)
    assert seen["cut"]["nodes"] + shown_in(json.loads(seen["viewJson"])) == total - 9 - 81
    assert len(json.dumps(seen)) / 4 <= max(budget, 150)


async def test_an_answer_that_opens_many_nodes_says_how_many_it_does_not_echo() -> None:
    editor = await grown()
    answer = await editor.ok("expand_all", rootNodeId="root")
    assert answer["cut"]["nodes"] + shown_in(answer["view"]) == 1 + 9 + 81 + 729


async def test_a_deep_export_is_whole_while_its_budget_lasts_and_says_what_is_missing_after_that() -> None:
    editor = await chain(40)
    whole = await editor.ok("export_subtree", nodeId="d0", maxTokens=1_000_000)
    assert "cut" not in whole
    other = await hand(Grove())
    await other.ok("import_merge", json=whole["json"], strategy="replace")
    plain = (await editor.ok("export_subtree", nodeId="d0"))["json"]
    assert (await other.ok("export_subtree", nodeId="d0"))["json"] == plain
    some = await editor.ok("export_subtree", nodeId="d0", maxTokens=300)
    assert some["cut"]["nodes"] + shown_in(json.loads(some["json"])) == 40
    error = await other.refused("import_merge", json=some["json"], strategy="replace")
    assert "moreChildren" in error["message"]


async def test_a_nested_answer_that_ends_for_its_depth_does_not_ask_for_a_larger_budget() -> None:
    editor = await chain(40)
    cut = (await editor.ok("get_subtree", nodeId="root", maxTokens=100_000))["cut"]
    assert cut["nodes"] == 8
    assert "maxTokens" not in cut["hint"]
