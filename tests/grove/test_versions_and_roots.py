"""Versions, concurrency modes, write roots, sessions and undo among several agents."""

from __future__ import annotations

from typing import Any

import pytest

from grove_kit import Hand, config, hand, sample
from toolgrove import Grove
from toolgrove.errors import AgentNotFound

pytestmark = pytest.mark.anyio
TWO = {"editor": {"role": "editor"}, "second": {"role": "editor"}}


async def two(**workspace: Any) -> tuple[Hand, Hand]:
    grove, first = await sample(config(agents=TWO, workspace=workspace))
    return first, await hand(grove, "second")


async def test_a_version_is_current_until_the_tree_or_the_callers_own_view_changes() -> None:
    first, second = await two()
    token = await first.version()
    await second.ok("expand_node", nodeId="root")
    await second.ok("bookmark", nodeId="house", label="x")
    await second.ok("snapshot_create", label="x")
    await first.ok("expand_node", nodeId="house", versionToken=token)
    assert (await first.refused("collapse_node", nodeId="house", versionToken=token))["code"] == "conflict"
    token = await second.version()
    await first.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={})
    assert (await second.refused("collapse_node", nodeId="root", versionToken=token))["changedNodeIds"] == ["n1"]


async def test_the_version_moves_on_success_only_and_not_for_a_change_that_changes_nothing() -> None:
    first, _ = await two()
    version = await first.version()
    await first.refused("move_node", nodeId="house", newParentId="kitchen")
    await first.refused("remove_node", nodeId="root")
    await first.refused("update_payload", nodeId="nowhere", patch={})
    same = await first.ok("update_payload_property", nodeId="shed", propertyName="squareFeet", newValue=80)
    assert (same["version"], same["nodeIds"]) == (version, [])
    assert await first.version() == version
    other = await first.ok("update_payload_property", nodeId="shed", propertyName="squareFeet", newValue=80.0)
    assert other["version"] != version
    boolean = await first.ok("update_payload_property", nodeId="shed", propertyName="squareFeet", newValue=True)
    assert (await first.ok("get_node", nodeId="shed"))["payload"]["squareFeet"] is True
    assert boolean["nodeIds"] == ["shed"]


NODE_CASES: list[tuple[str, dict[str, Any], str, dict[str, Any], bool]] = [
    # what the other agent does, what we do with the older token, whether that is a conflict
    (
        "update_payload_property",
        {"nodeId": "shed", "propertyName": "a", "newValue": 1},
        "update_payload",
        {"nodeId": "kitchen", "patch": {"b": 1}},
        False,
    ),
    (
        "update_payload_property",
        {"nodeId": "kitchen", "propertyName": "a", "newValue": 1},
        "update_payload",
        {"nodeId": "kitchen", "patch": {"b": 1}},
        True,
    ),
    (
        "add_child",
        {"parentNodeId": "house", "payloadType": "T"},
        "add_child",
        {"parentNodeId": "property", "payloadType": "T"},
        False,
    ),
    (
        "add_child",
        {"parentNodeId": "house", "payloadType": "T"},
        "add_child",
        {"parentNodeId": "house", "payloadType": "T"},
        True,
    ),
    ("add_child", {"parentNodeId": "kitchen", "payloadType": "T"}, "remove_node", {"nodeId": "house"}, True),
    ("update_payload", {"nodeId": "living", "patch": {"a": 1}}, "remove_node", {"nodeId": "house"}, True),
    ("update_payload", {"nodeId": "house", "patch": {"a": 1}}, "remove_node", {"nodeId": "shed"}, False),
    ("remove_node", {"nodeId": "shed"}, "update_payload", {"nodeId": "shed", "patch": {"a": 1}}, True),
    (
        "move_node",
        {"nodeId": "house", "newParentId": "root"},
        "move_node",
        {"nodeId": "shed", "newParentId": "kitchen"},
        True,
    ),
    (
        "add_child",
        {"parentNodeId": "living", "payloadType": "T"},
        "move_node",
        {"nodeId": "shed", "newParentId": "kitchen"},
        False,
    ),
    (
        "move_before",
        {"nodeId": "bath", "siblingId": "kitchen"},
        "sort_children",
        {"parentId": "house", "byProp": "name"},
        True,
    ),
    (
        "update_payload",
        {"nodeId": "bath", "patch": {"a": 1}},
        "sort_children",
        {"parentId": "property", "byProp": "name"},
        False,
    ),
    ("update_payload", {"nodeId": "bath", "patch": {"a": 1}}, "tag_node", {"nodeId": "bath", "tags": ["x"]}, True),
    ("update_payload", {"nodeId": "bath", "patch": {"a": 1}}, "undo", {}, True),
    (
        "update_payload",
        {"nodeId": "bath", "patch": {"a": 1}},
        "copy_subtree",
        {"sourceId": "house", "targetParentId": "root", "mode": "duplicate"},
        True,
    ),
    ("update_payload", {"nodeId": "bath", "patch": {"a": 1}}, "expand_node", {"nodeId": "house"}, False),
]


