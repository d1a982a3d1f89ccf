"""Long calls work beside the event loop: others go on, and see the tree before them or after them, never a part."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from grove_kit import config, hand
from toolgrove import Grove

pytestmark = pytest.mark.anyio
AGENTS = {name: {"role": "editor"} for name in ("editor", "other", "third")}


def document(count: int, above: str = "root", letter: str = "k") -> dict[str, Any]:
    return {
        "items": [
            {"nodeId": f"{letter}{at}", "parentId": above, "payloadType": "T", "payload": {"at": at, "round": 0}}
            for at in range(count)
        ]
    }


def settings(**workspace: Any) -> Any:
    return config(agents=AGENTS, workspace={"concurrency": "node", **workspace})


async def test_others_go_on_during_a_long_import_and_see_the_tree_before_or_after_it() -> None:
    grove = Grove(settings())
    editor, other = await hand(grove), await hand(grove, "other")
    work = asyncio.ensure_future(editor.ok("import_merge", json=document(6_000), strategy="upsert"))
    seen: list[tuple[int, str]] = []
    while not work.done():
        node = await other.ok("get_node", nodeId="root")
        seen.append((node["childrenCount"], node["version"]))
        await asyncio.sleep(0)
    assert len(seen) > 3
    assert {count for count, _ in seen} <= {0, 6_000}
    assert len({version for _, version in seen}) == len({count for count, _ in seen})
    assert (await work)["createdCount"] == 6_000
    assert (await other.ok("get_node", nodeId="root"))["childrenCount"] == 6_000


async def test_changes_during_a_long_one_come_before_or_after_it_and_all_of_them_stay() -> None:
    grove = Grove(settings())
    editor, other, third = await hand(grove), await hand(grove, "other"), await hand(grove, "third")
    await editor.ok("import_merge", json=document(4), strategy="upsert")
    await editor.ok("import_merge", json=document(3_000, "k0", "j"), strategy="upsert")
    version = await editor.version()
    copy = {"sourceId": "k0", "mode": "duplicate", "versionToken": version}
    works = [
        asyncio.ensure_future(editor.ok("copy_subtree", targetParentId="k1", **copy)),
        asyncio.ensure_future(third.ok("copy_subtree", targetParentId="k2", **copy)),
    ]
    count = 0
    while not all(work.done() for work in works):
        await other.ok("update_payload", nodeId="k3", patch={f"p{count}": count})
        await other.ok("bookmark", nodeId="k3", label=f"b{count}")
        await asyncio.sleep(0)
        count += 1
    copies = [(await work)["nodeId"] for work in works]
    assert [(await other.ok("get_node", nodeId=one))["childrenCount"] for one in copies] == [3_000, 3_000]
    assert len((await other.ok("get_node", nodeId="k3"))["payload"]) == 2 + count
    assert len((await other.ok("list_bookmarks"))["items"]) == count
    for agent in (editor, third):
        assert (await agent.ok("undo"))["nodeCount"] == 3_001


async def test_others_go_on_during_a_long_batch_and_see_all_of_it_or_nothing() -> None:
    grove = Grove(settings())
    editor, other = await hand(grove), await hand(grove, "other")
    await editor.ok("import_merge", json=document(3_000), strategy="upsert")
    changes = [
        {"op": "add", "parentId": "root", "payloadType": "T", "payload": {"name": "top"}, "ref": "top", "index": 0},
        {"op": "set", "at": {"query": "round = 0"}, "path": "round", "value": 1},
        {"op": "tag", "at": {"query": "round = 1"}, "add": ["seen"]},
        {"op": "move", "at": {"query": "@tag = seen"}, "parentId": {"ref": "top"}},
    ]
    work = asyncio.ensure_future(editor.ok("apply_changes", changes=changes))
    seen: set[tuple[int, bool]] = set()
    looks = 0
    while not work.done():
        root, leaf = await other.ok("get_node", nodeId="root"), await other.ok("get_node", nodeId="k2999")
        if root["version"] == leaf["version"]:
            seen.add((root["childrenCount"], "tags" in leaf))
        looks += 1
        await asyncio.sleep(0)
    assert looks > 3
    assert seen <= {(3_000, False), (1, True)}
    assert (await work)["counts"] == {"add": 1, "set": 3_000, "tag": 3_000, "move": 3_000}
    await editor.ok("undo")
    assert (await other.ok("get_node", nodeId="root"))["childrenCount"] == 3_000


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_a_long_read_never_sees_a_part_of_what_others_change_meanwhile(store: str, tmp_path: Path) -> None:
    place = "memory" if store == "memory" else f"sqlite:{tmp_path}/grove.db"
    async with Grove(settings(store=place)) as grove:
        editor, other = await hand(grove), await hand(grove, "other")
        await editor.ok("import_merge", json=document(400), strategy="upsert")
        grove._tree_tools.long_after = 0
        rounds = 0

        async def change() -> None:
            nonlocal rounds
            for at in range(1, 9):
                await editor.ok("update_nodes", filter="exists round", patch={"round": at})
                await editor.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={"round": at})
                rounds = at

        work = asyncio.ensure_future(change())
        exports: list[dict[str, Any]] = []
        while not work.done():
            before = rounds
            nodes = json.loads((await other.ok("export_subtree", nodeId="root"))["json"])["children"]
            assert len({node["payload"]["round"] for node in nodes}) == 1
            assert before <= nodes[0]["payload"]["round"] <= rounds + 1
            exports.append(nodes)
        await work
        assert len(exports) > 1
        assert (await other.ok("get_node", nodeId="root"))["childrenCount"] == 408


async def test_a_short_change_does_not_wait_for_a_long_read() -> None:
    grove = Grove(settings())
    editor, other = await hand(grove), await hand(grove, "other")
    await editor.ok("import_merge", json=document(20_000), strategy="upsert")
    version = await other.version()
    work = asyncio.ensure_future(editor.ok("export_subtree", nodeId="root"))
    await asyncio.sleep(0)
    flag = await other.ok("bookmark", nodeId="k0", label="first", versionToken=version)
    assert flag["nodeId"] == "k0"
    assert not work.done()
    await other.ok("tag_node", nodeId="k0", tags=["late"])
    assert "late" not in (await work)["json"]
    assert "late" in (await editor.ok("export_subtree", nodeId="root"))["json"]


async def test_a_long_change_that_is_refused_or_taken_back_leaves_nothing() -> None:
    editor = await hand(Grove(settings()))
    await editor.ok("import_merge", json=document(10), strategy="upsert")
    before = await editor.tree()
    broken = document(6_000, letter="j")
    broken["items"].append({"nodeId": "end", "parentId": "nowhere", "payloadType": "T"})
    assert (await editor.refused("import_merge", json=broken, strategy="upsert"))["code"] == "not_found"
    assert await editor.tree() == before
    dry = await editor.ok("import_merge", json=document(6_000, letter="j"), strategy="upsert", dryRun=True)
    assert len(dry["wouldChange"]["added"]) + dry["cut"]["left"]["wouldChange.added"] == 6_000
    assert await editor.tree() == before
    await editor.ok("import_merge", json=document(6_000, letter="j"), strategy="upsert")
    assert (await editor.ok("undo"))["nodeCount"] == 6_000
    assert await editor.tree() == before
    await editor.ok("redo")
    assert (await editor.ok("get_node", nodeId="root"))["childrenCount"] == 6_010


async def test_a_long_change_that_is_cancelled_is_there_whole_or_not_at_all() -> None:
    grove = Grove(settings())
    editor = await hand(grove)
    version = await editor.version()
    for steps in range(0, 60, 6):
        asked = {"json": document(2_000, letter=f"c{steps}-"), "strategy": "upsert", "versionToken": version}
        work = asyncio.ensure_future(editor.agent.call("import_merge", asked))
        for _ in range(steps):
            await asyncio.sleep(0)
        work.cancel()
        await asyncio.wait([work])
        node = await editor.ok("get_node", nodeId="root")
        assert node["childrenCount"] % 2_000 == 0
        version = node["version"]


async def test_a_long_change_is_in_the_store_when_it_is_answered(tmp_path: Path) -> None:
    chosen = settings(store=f"sqlite:{tmp_path}/grove.db")
    async with Grove(chosen) as grove:
        editor = await hand(grove)
        await editor.ok("import_merge", json=document(6_000), strategy="upsert")
        await editor.ok("copy_subtree", sourceId="k0", targetParentId="k1", mode="reference")
        await editor.ok("remove_node", nodeId="k2")
        before = await editor.tree()
    async with Grove(chosen) as grove:
        editor = await hand(grove)
        assert await editor.tree() == before
        for _ in range(3):
            await editor.ok("undo")
        assert (await editor.ok("get_node", nodeId="root"))["childrenCount"] == 0


async def test_every_record_of_a_long_call_is_as_complete_as_that_of_a_short_one() -> None:
    grove = Grove(settings())
    editor = await hand(grove)
    await editor.ok("import_merge", json=document(6_000), strategy="upsert")
    await editor.refused("import_merge", json={"items": document(6_000)["items"] * 2}, strategy="upsert")
    last, failed = [record for record in grove.audit if record["operation"] == "import_merge"]
    assert (last["outcome"], last["arguments"]["cut"]) == ("success", True)
    assert failed["outcome"] == "failure"
