"""The scenarios that specification 000 states and specification 001 repeats, through the public API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grove_kit import Hand, ManualClock, config, hand, sample
from toolgrove import Config, Grove
from toolgrove.tools import DECLARATIONS

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("TREE-000-01")
@pytest.mark.requirement("TREE-001-13")
async def test_read_tools_answer_json_with_only_the_properties_asked_for() -> None:
    _, editor = await sample()
    only = {"includedProperties": ["name"]}
    answers = [
        await editor.ok("get_node", nodeId="kitchen", **only),
        await editor.ok("get_view", rootNodeId="kitchen", **only),
        await editor.ok(
            "search", rootNodeId="root", filters=[{"path": "name", "op": "eq", "value": "Kitchen"}], **only
        ),
        await editor.ok("list_children", nodeId="house", limit=1, **only),
    ]
    shown = [answers[0], answers[1]["view"], answers[2]["items"][0], answers[3]["items"][0]]
    assert [json.loads(json.dumps(node))["payload"] for node in shown] == [{"name": "Kitchen"}] * 4


@pytest.mark.requirement("TREE-000-02")
@pytest.mark.requirement("TREE-001-14")
async def test_mutation_tools_apply_and_answer_with_ids_and_a_new_version() -> None:
    _, editor = await sample()
    exported = (await editor.ok("export_view", rootNodeId="house"))["viewJson"]
    steps: list[tuple[str, dict[str, Any], str]] = [
        ("expand_node", {"nodeId": "house"}, "house"),
        ("collapse_node", {"nodeId": "house"}, "house"),
        ("add_child", {"parentNodeId": "house", "payloadType": "Room", "payloadProps": {"name": "Study"}}, "n1"),
        ("update_payload_property", {"nodeId": "n1", "propertyName": "name", "newValue": "Den"}, "n1"),
        ("move_node", {"nodeId": "n1", "newParentId": "property"}, "n1"),
        ("remove_node", {"nodeId": "n1"}, "n1"),
    ]
    for tool, arguments, node_id in steps:
        before = await editor.version()
        answer = await editor.ok(tool, **arguments)
        assert answer["nodeId"] == node_id
        assert answer["version"] != before
        assert answer["version"] == await editor.version()
    answer = await editor.ok(
        "import_view", viewJson=exported, payloadTypes=["House", "Room"], rootLookupStrategy="nodeId"
    )
    assert answer["rootNodeId"] == "house"


@pytest.mark.requirement("TREE-000-03")
@pytest.mark.requirement("TREE-001-15")
async def test_the_core_read_tools_succeed_with_all_their_arguments() -> None:
    _, editor = await sample()
    await editor.ok("get_node", nodeId="house", includedProperties=["name"], excludedProperties=["status"])
    await editor.ok(
        "get_view",
        rootNodeId="root",
        includeViewRoot=True,
        defaultExpanded=True,
        includedProperties=["name"],
        excludedProperties=[],
        depthLimit=2,
        pageSize=2,
    )
    filters = [{"path": "name", "op": "contains", "value": "room"}, {"path": "status", "op": "eq", "value": "done"}]
    found = await editor.ok("search", rootNodeId="root", filters=filters, limit=10)
    assert [hit["nodeId"] for hit in found["items"]] == ["living"]
    first = await editor.ok("list_children", nodeId="house", limit=2)
    rest = await editor.ok("list_children", nodeId="house", limit=2, pageToken=first["nextPageToken"])
    assert [node["nodeId"] for node in first["items"] + rest["items"]] == ["kitchen", "living", "bath"]
    assert "nextPageToken" not in rest


@pytest.mark.requirement("TREE-000-04")
@pytest.mark.requirement("TREE-001-16")
async def test_the_core_mutate_tools_succeed_for_an_editor() -> None:
    _, editor = await sample()
    assert (await editor.ok("expand_node", nodeId="root"))["view"]["children"][0]["nodeId"] == "property"
    assert (await editor.ok("toggle_node", nodeId="root"))["isExpanded"] is False
    assert (await editor.ok("expand_all", rootNodeId="root"))["changedCount"] == 7
    assert (await editor.ok("collapse_all", rootNodeId="root"))["changedCount"] == 7
    assert (await editor.ok("collapse_node", nodeId="root"))["changedCount"] == 0
    added = await editor.ok("add_child", parentNodeId="root", payloadType="Shed", payloadProps={"name": "New"})
    assert set(added) == {"nodeId", "version"}
    await editor.ok("update_payload_property", nodeId=added["nodeId"], propertyName="size", newValue=3)
    await editor.ok("move_node", nodeId=added["nodeId"], newParentId="property")
    moved = await editor.ok("get_node", nodeId=added["nodeId"])
    assert (moved["parentId"], moved["payload"]) == ("property", {"name": "New", "size": 3})
    await editor.ok("remove_node", nodeId=added["nodeId"])
    assert (await editor.refused("get_node", nodeId=added["nodeId"]))["code"] == "not_found"
    await editor.ok("expand_node", nodeId="house")
    view = (await editor.ok("export_view", rootNodeId="house", includeViewRoot=True))["viewJson"]
    assert "viewRoot" not in (await editor.ok("export_view", rootNodeId="house", includeViewRoot=False))["viewJson"]
    await editor.ok("collapse_all", rootNodeId="root")
    types = ["House", "Room"]
    for strategy in ("nodeId", "path"):
        restored = await editor.ok("import_view", viewJson=view, payloadTypes=types, rootLookupStrategy=strategy)
        assert (restored["rootNodeId"], restored["ignored"]) == ("house", 0)
        shown = (await editor.ok("get_view", rootNodeId="house"))["view"]
        assert [child["nodeId"] for child in shown["children"]] == ["kitchen", "living", "bath"]
        await editor.ok("collapse_node", nodeId="house")
    refused = await editor.refused("import_view", viewJson=view, payloadTypes=["House"], rootLookupStrategy="nodeId")
    assert (refused["code"], refused["payloadTypes"]) == ("invalid_argument", ["Room"])


@pytest.mark.requirement("TREE-000-05")
@pytest.mark.requirement("TREE-001-17")
async def test_included_paths_keep_what_is_equal_or_under_them_and_exclusion_wins() -> None:
    grove = Grove()
    editor = await hand(grove)
    payload = {
        "name": "A",
        "nameLong": "no",
        "Meta": {"size": 1, "inner": {"deep": 2}, "secret": 3},
        "parts": [{"id": 1, "cost": 5}, {"id": 2, "cost": 6}],
    }
    added = await editor.ok("add_child", parentNodeId="root", payloadType="T", payloadProps=payload)

    async def shown(included: list[str], excluded: list[str] | None = None) -> Any:
        answer = await editor.ok(
            "get_node", nodeId=added["nodeId"], includedProperties=included, excludedProperties=excluded or []
        )
        assert answer["nodeId"] == added["nodeId"]
        return answer["payload"]

    assert await shown(["name"]) == {"name": "A"}
    assert await shown(["meta"]) == {"Meta": payload["Meta"]}
    assert await shown(["payload.meta.inner"]) == {"Meta": {"inner": {"deep": 2}}}
    assert await shown(["meta"], ["meta.secret", "meta.inner"]) == {"Meta": {"size": 1}}
    assert await shown(["parts.id"]) == {"parts": [{"id": 1}, {"id": 2}]}
    assert await shown([], ["parts", "Meta", "nameLong"]) == {"name": "A"}
    assert await shown(["name"], ["name"]) == {}


@pytest.mark.requirement("TREE-000-06")
@pytest.mark.requirement("TREE-001-18")
async def test_depth_and_page_size_bound_the_answer_and_a_token_continues_it() -> None:
    _, editor = await sample()
    asked: dict[str, Any] = {"rootNodeId": "root", "defaultExpanded": True, "depthLimit": 2, "pageSize": 2}
    seen: list[tuple[str, int]] = []
    token: dict[str, str] = {}
    for _ in range(5):
        page = await editor.ok("get_view", **asked, **token)
        assert len(page["items"]) <= 2
        seen += [(item["nodeId"], item["depth"]) for item in page["items"]]
        if "nextPageToken" not in page:
            break
        token = {"pageToken": page["nextPageToken"]}
    assert seen == [("root", 0), ("property", 1), ("house", 2), ("shed", 2)]


async def refused_writes(reader: Hand) -> list[dict[str, Any]]:
    return [
        await reader.refused("add_child", parentNodeId="root", payloadType="T", payloadProps={}),
        await reader.refused("expand_node", nodeId="root"),
        await reader.refused("remove_node", nodeId="house"),
        await reader.refused("undo"),
    ]


@pytest.mark.requirement("TREE-000-07")
@pytest.mark.requirement("TREE-001-05")
@pytest.mark.requirement("TREE-001-19")
async def test_read_only_mode_stops_every_mutation_of_everyone() -> None:
    settings = config(agents={"editor": {"role": "editor"}}, workspace={"readOnly": True})
    editor = await hand(Grove(settings))
    before = await editor.tree()
    errors = await refused_writes(editor)
    assert {error["code"] for error in errors} == {"forbidden"}
    assert {error["reason"] for error in errors} == {"read_only"}
    assert await editor.tree() == before
    frozen = await hand(Grove(config(agents={"editor": {"role": "editor", "readOnly": True}})))
    assert {error["code"] for error in await refused_writes(frozen)} == {"forbidden"}


@pytest.mark.requirement("TREE-000-08")
@pytest.mark.requirement("TREE-001-20")
async def test_a_reader_has_only_read_tools_and_an_editor_all() -> None:
    grove, editor = await sample()
    reader = await hand(grove, "reader")
    assert {error["reason"] for error in await refused_writes(reader)} == {"role"}
    assert all(tool.annotations.readonly for tool in reader.agent.tools if tool.source == "workspace")
    assert {tool.name for tool in editor.agent.tools if tool.source == "workspace"} == set(DECLARATIONS)
    assert {tool.name for tool in reader.agent.tools} < {tool.name for tool in editor.agent.tools}
    await reader.ok("get_view", rootNodeId="root")


SELF = {"payloadTypes": {"Page": {"kind": "self"}, "Task": {"kind": "external"}}}
GUARDED = [
    "NodeId",
    "Children",
    "Parent",
    "PayloadType",
    "nodeid",
    "PARENT",
    "Ｐarent",
    "Pаrent",
    "par\u200bent",
    "a.b.Parent",
]


@pytest.mark.requirement("TREE-000-09")
@pytest.mark.requirement("TREE-001-06")
@pytest.mark.requirement("TREE-001-21")
@pytest.mark.parametrize("name", GUARDED)
async def test_guarded_properties_of_a_self_payload_node_cannot_be_written_by_any_path(name: str) -> None:
    editor = await hand(Grove(config(workspace=SELF)))
    page = (await editor.ok("add_child", parentNodeId="root", payloadType="Page", payloadProps={"name": "P"}))["nodeId"]
    before = await editor.tree()
    document = {"nodeId": page, "payloadType": "Page", "payload": {"ok": 1, name: "x"}}
    new = {"payloadType": "Page", "payload": {name: "x"}}
    attempts = [
        await editor.refused("update_payload_property", nodeId=page, propertyName=name, newValue="x"),
        await editor.refused("update_payload", nodeId=page, patch={"ok": 1, name: "x"}),
        await editor.refused("add_child", parentNodeId="root", payloadType="Page", payloadProps={"ok": 1, name: "x"}),
        await editor.refused("import_merge", json=document, strategy="upsert", matchBy="nodeId"),
        await editor.refused("import_merge", json=document, strategy="replace", matchBy="nodeId"),
        await editor.refused("import_merge", json=new, strategy="skip", matchBy="path"),
    ]
    assert {error["code"] for error in attempts} == {"invalid_argument"}
    bulk = await editor.ok("update_nodes", filter="@type = Page", patch={name: "x"})
    assert [outcome["status"] for outcome in bulk["outcomes"]] == ["failed"]
    assert bulk["outcomes"][0]["error"]["code"] == "invalid_argument"
    assert await editor.tree() == before


async def test_an_external_payload_may_have_a_field_called_parent() -> None:
    editor = await hand(Grove(config(workspace=SELF)))
    task = (await editor.ok("add_child", parentNodeId="root", payloadType="Task", payloadProps={}))["nodeId"]
    await editor.ok("update_payload_property", nodeId=task, propertyName="Parent", newValue="x")
    assert (await editor.ok("get_node", nodeId=task))["payload"] == {"Parent": "x"}


@pytest.mark.requirement("TREE-000-10")
@pytest.mark.requirement("TREE-001-09")
@pytest.mark.requirement("TREE-001-22")
async def test_a_missing_or_stale_version_is_a_conflict_with_the_latest_and_what_changed() -> None:
    _, editor = await sample()
    old = await editor.version()
    await editor.ok("update_payload_property", nodeId="kitchen", propertyName="status", newValue="done")
    before = await editor.tree()
    for given in ({}, {"versionToken": old}, {"versionToken": "made up"}, {"versionToken": old[:-1] + "999999"}):
        arguments = {"nodeId": "shed", "propertyName": "x", "newValue": 1, **given}
        error = (await editor.agent.call("update_payload_property", arguments))["error"]
        assert error["code"] == "conflict"
        assert error["latestVersion"] == await editor.version()
    stale = await editor.refused("remove_node", nodeId="shed", versionToken=old)
    assert stale["changedNodeIds"] == ["kitchen"]
    assert await editor.tree() == before
    await editor.ok("remove_node", nodeId="shed", versionToken=stale["latestVersion"])
    elsewhere = await hand(Grove())
    assert (await editor.refused("undo", versionToken=await elsewhere.version()))["code"] == "conflict"


@pytest.mark.requirement("TREE-000-11")
@pytest.mark.requirement("TREE-001-10")
@pytest.mark.requirement("TREE-001-23")
async def test_a_repeated_key_gives_the_first_result_and_no_second_effect() -> None:
    _, editor = await sample()
    request = {
        "parentNodeId": "house",
        "payloadType": "Room",
        "payloadProps": {"name": "Study"},
        "idempotencyKey": "k1",
        "versionToken": await editor.version(),
    }
    first = await editor.agent.call("add_child", dict(request))
    before = await editor.tree()
    again = await editor.agent.call("add_child", dict(request))
    assert again == first
    assert await editor.tree() == before
    other = await editor.agent.call("add_child", {**request, "payloadProps": {"name": "Other"}})
    assert (other["error"]["code"], other["error"]["reason"]) == ("invalid_argument", "idempotency_key_reused")
    fresh = await editor.agent.call("add_child", {**request, "versionToken": await editor.version()})
    assert fresh == first


@pytest.mark.requirement("TREE-000-12")
@pytest.mark.requirement("TREE-001-07")
@pytest.mark.requirement("TREE-001-24")
async def test_an_agent_over_its_rate_is_told_when_to_come_back() -> None:
    clock = ManualClock()
    agents = {"editor": {"role": "editor", "rateLimit": "3/minute"}, "other": {"role": "reader"}}
    grove = Grove(config(agents=agents), clock=clock)
    editor, other = await hand(grove), await hand(grove, "other")
    for _ in range(3):
        await editor.ok("get_node", nodeId="root")
        clock.now += 10
    error = await editor.refused("get_node", nodeId="root")
    assert (error["code"], error["retryAfter"]) == ("rate_limited", 30)
    await other.ok("get_node", nodeId="root")
    clock.now += 29.9
    await editor.refused("get_node", nodeId="root")
    clock.now += 0.1
    await editor.ok("get_node", nodeId="root")
    assert (await editor.refused("get_node", nodeId="root"))["retryAfter"] == 10


@pytest.mark.requirement("TREE-000-13")
@pytest.mark.requirement("TREE-001-08")
@pytest.mark.requirement("TREE-001-25")
async def test_a_batch_over_its_limit_is_refused_with_the_limit() -> None:
    limits = {"nodeIds": 3, "patch": 2, "updateNodes": 2, "importNodes": 3, "copyNodes": 3, "expandNodes": 3, "tags": 2}
    settings = config(workspace={"limits": {**limits, "importNodes": 8}})
    _, editor = await sample(settings)
    many = {"items": [{"nodeId": f"x{at}", "payloadType": "T", "payload": {}} for at in range(9)]}
    cases: list[tuple[str, dict[str, Any], int]] = [
        ("get_common_ancestor", {"nodeIds": ["root"] * 4}, 3),
        ("update_payload", {"nodeId": "shed", "patch": {"a": 1, "b": 2, "c": 3}}, 2),
        ("update_nodes", {"filter": "@type = Room", "patch": {"a": 1}}, 2),
        ("import_merge", {"json": many, "strategy": "upsert", "matchBy": "nodeId"}, 8),
        ("copy_subtree", {"sourceId": "house", "targetParentId": "root", "mode": "duplicate"}, 3),
        ("expand_all", {"rootNodeId": "root"}, 3),
        ("tag_node", {"nodeId": "shed", "tags": ["a", "b", "c"]}, 2),
    ]
    before = await editor.tree()
    for tool, arguments, limit in cases:
        error = await editor.refused(tool, **arguments)
        assert (error["code"], error["reason"], error["limit"]) == ("invalid_argument", "batch_limit", limit), tool
        assert str(limit) in error["message"]
    assert await editor.tree() == before
    await editor.ok("get_common_ancestor", nodeIds=["root"] * 3)


@pytest.mark.requirement("TREE-000-14")
@pytest.mark.requirement("TREE-001-26")
async def test_a_mutation_leaves_an_audit_record_whether_it_succeeds_or_fails() -> None:
    grove, editor = await sample(clock=ManualClock())
    token = await editor.version()
    start = len(grove.audit)
    await editor.agent.call("remove_node", {"nodeId": "shed", "versionToken": token})
    await editor.agent.call("remove_node", {"nodeId": "gone", "versionToken": await editor.version()})
    done, _, failed = list(grove.audit)[start:]
    assert (done["agent"], done["operation"], done["targets"], done["outcome"]) == (
        "editor",
        "remove_node",
        ["shed"],
        "success",
    )
    assert done["timestamp"].startswith("2027-01-15T08:16:40")
    assert (failed["outcome"], failed["targets"], failed["error"]["code"]) == ("failure", ["gone"], "not_found")


@pytest.mark.requirement("TREE-001-11")
async def test_every_call_is_logged_also_reads_refusals_and_replays() -> None:
    agents = {"editor": {"role": "editor"}, "reader": {"role": "reader"}, "busy": {"rateLimit": "1/hour"}}
    grove, editor = await sample(config(agents=agents))
    reader, busy = await hand(grove, "reader"), await hand(grove, "busy")
    start = len(grove.audit)
    await reader.agent.call("get_node", {"nodeId": "house"})
    await reader.agent.call("remove_node", {"nodeId": "house"})
    await reader.agent.call("no_such_tool", {})
    await reader.agent.call("get_node", {"nodeId": 7})
    await busy.agent.call("get_node", {"nodeId": "house"})
    await busy.agent.call("get_node", {"nodeId": "house"})
    request = {
        "label": "s",
        "idempotencyKey": "k",
        "versionToken": (await editor.agent.call("get_path", {"nodeId": "root"}))["version"],
    }
    await editor.agent.call("snapshot_create", dict(request))
    await editor.agent.call("snapshot_create", dict(request))
    told = [(record["agent"], record["operation"], record["outcome"]) for record in list(grove.audit)[start:]]
    assert told == [
        ("reader", "get_node", "success"),
        ("reader", "remove_node", "refused"),
        ("reader", "no_such_tool", "failure"),
        ("reader", "get_node", "failure"),
        ("busy", "get_node", "success"),
        ("busy", "get_node", "refused"),
        ("editor", "get_path", "success"),
        ("editor", "snapshot_create", "success"),
        ("editor", "snapshot_create", "replayed"),
    ]


@pytest.mark.requirement("TREE-001-12")
async def test_a_failure_is_logged_with_what_is_needed_to_understand_it() -> None:
    grove, editor = await sample()
    await editor.refused("select_nodes", queryDsl="name == x")
    record = list(grove.audit)[-1]
    assert record["error"]["code"] == "invalid_argument"
    assert record["error"]["position"] == 5
    assert record["callId"]
    assert record["arguments"]


@pytest.mark.requirement("TREE-000-15")
@pytest.mark.requirement("TREE-001-27")
async def test_every_failure_has_one_of_six_codes_and_a_message() -> None:
    agents = {"editor": {"role": "editor"}, "reader": {}, "busy": {"rateLimit": "1/hour"}}
    grove, editor = await sample(config(agents=agents))
    reader, busy = await hand(grove, "reader"), await hand(grove, "busy")
    await busy.ok("get_node", nodeId="root")
    errors = [
        await editor.refused("get_node", nodeId=5),
        await editor.refused("get_node", nodeId="nowhere"),
        await reader.refused("undo"),
        await editor.refused("undo", versionToken="x"),
        await busy.refused("get_node", nodeId="root"),
    ]
    codes = [error["code"] for error in errors]
    assert codes == ["invalid_argument", "not_found", "forbidden", "conflict", "rate_limited"]
    assert all(len(error["message"]) > 10 for error in errors)


@pytest.mark.requirement("TREE-000-16")
@pytest.mark.requirement("TREE-001-28")
async def test_the_tools_work_in_process_without_any_configuration() -> None:
    async with Grove() as grove:
        agent = await grove.agent("editor", depth=0)
        root = await agent.call("get_node", {"nodeId": "root"})
        answer = await agent.call(
            "add_child",
            {
                "parentNodeId": "root",
                "payloadType": "Anything",
                "payloadProps": {"name": "first"},
                "versionToken": root["version"],
            },
        )
        assert answer["nodeId"] == "n1"
        assert {tool.source for tool in agent.tools} == {"workspace", "coordination"}
        assert (await (await grove.agent("reader")).call("get_path", {"nodeId": "n1"}))["path"][1]["name"] == "first"
    assert isinstance(grove.config, Config)


@pytest.mark.requirement("TREE-001-01")
async def test_a_view_is_read_to_a_depth_with_a_property_filter() -> None:
    _, editor = await sample()
    answer = await editor.ok(
        "get_view", rootNodeId="property", defaultExpanded=True, depthLimit=1, includedProperties=["name"]
    )
    view = answer["view"]
    assert view["payload"] == {"name": "Property"}
    assert [(child["payload"], child["isExpanded"], child["childrenCount"]) for child in view["children"]] == [
        ({"name": "House"}, False, 3),
        ({"name": "Shed"}, True, 0),
    ]
    assert "children" not in view["children"][0]


@pytest.mark.requirement("TREE-001-02")
async def test_a_hit_carries_its_way_from_the_root() -> None:
    _, editor = await sample()
    found = await editor.ok("search", rootNodeId="root", filters=[{"path": "NAME", "op": "contains", "value": "BATH"}])
    assert [crumb["nodeId"] for crumb in found["items"][0]["path"]] == ["root", "property", "house", "bath"]
    assert found["items"][0]["path"][3] == {"nodeId": "bath", "name": "Bath Room", "depth": 3}


@pytest.mark.requirement("TREE-001-03")
async def test_expanding_and_collapsing_change_the_callers_view_only_and_show_the_result() -> None:
    grove, editor = await sample()
    other = await hand(grove, "reader")
    opened = await editor.ok("expand_node", nodeId="house")
    assert [child["nodeId"] for child in opened["view"]["children"]] == ["kitchen", "living", "bath"]
    assert "children" in (await editor.ok("get_view", rootNodeId="house"))["view"]
    assert "children" not in (await other.ok("get_view", rootNodeId="house"))["view"]
    second = await hand(grove, "editor", session="second")
    assert "children" not in (await second.ok("get_view", rootNodeId="house"))["view"]
    again = await hand(grove)
    assert "children" in (await again.ok("get_view", rootNodeId="house"))["view"]
    closed = await editor.ok("collapse_node", nodeId="house")
    assert (closed["view"]["isExpanded"], closed["view"]["childrenCount"]) == (False, 3)


@pytest.mark.requirement("TREE-001-04")
async def test_a_change_is_validated_applied_and_answered_with_the_new_state() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}, "size": {"type": "integer"}}}
    types = {"Task": {"schema": {**schema, "additionalProperties": False}}, "Note": {"schema": schema, "closed": True}}
    editor = await hand(Grove(config(workspace={"payloadTypes": types})))
    task = (await editor.ok("add_child", parentNodeId="root", payloadType="Task", payloadProps={"title": "a"}))[
        "nodeId"
    ]
    done = await editor.ok("update_payload_property", nodeId=task, propertyName="size", newValue=4)
    assert done["payload"] == {"size": 4}
    bad = await editor.refused("update_payload_property", nodeId=task, propertyName="size", newValue="4")
    assert (bad["code"], bad["path"]) == ("invalid_argument", "size")
    assert (await editor.refused("update_payload", nodeId=task, patch={"other": 1}))["code"] == "invalid_argument"
    assert (await editor.refused("add_child", parentNodeId="root", payloadType="Note", payloadProps={"x": 1}))[
        "code"
    ] == ("invalid_argument")
    unknown = await editor.refused("add_child", parentNodeId="root", payloadType="Tusk", payloadProps={})
    assert "Did you mean 'Task'?" in unknown["message"]
    assert (await editor.ok("get_node", nodeId=task))["payload"] == {"title": "a", "size": 4}