@pytest.mark.parametrize(("theirs", "their_arguments", "ours", "our_arguments", "conflicts"), NODE_CASES)
async def test_in_node_concurrency_only_the_footprint_of_a_call_can_make_it_stale(
    theirs: str, their_arguments: dict[str, Any], ours: str, our_arguments: dict[str, Any], conflicts: bool
) -> None:
    first, second = await two(concurrency="node")
    token = await first.version()
    await second.ok(theirs, **their_arguments)
    answer = await first(ours, **our_arguments, versionToken=token)
    assert ("error" in answer) is conflicts, answer
    if conflicts:
        assert answer["error"]["code"] == "conflict"
        assert answer["error"]["changedNodeIds"]


async def test_in_node_concurrency_a_callers_own_view_makes_stale_only_what_rests_on_it() -> None:
    first, second = await two(concurrency="node")
    token = await first.version()
    await second.ok("expand_node", nodeId="house")
    await first.ok("expand_node", nodeId="house", versionToken=token)
    refused = await first.refused("collapse_node", nodeId="house", versionToken=token)
    assert (refused["code"], refused["latestVersion"]) == ("conflict", await first.version())
    await first.ok("update_payload", nodeId="house", patch={"a": 1}, versionToken=token)
    await first.ok("collapse_node", nodeId="house")


async def test_an_agent_may_choose_another_concurrency_than_the_workspace() -> None:
    agents = {"editor": {"role": "editor"}, "second": {"role": "editor", "concurrency": "node"}}
    grove, first = await sample(config(agents=agents))
    second = await hand(grove, "second")
    token = await second.version()
    await first.ok("update_payload", nodeId="shed", patch={"a": 1})
    await second.ok("update_payload", nodeId="kitchen", patch={"a": 1}, versionToken=token)


WRITES_OUTSIDE: list[tuple[str, dict[str, Any]]] = [
    ("update_payload_property", {"nodeId": "shed", "propertyName": "a", "newValue": 1}),
    ("update_payload", {"nodeId": "property", "patch": {"a": 1}}),
    ("add_child", {"parentNodeId": "property", "payloadType": "T"}),
    ("remove_node", {"nodeId": "shed"}),
    ("remove_node", {"nodeId": "house"}),
    ("move_node", {"nodeId": "kitchen", "newParentId": "property"}),
    ("move_node", {"nodeId": "shed", "newParentId": "kitchen"}),
    ("move_node", {"nodeId": "house", "newParentId": "root"}),
    ("move_before", {"nodeId": "shed", "siblingId": "house"}),
    ("sort_children", {"parentId": "property", "byProp": "name", "direction": "desc"}),
    ("copy_subtree", {"sourceId": "kitchen", "targetParentId": "root", "mode": "duplicate"}),
    ("clone_node", {"nodeId": "kitchen", "targetParentId": "shed"}),
    ("tag_node", {"nodeId": "shed", "tags": ["x"]}),
    ("import_merge", {"json": {"nodeId": "shed", "payloadType": "Shed", "payload": {"a": 1}}, "strategy": "upsert"}),
    ("snapshot_restore", {"snapshotId": "s1"}),
]


@pytest.mark.parametrize(("tool", "arguments"), WRITES_OUTSIDE)
async def test_an_agent_with_a_write_root_cannot_write_outside_it(tool: str, arguments: dict[str, Any]) -> None:
    agents = {"editor": {"role": "editor"}, "tenant": {"role": "editor", "writeRoot": "house"}}
    grove, editor = await sample(config(agents=agents))
    await editor.ok("snapshot_create", label="x")
    await editor.ok("update_payload", nodeId="shed", patch={"b": 1})
    tenant = await hand(grove, "tenant")
    before = await editor.tree()
    for dry in ({}, {"dryRun": True}):
        error = await tenant.refused(tool, **arguments, **dry)
        assert (error["code"], error["reason"]) == ("forbidden", "write_root")
    assert await editor.tree() == before


