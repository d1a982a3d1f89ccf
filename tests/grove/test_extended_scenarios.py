"""The scenarios that specification 001 adds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grove_kit import Hand, config, hand, sample
from toolgrove import Grove

pytestmark = pytest.mark.anyio


def ids(answer: dict[str, Any], key: str = "items") -> list[str]:
    return [item["nodeId"] for item in answer[key]]


async def children(editor: Hand, node_id: str) -> list[str]:
    return ids(await editor.ok("list_children", nodeId=node_id))


@pytest.mark.requirement("TREE-001-29")
async def test_a_path_runs_from_the_root_with_names_where_there_are_any() -> None:
    _, editor = await sample()
    assert (await editor.ok("get_path", nodeId="kitchen"))["path"] == [
        {"nodeId": "root", "depth": 0},
        {"nodeId": "property", "name": "Property", "depth": 1},
        {"nodeId": "house", "name": "House", "depth": 2},
        {"nodeId": "kitchen", "name": "Kitchen", "depth": 3},
    ]


@pytest.mark.requirement("TREE-001-30")
async def test_a_subtree_respects_depth_filters_and_paging() -> None:
    _, editor = await sample()
    answer = await editor.ok("get_subtree", nodeId="property", depthLimit=1, filters={"includedProperties": ["name"]})
    assert [child["payload"] for child in answer["subtree"]["children"]] == [{"name": "House"}, {"name": "Shed"}]
    assert "children" not in answer["subtree"]["children"][0]
    first = await editor.ok("get_subtree", nodeId="property", paging={"pageSize": 3})
    rest = await editor.ok(
        "get_subtree", nodeId="property", paging={"pageSize": 3, "pageToken": first["nextPageToken"]}
    )
    assert ids(first) + ids(rest) == ["property", "house", "kitchen", "living", "bath", "shed"]
    assert [item["depth"] for item in first["items"]] == [0, 1, 2]


@pytest.mark.requirement("TREE-001-31")
async def test_the_common_ancestor_is_the_nearest_and_may_be_one_of_the_nodes() -> None:
    _, editor = await sample()

    async def of(*node_ids: str) -> Any:
        return (await editor.ok("get_common_ancestor", nodeIds=list(node_ids)))["nodeId"]

    assert await of("kitchen", "living") == "house"
    assert await of("kitchen", "shed") == "property"
    assert await of("kitchen", "house") == "house"
    assert await of("kitchen") == "kitchen"
    assert await of() is None
    assert (await editor.refused("get_common_ancestor", nodeIds=["kitchen", "nowhere"]))["code"] == "not_found"


@pytest.mark.requirement("TREE-001-32")
async def test_advanced_search_honours_groups_ranges_sorting_and_pages() -> None:
    _, editor = await sample()
    predicates = {
        "or": [
            {"path": "squareFeet", "op": "between", "value": [60, 80]},
            {
                "and": [
                    {"path": "squareFeet", "op": "gt", "value": 100},
                    {"path": "status", "op": "eq", "value": "done"},
                ]
            },
            {"path": "name", "op": "contains", "value": "HOUSE"},
        ]
    }
    assert ids(await editor.ok("search_advanced", rootId="root", predicates=predicates)) == [
        "house",
        "living",
        "bath",
        "shed",
    ]
    for direction, expected in (
        ("asc", ["bath", "shed", "living", "house"]),
        ("desc", ["living", "shed", "bath", "house"]),
    ):
        sort = {"path": "squareFeet", "direction": direction}
        found: list[str] = []
        token: dict[str, str] = {}
        while True:
            page = await editor.ok(
                "search_advanced", rootId="root", predicates=[predicates], sortBy=sort, limit=1, **token
            )
            found += ids(page)
            if "nextPageToken" not in page:
                break
            token = {"pageToken": page["nextPageToken"]}
        assert found == expected
    reversed_bounds = {"path": "squareFeet", "op": "between", "value": [9, 1]}
    error = await editor.refused("search_advanced", rootId="root", predicates=reversed_bounds)
    assert error["code"] == "invalid_argument"
    assert "reversed" in error["message"]


@pytest.mark.requirement("TREE-001-33")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("name contains Kitchen and squareFeet > 100", ["kitchen"]),
        ("/Property/House//*[squareFeet between 100 and 400]", ["kitchen", "living"]),
        ('//"Living Room" | //*[@depth = 1]', ["property", "living"]),
        ("#house/*[status != done]", ["kitchen", "bath"]),
        ("//*[@type = Room and @tag = urgent and not exists meta.archived]", ["kitchen"]),
        ("//*[ancestor(name = House) and not child(squareFeet > 5)]", ["kitchen", "living", "bath"]),
        ("//Shed | //*[@depth = 1]", ["property", "shed"]),
        ("descendant(squareFeet > 300)", ["property", "house"]),
        ("parent(@id = house) and @index >= 1", ["living", "bath"]),
        ("status in (open, done) and @childCount = 0", ["kitchen", "living", "bath"]),
        ("missing squareFeet", ["property", "house"]),
        ("#house", ["house"]),
    ],
)
async def test_a_query_selects_nodes_in_tree_order(query: str, expected: list[str]) -> None:
    _, editor = await sample()
    assert ids(await editor.ok("select_nodes", queryDsl=query)) == expected
    paged: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = await editor.ok("select_nodes", queryDsl=query, limit=1, **token)
        paged += ids(page)
        if "nextPageToken" not in page:
            break
        token = {"pageToken": page["nextPageToken"]}
    assert paged == expected


@pytest.mark.requirement("TREE-001-34")
async def test_a_reference_copy_shares_payloads_and_a_duplicate_does_not() -> None:
    _, editor = await sample()
    shared = await editor.ok("copy_subtree", sourceId="house", targetParentId="root", mode="reference")
    apart = await editor.ok("copy_subtree", sourceId="house", targetParentId="root", mode="duplicate")
    assert set(shared["idMap"]) == {"house", "kitchen", "living", "bath"}
    assert shared["idMap"]["house"] == shared["nodeId"]
    twin, copy = shared["idMap"]["kitchen"], apart["idMap"]["kitchen"]
    done = await editor.ok("update_payload_property", nodeId=twin, propertyName="status", newValue="sold")
    assert sorted(done["nodeIds"]) == sorted(["kitchen", twin])
    assert (await editor.ok("get_node", nodeId="kitchen"))["payload"]["status"] == "sold"
    assert (await editor.ok("get_node", nodeId=copy))["payload"]["status"] == "open"
    await editor.ok("undo")
    assert (await editor.ok("get_node", nodeId=twin))["payload"]["status"] == "open"
    into_itself = await editor.ok("copy_subtree", sourceId="house", targetParentId="kitchen", mode="duplicate")
    assert len(into_itself["idMap"]) == 4


@pytest.mark.requirement("TREE-001-35")
async def test_a_clone_is_one_node_without_what_is_below() -> None:
    _, editor = await sample()
    clone = await editor.ok("clone_node", nodeId="house", targetParentId="root")
    node = await editor.ok("get_node", nodeId=clone["nodeId"])
    assert (node["parentId"], node["childrenCount"], node["payload"]["name"]) == ("root", 0, "House")
    assert (await editor.refused("clone_node", nodeId="root", targetParentId="house"))["code"] == "invalid_argument"


@pytest.mark.requirement("TREE-001-36")
async def test_a_node_moves_right_before_or_after_a_sibling() -> None:
    _, editor = await sample()
    await editor.ok("move_before", nodeId="bath", siblingId="kitchen")
    assert await children(editor, "house") == ["bath", "kitchen", "living"]
    await editor.ok("move_after", nodeId="bath", siblingId="kitchen")
    assert await children(editor, "house") == ["kitchen", "bath", "living"]
    await editor.ok("move_after", nodeId="kitchen", siblingId="living")
    assert await children(editor, "house") == ["bath", "living", "kitchen"]
    version = await editor.version()
    assert (await editor.ok("move_after", nodeId="kitchen", siblingId="living"))["version"] == version
    for sibling in ("shed", "kitchen"):
        error = await editor.refused("move_before", nodeId="kitchen", siblingId=sibling)
        assert error["code"] == "invalid_argument"


@pytest.mark.requirement("TREE-001-37")
async def test_sorting_is_stable_and_puts_missing_values_last() -> None:
    grove = Grove()
    editor = await hand(grove)
    for name, size in (("a", 2), ("b", 1), ("c", 2), ("d", None), ("e", 1), ("f", "text")):
        await editor.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={"name": name, "size": size})

    async def names() -> str:
        answer = await editor.ok("list_children", nodeId="root")
        return "".join(item["payload"]["name"] for item in answer["items"])

    await editor.ok("sort_children", parentId="root", byProp="size", direction="asc", stable=True)
    assert await names() == "beacfd"
    await editor.ok("sort_children", parentId="root", byProp="size", direction="desc")
    assert await names() == "facbed"


@pytest.mark.requirement("TREE-001-38")
async def test_a_patch_sets_all_its_fields_or_none() -> None:
    _, editor = await sample(config(workspace={"payloadTypes": {"Page": {"kind": "self"}}, "allowUnknownTypes": True}))
    done = await editor.ok("update_payload", nodeId="kitchen", patch={"status": "done", "price": 9.5})
    assert done["payload"] == {"status": "done", "price": 9.5}
    assert (await editor.ok("get_node", nodeId="kitchen"))["payload"] == {
        "name": "Kitchen",
        "squareFeet": 150,
        "status": "done",
        "price": 9.5,
    }
    page = (await editor.ok("add_child", parentNodeId="root", payloadType="Page", payloadProps={}))["nodeId"]
    assert (await editor.refused("update_payload", nodeId=page, patch={"a": 1, "NodeId": 2}))[
        "reason"
    ] == "guarded_property"
    assert (await editor.ok("get_node", nodeId=page))["payload"] == {}


@pytest.mark.requirement("TREE-001-39")
async def test_a_bulk_update_tells_for_each_node_and_keeps_what_succeeded() -> None:
    types = {"Strict": {"schema": {"properties": {"status": {"enum": ["open"]}}}}}
    _, editor = await sample(config(workspace={"payloadTypes": types, "allowUnknownTypes": True}))
    strict = await editor.ok("add_child", parentNodeId="house", payloadType="Strict", payloadProps={"status": "open"})
    answer = await editor.ok("update_nodes", filter="//House/*", patch={"status": "done"})
    assert [(one["nodeId"], one["status"]) for one in answer["outcomes"]] == [
        ("kitchen", "updated"),
        ("living", "unchanged"),
        ("bath", "updated"),
        (strict["nodeId"], "failed"),
    ]
    assert (answer["updated"], answer["failed"]) == (2, 1)
    assert (await editor.ok("get_node", nodeId="bath"))["payload"]["status"] == "done"
    since = await editor.ok("changes_since", version=strict["version"])
    assert [commit["nodeIds"] for commit in since["items"]] == [["kitchen", "bath"]]
    await editor.ok("undo")
    assert (await editor.ok("get_node", nodeId="bath"))["payload"]["status"] == "open"
    by_predicate = await editor.ok(
        "update_nodes", filter={"path": "squareFeet", "op": "lt", "value": 100}, patch={"small": True}
    )
    assert by_predicate["updated"] == 2


@pytest.mark.requirement("TREE-001-40")
async def test_expansion_is_set_down_to_a_depth() -> None:
    _, editor = await sample()
    answer = await editor.ok("set_expansion_recursive", nodeId="root", expanded=True, maxDepth=1)
    assert answer["nodeIds"] == ["root", "property"]
    view = (await editor.ok("get_view", rootNodeId="root"))["view"]
    assert [child["nodeId"] for child in view["children"][0]["children"]] == ["house", "shed"]
    assert "children" not in view["children"][0]["children"][0]
    everything = await editor.ok("set_expansion_recursive", nodeId="house", expanded=True)
    assert everything["changedCount"] == 4


@pytest.mark.requirement("TREE-001-41")
async def test_filter_presets_hold_for_later_reads_of_the_session_and_explicit_ones_win() -> None:
    grove, editor = await sample()
    await editor.ok("set_filters", scope="node", included=["name"], excluded=[])
    assert (await editor.ok("get_node", nodeId="shed"))["payload"] == {"name": "Shed"}
    assert (await editor.ok("get_view", rootNodeId="shed"))["view"]["payload"] == {"name": "Shed", "squareFeet": 80}
    await editor.ok("set_filters", scope="all", included=[], excluded=["name"])
    assert (await editor.ok("get_view", rootNodeId="shed"))["view"]["payload"] == {"squareFeet": 80}
    assert (await editor.ok("get_node", nodeId="shed", excludedProperties=[]))["payload"] == {
        "name": "Shed",
        "squareFeet": 80,
    }
    other = await hand(grove, session="another")
    assert "name" in (await other.ok("get_node", nodeId="shed"))["payload"]


@pytest.mark.requirement("TREE-001-42")
async def test_tags_are_shared_and_found_in_tree_order() -> None:
    grove, editor = await sample()
    assert (await editor.ok("tag_node", nodeId="bath", tags=["urgent", "wet"]))["tags"] == ["urgent", "wet"]
    await editor.ok("tag_node", nodeId="house", tags=["urgent"])
    reader = await hand(grove, "reader")
    assert ids(await reader.ok("query_by_tag", tag="urgent")) == ["house", "kitchen", "bath"]
    assert (await editor.ok("tag_node", nodeId="bath", tags=[], remove=["urgent"]))["tags"] == ["wet"]
    await editor.ok("remove_node", nodeId="kitchen")
    assert ids(await reader.ok("query_by_tag", tag="urgent")) == ["house"]
    assert ids(await reader.ok("query_by_tag", tag="never")) == []


@pytest.mark.requirement("TREE-001-43")
async def test_bookmarks_belong_to_the_agent_and_fall_with_their_node() -> None:
    settings = config(agents={"editor": {"role": "editor"}, "second": {"role": "editor"}})
    grove, editor = await sample(settings)
    second = await hand(grove, "second")
    await editor.ok("bookmark", nodeId="kitchen", label="cook")
    await editor.ok("bookmark", nodeId="shed", label="tools")
    assert (await editor.ok("list_bookmarks"))["items"] == [
        {"label": "cook", "nodeId": "kitchen", "name": "Kitchen"},
        {"label": "tools", "nodeId": "shed", "name": "Shed"},
    ]
    assert (await second.ok("list_bookmarks"))["items"] == []
    assert (await second.refused("remove_bookmark", label="cook"))["code"] == "not_found"
    await editor.ok("remove_bookmark", label="tools")
    await second.ok("remove_node", nodeId="house")
    assert (await editor.ok("list_bookmarks"))["items"] == []
    await second.ok("undo")
    assert ids(await editor.ok("list_bookmarks")) == ["kitchen"]


async def test_an_agent_has_as_many_bookmarks_as_the_limit_says() -> None:
    _, editor = await sample(config(workspace={"limits": {"bookmarks": 2}}))
    for label in ("one", "two"):
        await editor.ok("bookmark", nodeId="house", label=label)
    error = await editor.refused("bookmark", nodeId="house", label="three")
    assert (error["reason"], error["limit"]) == ("batch_limit", 2)
    await editor.ok("bookmark", nodeId="kitchen", label="two")


RULES = [
    {"id": "schema", "types": ["Task"], "schema": {"properties": {"size": {"type": "integer"}}}},
    {"id": "required", "types": ["Task"], "required": ["title"]},
    {"id": "parents", "types": ["Task"], "allowedParents": ["List"]},
    {"id": "children", "types": ["List"], "allowedChildren": ["Task"]},
    {"id": "count", "types": ["List"], "cardinality": {"type": "Task", "max": 1}},
    {"id": "unique", "unique": {"path": "code"}},
    {"id": "format", "severity": "warning", "format": {"path": "title", "is": ["trimmed", "singleLine"]}},
    {"id": "long", "maxLength": {"path": "title", "max": 8}},
]


async def ruled() -> tuple[Hand, dict[str, str]]:
    editor = await hand(Grove(config(workspace={"rulesets": {"tasks": RULES}})))
    document = {
        "items": [
            {"nodeId": "list", "payloadType": "List", "payload": {}},
            {"nodeId": "good", "parentId": "list", "payloadType": "Task", "payload": {"title": "ok", "code": 1}},
            {"nodeId": "bad", "parentId": "list", "payloadType": "Task", "payload": {"size": "x", "code": 1}},
            {"nodeId": "note", "parentId": "list", "payloadType": "Note", "payload": {"title": " a\nb far too long "}},
            {"nodeId": "stray", "payloadType": "Task", "payload": {"title": "ok"}},
        ]
    }
    await editor.ok("import_merge", json=document, strategy="upsert", matchBy="nodeId")
    return editor, {}


@pytest.mark.requirement("TREE-001-44")
async def test_validation_finds_every_kind_of_violation_in_tree_order() -> None:
    editor, _ = await ruled()
    answer = await editor.ok("validate_tree", rulesetId="tasks")
    assert answer["valid"] is False
    assert [(one["ruleId"], one["nodeId"], one["path"]) for one in answer["violations"]] == [
        ("children", "list", ""),
        ("count", "list", ""),
        ("schema", "bad", "size"),
        ("required", "bad", "title"),
        ("unique", "bad", "code"),
        ("format", "note", "title"),
        ("format", "note", "title"),
        ("long", "note", "title"),
        ("parents", "stray", ""),
    ]
    assert {one["severity"] for one in answer["violations"]} == {"error", "warning"}
    paged: list[Any] = []
    token: dict[str, str] = {}
    while True:
        page = await editor.ok("validate_tree", rulesetId="tasks", limit=2, **token)
        paged += page["violations"]
        if "nextPageToken" not in page:
            break
        token = {"pageToken": page["nextPageToken"]}
    assert paged == answer["violations"]
    unknown = await editor.refused("validate_tree", rulesetId="task")
    assert (unknown["code"], "Did you mean 'tasks'?" in unknown["message"]) == ("not_found", True)


@pytest.mark.requirement("TREE-001-45")
async def test_linting_reports_the_payloads_own_issues_with_paths() -> None:
    editor, _ = await ruled()
    answer = await editor.ok("lint_payload", nodeId="bad", rulesetId="tasks")
    assert [(one["ruleId"], one["path"]) for one in answer["violations"]] == [("schema", "size"), ("required", "title")]
    wrong, missing = (one["message"] for one in answer["violations"])
    assert wrong == '"x" is not of type "integer"'
    assert "title" in missing
    assert (await editor.ok("lint_payload", nodeId="good", rulesetId="tasks"))["valid"] is True


@pytest.mark.requirement("TREE-001-46")
async def test_a_snapshot_brings_the_tree_back_and_undo_takes_that_back() -> None:
    _, editor = await sample()
    before = await editor.tree()
    snapshot = (await editor.ok("snapshot_create", label="safe"))["snapshotId"]
    assert [item["label"] for item in (await editor.ok("snapshot_list"))["items"]] == ["safe"]
    await editor.ok("remove_node", nodeId="house")
    await editor.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={})
    changed = await editor.tree()
    restored = await editor.ok("snapshot_restore", snapshotId=snapshot)
    assert restored["changed"] == {"added": 4, "removed": 1, "moved": 0, "reordered": 0, "changed": 0}
    assert await editor.tree() == before
    await editor.ok("undo")
    assert await editor.tree() == changed
    await editor.ok("redo")
    assert await editor.tree() == before
    await editor.ok("snapshot_delete", snapshotId=snapshot)
    assert (await editor.refused("snapshot_restore", snapshotId=snapshot))["code"] == "not_found"


@pytest.mark.requirement("TREE-001-47")
async def test_a_diff_tells_added_removed_moved_reordered_and_changed_apart() -> None:
    _, editor = await sample()
    first = (await editor.ok("snapshot_create", label="a"))["snapshotId"]
    added = (await editor.ok("add_child", parentNodeId="house", payloadType="Room", payloadProps={"name": "New"}))[
        "nodeId"
    ]
    await editor.ok("remove_node", nodeId="living")
    await editor.ok("move_node", nodeId="shed", newParentId="house")
    await editor.ok("move_before", nodeId="bath", siblingId="kitchen")
    await editor.ok("update_payload", nodeId="house", patch={"status": "sold", "year": 1})
    diff = await editor.ok("snapshot_diff", a=first, b="current")
    assert ids(diff, "added") == [added]
    assert ids(diff, "removed") == ["living"]
    assert diff["moved"] == [
        {"nodeId": "shed", "oldParentId": "property", "newParentId": "house", "oldIndex": 1, "newIndex": 3}
    ]
    assert diff["reordered"] == [{"nodeId": "bath", "parentId": "house", "oldIndex": 1, "newIndex": 0}]
    assert diff["changed"] == [
        {
            "nodeId": "house",
            "properties": {"status": {"old": "for sale", "new": "sold"}, "year": {"new": 1}},
            "parentId": "property",
        }
    ]
    copy = await editor.ok("copy_subtree", sourceId="house", targetParentId="root", mode="duplicate")
    same = await editor.ok("diff_subtree", aId="house", bId=copy["nodeId"])
    assert not any(same[name] for name in ("added", "removed", "moved", "reordered", "changed"))
    await editor.ok("update_payload_property", nodeId=copy["idMap"]["bath"], propertyName="status", newValue="done")
    await editor.ok("remove_node", nodeId=copy["idMap"]["kitchen"])
    other = await editor.ok("diff_subtree", aId="house", bId=copy["nodeId"])
    assert ids(other, "removed") == ["kitchen"]
    assert other["changed"][0]["properties"] == {"status": {"old": "open", "new": "done"}}


async def test_nodes_that_changed_places_and_changed_back_are_not_reordered() -> None:
    _, editor = await sample()
    await editor.ok("snapshot_create", label="a")
    await editor.ok("move_after", nodeId="living", siblingId="bath")
    await editor.ok("move_after", nodeId="bath", siblingId="living")
    assert await children(editor, "house") == ["kitchen", "living", "bath"]
    assert (await editor.ok("snapshot_diff", a="s1", b="current"))["reordered"] == []


@pytest.mark.requirement("TREE-001-48")
async def test_an_exported_subtree_comes_back_byte_for_byte_in_an_empty_tree() -> None:
    _, editor = await sample()
    exported = (await editor.ok("export_subtree", nodeId="property"))["json"]
    assert json.loads(exported)["children"][0]["children"][0]["tags"] == ["urgent"]
    assert "viewRoot" in json.loads((await editor.ok("export_subtree", nodeId="house", includeViewRoot=True))["json"])
    empty = await hand(Grove())
    await empty.ok("import_merge", json=exported, strategy="upsert", matchBy="nodeId")
    assert (await empty.ok("export_subtree", nodeId="property"))["json"] == exported


@pytest.mark.requirement("TREE-001-49")
async def test_the_three_merge_strategies_differ_as_they_say() -> None:
    document = {
        "nodeId": "house",
        "payloadType": "House",
        "payload": {"status": "sold"},
        "children": [
            {"nodeId": "bath", "payloadType": "Room", "payload": {"name": "Spa"}},
            {"nodeId": "attic", "payloadType": "Room", "payload": {"name": "Attic"}},
        ],
    }

    async def merged(strategy: str) -> tuple[dict[str, Any], list[str], dict[str, Any], dict[str, Any]]:
        _, editor = await sample()
        answer = await editor.ok("import_merge", json=document, strategy=strategy, matchBy="nodeId")
        house, bath = await editor.ok("get_node", nodeId="house"), await editor.ok("get_node", nodeId="bath")
        return answer, await children(editor, "house"), house["payload"], bath["payload"]

    answer, kids, house, bath = await merged("upsert")
    assert (answer["created"], answer["updated"]) == (["attic"], ["house", "bath"])
    assert kids == ["kitchen", "living", "bath", "attic"]
    assert house == {"name": "House", "status": "sold"}
    assert bath == {"name": "Spa", "squareFeet": 60, "status": "open"}
    answer, kids, house, bath = await merged("replace")
    assert answer["removed"] == ["kitchen", "living"]
    assert (kids, house, bath) == (["bath", "attic"], {"status": "sold"}, {"name": "Spa"})
    answer, kids, house, bath = await merged("skip")
    assert (answer["skippedCount"], kids) == (2, ["kitchen", "living", "bath", "attic"])
    assert house == {"name": "House", "status": "for sale"}


async def test_replacing_and_upserting_take_over_the_order_of_the_document_and_skipping_does_not() -> None:
    _, editor = await sample()
    document = json.loads((await editor.ok("export_subtree", nodeId="house"))["json"])
    document["children"].reverse()
    await editor.ok("import_merge", json=document, strategy="skip", matchBy="nodeId")
    assert await children(editor, "house") == ["kitchen", "living", "bath"]
    for strategy in ("upsert", "replace"):
        await editor.ok("import_merge", json=document, strategy=strategy, matchBy="nodeId")
        assert await children(editor, "house") == ["bath", "living", "kitchen"]
        await editor.ok("undo")


async def test_a_merge_by_path_recognises_nodes_by_name() -> None:
    _, editor = await sample()
    document = {
        "payloadType": "Property",
        "payload": {"name": "Property"},
        "children": [{"nodeId": "x", "payloadType": "Shed", "payload": {"name": "Shed", "colour": "red"}}],
    }
    answer = await editor.ok("import_merge", json=document, strategy="upsert", matchBy="path")
    assert (answer["created"], answer["updated"]) == ([], ["shed"])
    await editor.ok("add_child", parentNodeId="property", payloadType="Shed", payloadProps={"name": "Shed"})
    error = await editor.refused("import_merge", json=document, strategy="upsert", matchBy="path")
    assert (error["code"], error["reason"]) == ("conflict", "ambiguous_path")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"nodeId": "a", "payloadType": "T", "children": [{"nodeId": "a", "payloadType": "T"}]}, "duplicate_ids"),
        (
            {
                "items": [
                    {"nodeId": "a", "parentId": "p", "payloadType": "T"},
                    {"nodeId": "a", "parentId": "q", "payloadType": "T"},
                ]
            },
            "duplicate_ids",
        ),
        (
            {
                "items": [
                    {"nodeId": "a", "parentId": "b", "payloadType": "T"},
                    {"nodeId": "b", "parentId": "a", "payloadType": "T"},
                ]
            },
            "cycle",
        ),
        ({"nodeId": "a", "payloadType": "os.system"}, "unknown_type"),
        ({"nodeId": "a", "payloadType": "T", "parentId": ["p", "q"]}, "document"),
        ({"nodeId": "a"}, "document"),
        ({"items": [{"nodeId": ["a"], "payloadType": "T"}, 5]}, "document"),
        ({"items": [{"nodeId": "a", "parentId": {}, "payloadType": "T"}]}, "document"),
        ({"items": []}, "document"),
        ({"nodeId": "a", "payloadType": "T", "payload": [1]}, "document"),
        ({"nodeId": "a", "payloadType": "T", "tags": "x"}, "document"),
        ({"nodeId": "a", "payloadType": "T", "children": 5}, "document"),
        ({"nodeId": "", "payloadType": "T"}, "document"),
        ("{nonsense", "document"),
        ('{"payloadType": "T", "payload": {"x": NaN}}', "document"),
        ("[1]", "document"),
        ("[" * 100_000, "document"),
        ({"nodeId": "a", "payloadType": "T", "name": "misplaced"}, "document"),
    ],
)
async def test_a_bad_document_is_refused_by_name_and_changes_nothing(document: Any, reason: str) -> None:
    editor = await hand(Grove(config(workspace={"payloadTypes": {"T": {}}})))
    before = await editor.tree()
    error = await editor.refused("import_merge", json=document, strategy="upsert", matchBy="nodeId")
    assert (error["code"], error["reason"]) == ("invalid_argument", reason)
    assert await editor.tree() == before


async def test_a_view_is_restored_onto_the_nodes_that_exist() -> None:
    grove, editor = await sample()
    await editor.ok("expand_all", rootNodeId="property")
    await editor.ok("set_filters", scope="view", included=["name"], excluded=[])
    exported = (await editor.ok("export_view", rootNodeId="property"))["viewJson"]
    shown = (await editor.ok("get_view", rootNodeId="property"))["view"]
    other = await hand(grove, session="other")
    types = ["Property", "House", "Room", "Shed"]
    error = await other.refused("import_view", viewJson=exported, payloadTypes=types[:2], rootLookupStrategy="nodeId")
    assert (error["code"], error["payloadTypes"]) == ("invalid_argument", ["Room", "Shed"])
    await other.ok("import_view", viewJson=exported, payloadTypes=types, rootLookupStrategy="nodeId")
    assert (await other.ok("get_view", rootNodeId="property"))["view"] == shown
    by_path = await hand(grove, session="by path")
    await by_path.ok("import_view", viewJson=exported, payloadTypes=types, rootLookupStrategy="path")
    assert (await by_path.ok("get_view", rootNodeId="property"))["view"] == shown
    lost = await hand(Grove())
    for strategy in ("nodeId", "path"):
        gone = await lost.refused("import_view", viewJson=exported, payloadTypes=types, rootLookupStrategy=strategy)
        assert gone["code"] == "not_found"


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"path": "property", "view": {"payloadType": "Root"}}, "'path' that is not a list of names"),
        ({"path": [], "view": {"payloadType": "Root", "children": 5}}, "'children' that is not a list"),
        ({"path": [], "view": {"payloadType": "Root", "children": [5]}}, "a node that is not an object"),
        (
            {"path": [], "view": {"payloadType": "Root", "children": [{"payload": 5}]}},
            "'payload' that is not an object",
        ),
        ({"path": [], "view": {"payloadType": ["Root"]}}, "payload types that payloadTypes does not name"),
        ({"path": [], "view": {"payloadType": "Root", "children": [{}, {}, {}, {}]}}, "the limit is 4"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_view_that_cannot_be_read_is_refused(document: dict[str, object], told: str) -> None:
    editor = await hand(Grove(config(workspace={"limits": {"expandNodes": 4}})))
    error = await editor.refused("import_view", viewJson=document, payloadTypes=["Root"], rootLookupStrategy="path")
    assert error["code"] == "invalid_argument"
    assert told in error["message"]


async def test_a_path_names_a_node_in_a_document_as_it_does_in_the_tree() -> None:
    editor = await hand(Grove())
    twins = [
        {"payloadType": "T", "payload": {"Name": "a", "name": "b"}},
        {"payloadType": "T", "payload": {"NAME": "c"}},
    ]
    await editor.ok(
        "import_merge", json={"nodeId": "root", "payloadType": "Root", "children": twins}, strategy="upsert"
    )
    before = await editor.tree()
    again = await editor.ok("import_merge", json=before, strategy="upsert", matchBy="path")
    assert (again["createdCount"], again["updatedCount"]) == (0, 0)
    assert await editor.tree() == before


async def test_a_merge_by_path_goes_by_the_names_that_it_has_written_itself() -> None:
    editor = await hand(Grove())
    await editor.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={"name": "x"})
    await editor.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={"name": "a"})
    await editor.ok("copy_subtree", sourceId="n2", targetParentId="n1", mode="reference")
    nameless = {"payloadType": "T", "payload": {"y": 1}}
    # The first 'a' to be replaced shares its payload with n2, which is nameless from then on, too.
    below = {"payloadType": "T", "payload": {"name": "x"}, "children": [{"nodeId": "a", **nameless}]}
    document = {"nodeId": "root", "payloadType": "Root", "children": [below, {"nodeId": "n2", **nameless}]}
    merged = await editor.ok("import_merge", json=document, strategy="replace", matchBy="path")
    assert (merged["created"], merged["updated"], merged["removed"]) == ([], ["n3"], [])
    assert await children(editor, "root") == ["n1", "n2"]
