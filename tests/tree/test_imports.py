"""Imported documents: ids of their own, several tops, cycles, twins and shared payloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grove_kit import Hand, config, hand
from toolgrove import Grove

pytestmark = pytest.mark.anyio


def item(node_id: str | None, parent_id: str | None = None, **payload: Any) -> dict[str, Any]:
    named = {"nodeId": node_id} if node_id is not None else {}
    above = {"parentId": parent_id} if parent_id is not None else {}
    return {**named, **above, "payloadType": "T", "payload": payload}


async def merge(editor: Hand, *items: dict[str, Any], strategy: str = "upsert", **more: Any) -> dict[str, Any]:
    return await editor.ok("import_merge", json={"items": list(items)}, strategy=strategy, **more)


async def children(editor: Hand, node_id: str) -> list[str]:
    return [one["nodeId"] for one in (await editor.ok("list_children", nodeId=node_id))["items"]]


LARGE = ("n9999999999999999", "n10000000000000000", "n999999999999999", "n1000000000000000")


@pytest.mark.parametrize("last", LARGE)
async def test_a_new_node_never_takes_the_id_of_an_imported_one(last: str) -> None:
    editor = await hand(Grove())
    await merge(editor, *(item(node_id, "root", name=node_id) for node_id in LARGE), item("kid", last))
    before = await editor.tree()
    made = [(await editor.ok("add_child", parentNodeId="root", payloadType="T"))["nodeId"] for _ in range(3)]
    assert not {*made} & {*LARGE}
    for _ in made:
        await editor.ok("undo")
    assert await editor.tree() == before


async def test_a_new_node_never_takes_the_id_of_one_that_was_imported_and_removed() -> None:
    editor = await hand(Grove())
    await merge(editor, *(item(node_id, "root") for node_id in LARGE))
    before = await editor.tree()
    for node_id in LARGE:
        await editor.ok("remove_node", nodeId=node_id)
    made = {(await editor.ok("add_child", parentNodeId="root", payloadType="T"))["nodeId"] for _ in range(3)}
    assert not made & {*LARGE}
    for _ in range(len(made) + len(LARGE)):
        await editor.ok("undo")
    assert await editor.tree() == before


async def test_a_store_opens_again_after_a_new_node_beside_imported_ids_was_taken_back(tmp_path: Path) -> None:
    settings = config(workspace={"store": f"sqlite:{tmp_path}/grove.db"})
    async with Grove(settings) as grove:
        editor = await hand(grove)
        await merge(editor, *(item(node_id, "root") for node_id in LARGE), item("kid", LARGE[1]))
        before = await editor.tree()
        await editor.ok("add_child", parentNodeId="root", payloadType="T")
        await editor.ok("undo")
    async with Grove(settings) as grove:
        assert await (await hand(grove)).tree() == before


async def test_a_node_without_an_id_never_takes_one_that_its_document_names_later() -> None:
    editor = await hand(Grove())
    done = await merge(editor, item(None, "root", name="first"), item("n1", "root", name="second"))
    assert done["createdCount"] == 2
    named = [node["payload"]["name"] for node in (await editor.ok("list_children", nodeId="root"))["items"]]
    assert named == ["first", "second"]


async def test_replacing_several_tops_keeps_a_listed_node_that_stands_below_another() -> None:
    editor = await hand(Grove())
    await merge(editor, item("p", "root"), item("q", "p"), item("r", "q"), item("s", "p"))
    done = await merge(editor, item("p", x=1), item("q", x=1), strategy="replace")
    assert (done["updated"], sorted(done["removed"])) == (["p", "q"], ["r", "s"])
    assert await children(editor, "p") == ["q"]
    assert await children(editor, "q") == []


async def test_replacing_keeps_the_way_to_a_listed_node_and_removes_what_is_beside_it() -> None:
    editor = await hand(Grove())
    await merge(editor, item("p", "root"), item("x", "p"), item("y", "x"), item("q", "x"), item("z", "p"))
    done = await merge(editor, item("p"), item("q"), strategy="replace")
    assert sorted(done["removed"]) == ["y", "z"]
    assert await children(editor, "p") == ["x"]
    assert await children(editor, "x") == ["q"]


async def test_replacing_orders_the_listed_children_before_those_that_only_stay() -> None:
    editor = await hand(Grove())
    await merge(editor, item("p", "root"), item("q", "p"), item("a", "p"), item("b", "p"))
    await merge(editor, item("p"), item("b", "p"), item("a", "p"), item("q"), strategy="replace")
    assert await children(editor, "p") == ["b", "a", "q"]


async def test_what_a_replacement_tells_is_what_is_there() -> None:
    editor = await hand(Grove())
    await merge(editor, item("p", "root"), item("q", "p"), item("r", "q"), item("s", "r"), item("t", "root"))
    document = (item("s", n=1), item("q", n=1), item("new"), item("t", "s"), item("p"))
    done = await merge(editor, *document, strategy="replace")
    nodes = {hit["nodeId"] for hit in (await editor.ok("select_nodes", queryDsl="//*"))["items"]}
    assert {*done["created"], *done["updated"]} <= nodes
    assert not nodes & {*done["removed"]}
    assert nodes == {"p", "q", "r", "s", "t", "new"}


@pytest.mark.parametrize("strategy", ["upsert", "replace", "skip"])
@pytest.mark.parametrize("form", ["nested", "flat", "outside"])
async def test_a_document_with_the_root_below_another_node_is_a_cycle(strategy: str, form: str) -> None:
    editor = await hand(Grove())
    await merge(editor, item("a", "root"), item("b", "a"))
    before = await editor.tree()
    root = {"nodeId": "root", "payloadType": "Root"}
    documents: dict[str, dict[str, Any]] = {
        "nested": {"nodeId": "x", "payloadType": "T", "children": [root]},
        "flat": {"items": [item("x"), {**root, "parentId": "x"}]},
        "outside": {"items": [{**root, "parentId": "a"}]},
    }
    error = await editor.refused("import_merge", json=documents[form], strategy=strategy)
    assert (error["code"], error["reason"], error["nodeIds"]) == ("invalid_argument", "cycle", ["root"])
    assert await editor.tree() == before


async def test_twins_in_a_document_are_told_by_name_and_no_id_is_made_up() -> None:
    editor = await hand(Grove())
    twins = [{"payloadType": "Task", "payload": {"name": "Task 1.1"}} for _ in range(2)]
    document = {"payloadType": "Task", "payload": {"name": "Task 1"}, "children": twins}
    error = await editor.refused("import_merge", json=document, strategy="upsert", matchBy="path")
    assert (error["code"], error["reason"]) == ("conflict", "ambiguous_path")
    assert "'Task 1.1'" in error["message"]
    assert "the document" in error["message"].lower()
    assert "nodeIds" not in error
    assert "n1" not in error["message"]


async def test_a_plain_json_tree_is_told_which_shape_is_wanted() -> None:
    editor = await hand(Grove())
    error = await editor.refused("import_merge", json={"name": "a", "children": []}, strategy="upsert")
    assert error["code"] == "invalid_argument"
    assert "None" not in error["message"]
    for part in ("payloadType", "payload", "children", "nodeId"):
        assert part in error["message"]


async def test_shared_payloads_survive_an_export_and_an_import_elsewhere() -> None:
    editor = await hand(Grove())
    await merge(editor, item("a", "root", name="a"), item("b", "a", n=1), item("c", "root"))
    await editor.ok("copy_subtree", sourceId="a", targetParentId="c", mode="reference")
    exported = await editor.tree()
    other = await hand(Grove())
    await other.ok("import_merge", json=exported, strategy="upsert")
    assert await other.tree() == exported
    changed = await other.ok("update_payload", nodeId="b", patch={"n": 2})
    assert len(changed["nodeIds"]) == 2
    for strategy in ("upsert", "replace", "skip"):
        again = await editor.ok("import_merge", json=exported, strategy=strategy)
        assert (again["createdCount"], again["updatedCount"], again["removedCount"]) == (0, 0, 0)
    assert await editor.tree() == exported


async def test_an_export_names_no_sharing_with_nodes_outside_of_it() -> None:
    editor = await hand(Grove())
    await merge(editor, item("a", "root", name="a"), item("c", "root"))
    await editor.ok("copy_subtree", sourceId="a", targetParentId="c", mode="reference")
    assert "payloadGroup" not in (await editor.ok("export_subtree", nodeId="a"))["json"]
    assert (await editor.tree()).count("payloadGroup") == 2


async def test_nodes_that_shall_share_a_payload_must_agree_on_it() -> None:
    editor = await hand(Grove())
    twins = [{**item(key, "root", n=at), "payloadGroup": "p1"} for at, key in enumerate("ab")]
    error = await editor.refused("import_merge", json={"items": twins}, strategy="upsert")
    assert (error["code"], error["reason"]) == ("invalid_argument", "document")
    assert "p1" in error["message"]


async def test_an_upsert_takes_no_property_from_a_node_that_did_not_share_before() -> None:
    editor = await hand(Grove())
    await merge(editor, item("a", "root", n=1), item("b", "root", n=1, own=True))
    twins = [{**item(key, "root", n=1), "payloadGroup": "p1"} for key in "ab"]
    await merge(editor, *twins)
    assert (await editor.ok("get_node", nodeId="b"))["payload"] == {"n": 1, "own": True}
    await merge(editor, *twins, strategy="replace")
    assert (await editor.ok("get_node", nodeId="b"))["sharedWith"] == ["a"]


async def test_sharing_shows_wherever_a_node_does_and_ends_with_the_last_other_holder() -> None:
    editor = await hand(Grove())
    await merge(editor, item("a", "root", name="a"), item("b", "root"))
    copy = (await editor.ok("copy_subtree", sourceId="a", targetParentId="b", mode="reference"))["nodeId"]
    node = await editor.ok("get_node", nodeId="a")
    assert node["sharedWith"] == [copy]
    group = node["payloadGroup"]
    view = await editor.ok("get_subtree", nodeId="root")
    assert json.dumps(view).count(f'"payloadGroup": "{group}"') == 2
    hits = (await editor.ok("select_nodes", queryDsl="name = a"))["items"]
    assert [hit["payloadGroup"] for hit in hits] == [group, group]
    outline = await editor.ok("get_subtree", nodeId="root", format="outline")
    assert outline["outline"].count(f"={group}") == 2
    await editor.ok("remove_node", nodeId="b")
    alone = await editor.ok("get_node", nodeId="a")
    assert "payloadGroup" not in alone
    assert "sharedWith" not in alone