async def test_an_agent_with_a_write_root_works_freely_inside_it() -> None:
    agents = {"editor": {"role": "editor"}, "tenant": {"role": "editor", "writeRoot": "house"}}
    grove, editor = await sample(config(agents=agents))
    tenant = await hand(grove, "tenant")
    await tenant.ok("update_payload", nodeId="house", patch={"a": 1})
    added = await tenant.ok("add_child", parentNodeId="kitchen", payloadType="T")
    await tenant.ok("move_node", nodeId=added["nodeId"], newParentId="house")
    await tenant.ok("sort_children", parentId="house", byProp="name")
    await tenant.ok("remove_node", nodeId="living")
    await tenant.ok("undo")
    bulk = await tenant.ok("update_nodes", filter="squareFeet > 1", patch={"seen": True})
    assert [(one["nodeId"], one["status"]) for one in bulk["outcomes"]][-1] == ("shed", "failed")
    assert bulk["updated"] == 3
    assert "seen" not in (await editor.ok("get_node", nodeId="shed"))["payload"]
    shared = await editor.ok("copy_subtree", sourceId="kitchen", targetParentId="root", mode="reference")
    error = await tenant.refused("update_payload", nodeId="kitchen", patch={"x": 1})
    assert error["nodeId"] == shared["nodeId"]
    await editor.ok("snapshot_create", label="theirs")
    assert (await tenant.refused("snapshot_delete", snapshotId="s1"))["code"] == "forbidden"


async def test_undo_takes_back_the_callers_own_change_and_leaves_those_of_others() -> None:
    first, second = await two()
    await first.ok("update_payload", nodeId="kitchen", patch={"status": "mine"})
    await second.ok("update_payload", nodeId="bath", patch={"status": "theirs"})
    undone = await first.ok("undo")
    assert (undone["tool"], undone["nodeIds"]) == ("update_payload", ["kitchen"])
    assert (await first.ok("get_node", nodeId="kitchen"))["payload"]["status"] == "open"
    assert (await first.ok("get_node", nodeId="bath"))["payload"]["status"] == "theirs"
    await first.ok("redo")
    assert (await first.ok("get_node", nodeId="kitchen"))["payload"]["status"] == "mine"
    assert (await first.refused("redo"))["reason"] == "nothing_to_redo"
    await second.ok("undo")
    assert (await second.refused("undo"))["reason"] == "nothing_to_undo"


async def test_an_undo_that_names_its_change_takes_back_that_one_or_none() -> None:
    first, _ = await two()
    await first.ok("update_payload", nodeId="kitchen", patch={"status": "seen"})
    seen = (await first.ok("undo", dryRun=True))["ofVersion"]
    await first.ok("update_payload", nodeId="bath", patch={"status": "later"})
    assert (await first.refused("undo", ofVersion=seen))["reason"] == "another_change"
    assert (await first.ok("get_node", nodeId="bath"))["payload"]["status"] == "later"
    await first.ok("undo")
    assert (await first.ok("undo", ofVersion=seen))["nodeIds"] == ["kitchen"]
    back = (await first.ok("redo", dryRun=True))["ofVersion"]
    assert (await first.refused("redo", ofVersion=seen))["reason"] == "another_change"
    assert (await first.ok("redo", ofVersion=back))["nodeIds"] == ["kitchen"]


async def test_undo_is_blocked_where_others_have_built_on_the_change() -> None:
    first, second = await two()
    added = (await first.ok("add_child", parentNodeId="house", payloadType="T"))["nodeId"]
    child = (await second.ok("add_child", parentNodeId=added, payloadType="T"))["nodeId"]
    blocked = await first.refused("undo")
    assert (blocked["reason"], blocked["changedNodeIds"]) == ("undo_blocked", [child])
    await second.ok("undo")
    await first.ok("undo")
    assert (await first.refused("get_node", nodeId=added))["code"] == "not_found"
    await first.ok("update_payload", nodeId="kitchen", patch={"a": 1})
    await second.ok("update_payload", nodeId="kitchen", patch={"a": 2})
    assert (await first.refused("undo"))["changedNodeIds"] == ["kitchen"]
    await first.ok("remove_node", nodeId="bath")
    await second.ok("remove_node", nodeId="house")
    assert (await first.refused("undo"))["reason"] == "undo_blocked"
    await second.ok("undo")
    await first.ok("undo")


async def test_undo_cannot_make_a_circle() -> None:
    first, second = await two()
    await first.ok("move_node", nodeId="shed", newParentId="root")
    await second.ok("move_node", nodeId="property", newParentId="shed")
    assert (await first.refused("undo"))["reason"] == "undo_blocked"


async def test_changes_since_a_version_are_told_in_pages_oldest_first() -> None:
    first, second = await two()
    token = await first.version()
    await first.ok("update_payload", nodeId="kitchen", patch={"a": 1})
    await second.ok("remove_node", nodeId="house")
    page = await first.ok("changes_since", version=token, limit=1)
    rest = await first.ok("changes_since", version=token, limit=1, pageToken=page["nextPageToken"])
    told = [(item["agent"], item["tool"], item["nodeCount"]) for item in page["items"] + rest["items"]]
    assert told == [("editor", "update_payload", 1), ("second", "remove_node", 4)]
    assert (await first.ok("changes_since", version=page["items"][0]["version"]))["items"] == rest["items"]
    assert (await first.refused("changes_since", version="x"))["code"] == "invalid_argument"


async def test_history_is_bounded_and_says_so_but_a_snapshot_keeps_what_it_needs() -> None:
    editor = await hand(Grove(config(workspace={"limits": {"history": 10}})))
    start = await editor.version()
    for at in range(30):
        await editor.ok("update_payload_property", nodeId="root", propertyName="at", newValue=at)
    assert (await editor.refused("changes_since", version=start))["reason"] == "history_trimmed"
    await editor.ok("snapshot_create", label="x")
    for at in range(30):
        await editor.ok("update_payload_property", nodeId="root", propertyName="at", newValue=f"later {at}")
    await editor.ok("snapshot_restore", snapshotId="s1")
    assert (await editor.ok("get_node", nodeId="root"))["payload"] == {"at": 29}


async def test_page_tokens_are_bound_to_agent_tool_arguments_and_session() -> None:
    grove, editor = await sample(config(agents=TWO))
    second, session = await hand(grove, "second"), await hand(grove, session="other")
    token = (await editor.ok("list_children", nodeId="house", limit=1))["nextPageToken"]
    attempts = [
        await editor.refused("list_children", nodeId="property", limit=1, pageToken=token),
        await editor.refused("get_subtree", nodeId="house", pageSize=1, pageToken=token),
        await second.refused("list_children", nodeId="house", limit=1, pageToken=token),
        await session.refused("list_children", nodeId="house", limit=1, pageToken=token),
        await editor.refused("list_children", nodeId="house", limit=1, pageToken=token[:-2] + "AA"),
        await editor.refused("list_children", nodeId="house", limit=1, pageToken="x" + token[1:]),
        await editor.refused("list_children", nodeId="house", limit=1, pageToken="not a token"),
        await editor.refused("list_children", nodeId="house", limit=1, pageToken="é"),
    ]
    assert {(error["code"], error["reason"]) for error in attempts} == {("invalid_argument", "page_token")}
    assert len((await editor.ok("list_children", nodeId="house", limit=5, pageToken=token))["items"]) == 2
    assert (await editor.refused("list_children", nodeId="house", limit=201))["code"] == "invalid_argument"


async def test_structure_cannot_be_broken() -> None:
    _, editor = await sample()
    for tool, arguments in (
        ("move_node", {"nodeId": "house", "newParentId": "house"}),
        ("move_node", {"nodeId": "house", "newParentId": "kitchen"}),
        ("move_node", {"nodeId": "root", "newParentId": "house"}),
        ("remove_node", {"nodeId": "root"}),
        ("copy_subtree", {"sourceId": "root", "targetParentId": "house", "mode": "duplicate"}),
    ):
        assert (await editor.refused(tool, **arguments))["code"] == "invalid_argument", tool


async def test_an_unknown_agent_is_named_with_the_known_ones() -> None:
    with pytest.raises(AgentNotFound, match="Did you mean 'editor'"):
        await Grove().agent("editr")


ODD = [
    "__class__",
    "__dict__",
    "a.b",
    'quo"te',
    "back\\slash",
    "nul\0",
    "\ufffe",
    "café",
    "cafe\u0301",
    "",
    "$ref",
    "payload",
]


@pytest.mark.parametrize("name", [name for name in ODD if name])
async def test_odd_property_names_are_data_and_nothing_else(name: str) -> None:
    editor = await hand(Grove())
    node = (
        await editor.ok(
            "add_child", parentNodeId="root", payloadType="T", payloadProps={"café": 0, "cafe\u0301": 0, "a.b": 0}
        )
    )["nodeId"]
    await editor.ok("update_payload_property", nodeId=node, propertyName=name, newValue=1)
    assert (await editor.ok("get_node", nodeId=node))["payload"][name] == 1
    if name != "payload":
        assert (await editor.ok("get_node", nodeId=node, includedProperties=[name]))["payload"] == {name: 1}
    found = await editor.ok("search", rootNodeId="root", filters=[{"path": name, "op": "eq", "value": 1}])
    assert len(found["items"]) == 1
    exported = await editor.tree()
    fresh = await hand(Grove())
    await fresh.ok("import_merge", json=exported, strategy="upsert", matchBy="nodeId")
    assert await fresh.tree() == exported


@pytest.mark.parametrize("path", ["__class__.__init__.__globals__", "payload.__class__", "children", "keys"])
async def test_a_path_never_reaches_beyond_the_data(path: str) -> None:
    _, editor = await sample()
    assert (await editor.ok("search", rootNodeId="root", filters=[{"path": path, "op": "contains", "value": "a"}]))[
        "items"
    ] == []
    assert (await editor.ok("select_nodes", queryDsl=f"exists {path}"))["items"] == []


async def test_what_undo_brings_back_takes_a_place_of_its_own_among_newer_siblings() -> None:
    first, second = await two()
    await first.ok("remove_node", nodeId="bath")
    added = await second.ok("add_child", parentNodeId="house", payloadType="Room", payloadProps={"name": "New"})
    await first.ok("undo")
    whole = [one["nodeId"] for one in (await first.ok("list_children", nodeId="house"))["items"]]
    assert whole == ["kitchen", "living", "bath", added["nodeId"]]
    paged: list[str] = []
    token: dict[str, Any] = {}
    for _ in whole:
        page = await first.ok("list_children", nodeId="house", limit=1, **token)
        paged += [one["nodeId"] for one in page["items"]]
        token = {"pageToken": page.get("nextPageToken")}
    assert paged == whole
    await first.ok("redo")
    await second.ok("undo")
    assert len((await first.ok("list_children", nodeId="house"))["items"]) == 2


async def test_undo_keeps_what_is_shared_shared() -> None:
    first, second = await two()
    copied = await first.ok("copy_subtree", sourceId="shed", targetParentId="root", mode="reference")
    twin = copied["nodeId"]
    await first.ok("update_payload_property", nodeId="shed", propertyName="a", newValue=1)
    third = (await second.ok("copy_subtree", sourceId=twin, targetParentId="root", mode="reference"))["nodeId"]
    await first.ok("undo")
    payloads = [(await first.ok("get_node", nodeId=one))["payload"] for one in ("shed", twin, third)]
    assert payloads[0] == payloads[1] == payloads[2]
    assert "a" not in payloads[0]
    await first.ok("remove_node", nodeId=twin)
    await second.ok("update_payload_property", nodeId="shed", propertyName="b", newValue=2)
    await first.ok("undo")
    payloads = [(await first.ok("get_node", nodeId=one))["payload"] for one in ("shed", twin, third)]
    assert payloads[0] == payloads[1] == payloads[2]
    assert payloads[0]["b"] == 2


async def test_restoring_what_is_there_already_reaches_outside_of_no_write_root() -> None:
    agents = {"editor": {"role": "editor"}, "tenant": {"role": "editor", "writeRoot": "house"}}
    grove, editor = await sample(config(agents=agents))
    tenant = await hand(grove, "tenant")
    await editor.ok("snapshot_create", label="before")
    await editor.ok("update_payload", nodeId="shed", patch={"n": 1})
    assert (await tenant.refused("snapshot_restore", snapshotId="s1"))["reason"] == "write_root"
    await editor.ok("snapshot_restore", snapshotId="s1")
    before = await editor.tree()
    await tenant.ok("snapshot_restore", snapshotId="s1")
    assert await editor.tree() == before
    await editor.ok("update_payload", nodeId="shed", patch={"squareFeet": True})
    assert (await tenant.refused("snapshot_restore", snapshotId="s1"))["reason"] == "write_root"
