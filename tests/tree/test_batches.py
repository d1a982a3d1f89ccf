"""A batch of changes is one change: each part sees those before it, and none of them gets around a rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grove_kit import Hand, config, hand, sample
from toolgrove import Grove
from toolgrove.tools.sample import RULESETS

pytestmark = pytest.mark.anyio


async def wide(tasks: int = 300) -> tuple[Grove, Hand]:
    grove = Grove(config())
    editor = await hand(grove)
    items = [
        {
            "nodeId": f"t{at}",
            "parentId": "root",
            "payloadType": "Task",
            "payload": {"name": f"Task {at}", "area": at % 3},
        }
        for at in range(tasks)
    ]
    await editor.ok("import_merge", json={"items": items}, strategy="upsert")
    return grove, editor


async def names(editor: Hand, node_id: str) -> list[str]:
    shown = await editor.ok("get_subtree", nodeId=node_id, depthLimit=1)
    return [child["payload"]["name"] for child in shown["subtree"].get("children", [])]


async def test_three_hundred_nodes_are_reorganised_by_one_call_and_one_undo_takes_it_back() -> None:
    _, editor = await wide()
    before, version = await editor.tree(), await editor.version()
    changes: list[Any] = []
    for area in range(3):
        ref = {"ref": f"area{area}"}
        changes += [
            {"op": "add", "parentId": "root", "payloadType": "Area", "payload": {"name": f"Area {area}"}, **ref},
            {"op": "move", "at": {"query": f"@type = Task and area = {area}"}, "parentId": ref},
            {"op": "sort", "at": ref, "by": "name", "direction": "desc"},
            {"op": "tag", "at": {"query": f'//"Area {area}"/*'}, "add": ["sorted"]},
        ]
    answer = await editor.ok("apply_changes", changes=changes)
    assert answer["counts"] == {"add": 3, "move": 300, "sort": 3, "tag": 300}
    assert len(json.dumps(answer)) < 400
    assert len(await names(editor, answer["refs"]["area0"])) == 100
    assert (await names(editor, answer["refs"]["area1"]))[:2] == ["Task 97", "Task 94"]
    since = await editor.ok("changes_since", version=version)
    assert [(one["tool"], one["nodeCount"]) for one in since["items"]] == [("apply_changes", 303)]
    await editor.ok("undo")
    assert await editor.tree() == before


async def test_a_change_sees_the_changes_before_it_and_refs_are_nodes() -> None:
    _, editor = await sample()
    answer = await editor.ok(
        "apply_changes",
        changes=[
            {"op": "add", "parentId": "house", "payloadType": "Room", "payload": {"name": "A"}, "ref": "a", "index": 0},
            {
                "op": "add",
                "parentId": "house",
                "payloadType": "Room",
                "payload": {"name": "B"},
                "ref": "b",
                "tags": ["x"],
            },
            {"op": "add", "parentId": "house", "payloadType": "Room", "payload": {"name": "C"}, "after": {"ref": "a"}},
            {"op": "move", "at": {"ref": "b"}, "before": {"ref": "a"}},
            {"op": "set", "at": {"query": "name = B"}, "path": "meta.size", "value": {"w": 1}},
            {"op": "unset", "at": {"query": "meta.size.w = 1"}, "path": "meta.size.w"},
            {"op": "copy", "at": {"ref": "b"}, "parentId": "shed", "mode": "duplicate"},
            {"op": "remove", "at": {"query": "//Shed/B"}},
        ],
    )
    assert answer["counts"] == {"add": 3, "move": 1, "set": 1, "unset": 1, "copy": 1, "remove": 1}
    assert (await names(editor, "house"))[:3] == ["B", "A", "C"]
    assert (await editor.ok("get_node", nodeId=answer["refs"]["b"]))["payload"] == {"name": "B", "meta": {"size": {}}}
    assert [hit["nodeId"] for hit in (await editor.ok("query_by_tag", tag="x"))["items"]] == [answer["refs"]["b"]]


async def test_a_query_that_matches_nothing_counts_nought_and_says_so() -> None:
    _, editor = await sample()
    answer = await editor.ok("apply_changes", changes=[{"op": "tag", "at": {"query": "nothing = 1"}, "add": ["x"]}])
    assert answer["counts"] == {"tag": 0}
    assert "changes[0]: no node matches 'nothing = 1'" in answer["hint"]


GOOD = {"op": "set", "at": "kitchen", "path": "status", "value": "new"}


@pytest.mark.parametrize(
    ("bad", "code", "words"),
    [
        ({"op": "remove", "at": "nowhere"}, "not_found", "nowhere"),
        ({"op": "remove", "at": "root"}, "invalid_argument", "root cannot be removed"),
        ({"op": "move", "at": "house", "parentId": "kitchen"}, "invalid_argument", "below it"),
        ({"op": "move", "at": "kitchen"}, "invalid_argument", "say where"),
        ({"op": "move", "at": "kitchen", "before": "kitchen"}, "invalid_argument", "beside itself"),
        ({"op": "move", "at": "kitchen", "before": "living", "index": 0}, "invalid_argument", "not both"),
        ({"op": "move", "at": "kitchen", "parentId": "shed", "before": "living"}, "invalid_argument", "no child of"),
        ({"op": "set", "at": "kitchen", "value": 1}, "invalid_argument", "'path' is missing"),
        ({"op": "remove", "at": "kitchen", "mode": "duplicate"}, "invalid_argument", "'mode' does not belong"),
        ({"op": "set", "at": {"ref": "x"}, "path": "a", "value": 1}, "not_found", "ref 'x'"),
        ({"op": "set", "at": {}, "path": "a", "value": 1}, "invalid_argument", "{query: …}"),
        ({"op": "remove", "at": {"query": "name ="}}, "invalid_argument", "position"),
        ({"op": "tag", "at": "kitchen"}, "invalid_argument", "'remove'"),
        ({"op": "set", "at": ["living", "kitchen"], "path": "name.x", "value": 1}, "invalid_argument", "plain value"),
    ],
)
async def test_a_change_that_fails_is_told_by_its_index_and_leaves_nothing_or_the_others(
    bad: Any, code: str, words: str
) -> None:
    _, editor = await sample()
    before, version = await editor.tree(), await editor.version()
    error = await editor.refused("apply_changes", changes=[GOOD, bad, {"op": "remove", "at": "shed"}])
    assert (error["code"], error["index"], words in error["message"]) == (code, 1, True), error
    assert (await editor.tree(), await editor.version()) == (before, version)
    answer = await editor.ok("apply_changes", changes=[GOOD, bad, {"op": "remove", "at": "shed"}], atomic=False)
    assert answer["counts"] == {"set": 1, "remove": 1}
    assert [(one["index"], one["error"]["code"]) for one in answer["failed"]] == [(1, code)]
    await editor.ok("undo")
    assert await editor.tree() == before


async def test_a_dry_run_a_replay_and_an_old_version_are_those_of_any_write() -> None:
    _, editor = await sample()
    before, version = await editor.tree(), await editor.version()
    dry = await editor.ok("apply_changes", changes=[GOOD], dryRun=True)
    assert [entry["nodeId"] for entry in dry["wouldChange"]["changed"]] == ["kitchen"]
    assert await editor.tree() == before
    first = await editor.ok("apply_changes", changes=[GOOD], idempotencyKey="k")
    again = await editor.ok("apply_changes", changes=[GOOD], idempotencyKey="k")
    assert first["version"] == again["version"] != version
    assert (await editor.refused("apply_changes", changes=[GOOD], versionToken=version))["reason"] == "stale_version"


async def test_batches_are_bounded_in_changes_and_in_nodes() -> None:
    grove = Grove(config(workspace={"limits": {"changeNodes": 3}, "rulesets": RULESETS}))
    editor = await hand(grove)
    add = {"op": "add", "parentId": "root", "payloadType": "T"}
    error = await editor.refused("apply_changes", changes=[add] * 4, atomic=False)
    assert (error["reason"], error["limit"], error["index"]) == ("batch_limit", 3, 3)
    assert (await editor.ok("get_node", nodeId="root"))["childrenCount"] == 0
    await editor.ok("apply_changes", changes=[add] * 3)
    error = await editor.refused("apply_changes", changes=[{"op": "tag", "at": {"query": "//*"}, "add": ["a"]}] * 2)
    assert error["limit"] == 3
    error = await editor.refused("apply_changes", changes=[GOOD] * 1001)
    assert (error["reason"], error["limit"]) == ("batch_limit", 1000)


# No way around a rule ---------------------------------------------------------------------------------

OPS: dict[str, Any] = {
    "add_child": {"op": "add", "parentId": "house", "payloadType": "Room"},
    "update_payload": {"op": "set", "at": "kitchen", "path": "a", "value": 1},
    "move_node": {"op": "move", "at": "kitchen", "parentId": "shed"},
    "tag_node": {"op": "tag", "at": "kitchen", "add": ["x"]},
    "copy_subtree": {"op": "copy", "at": "kitchen", "parentId": "shed", "mode": "reference"},
    "sort_children": {"op": "sort", "at": "house", "by": "name"},
    "remove_node": {"op": "remove", "at": "kitchen"},
}
RULES: list[tuple[str, Any]] = [
    *OPS.items(),
    ("update_payload", {"op": "unset", "at": "kitchen", "path": "status"}),
    ("tag_node", {**OPS["add_child"], "tags": ["x"]}),
]


@pytest.mark.parametrize(("tool", "change"), RULES)
async def test_a_change_needs_the_grant_of_the_tool_that_does_it_alone(tool: str, change: Any) -> None:
    agents = {"editor": {"role": "editor"}, "bound": {"role": "editor", "deny": [tool]}}
    grove, editor = await sample(config(agents=agents))
    bound = await hand(grove, "bound")
    before = await editor.tree()
    error = await bound.refused("apply_changes", changes=[OPS["sort_children"], change][tool == "sort_children" :])
    assert (error["code"], error["reason"], error["tool"]) == ("forbidden", "not_granted", tool)
    assert await editor.tree() == before
    await editor.ok("apply_changes", changes=[change])


@pytest.mark.parametrize(("tool", "change"), RULES)
async def test_a_batch_needs_an_approval_where_one_of_its_changes_does(tool: str, change: Any) -> None:
    agents = {"editor": {"role": "editor"}, "bound": {"role": "editor", "approve": [tool]}}
    grove, editor = await sample(config(agents=agents))
    bound = await hand(grove, "bound")
    other = {"op": "set", "at": "shed", "path": "b", "value": 2}
    if tool != "update_payload":
        await bound.ok("apply_changes", changes=[other])
    before = await editor.tree()
    error = await bound.refused("apply_changes", changes=[other, change])
    assert error["reason"] == "approval_required"
    assert await editor.tree() == before
    waiting = await grove.approvals.get(error["approvalId"])
    assert waiting.request.tool == "apply_changes"
    assert f"{tool}: approve: {tool}" in waiting.request.rule
    assert waiting.request.effect
    await grove.approvals.decide(error["approvalId"], approve=True, by="grace")
    await bound.ok("apply_changes", changes=[other, change])
    assert await editor.tree() != before


async def test_an_approval_that_stands_for_one_kind_of_change_does_not_cover_another() -> None:
    agents = {"editor": {"role": "editor"}, "bound": {"role": "editor", "approve": ["tag_node", "remove_node"]}}
    grove, _ = await sample(config(agents=agents))
    bound = await hand(grove, "bound")
    tag = {"op": "tag", "at": "shed", "add": ["x"]}
    asked = (await bound.refused("apply_changes", changes=[tag]))["approvalId"]
    await grove.approvals.decide(asked, approve=True, by="grace", lasts="15m")
    await bound.ok("apply_changes", changes=[tag, {**tag, "at": "kitchen"}])
    assert (await bound.refused("apply_changes", changes=[tag, OPS["remove_node"]]))["reason"] == "approval_required"


async def test_the_write_root_holds_for_every_change() -> None:
    agents = {"editor": {"role": "editor"}, "tenant": {"role": "editor", "writeRoot": "house"}}
    grove, editor = await sample(config(agents=agents))
    tenant = await hand(grove, "tenant")
    inside = {"op": "set", "at": "kitchen", "path": "a", "value": 1}
    for outside in ({**inside, "at": "shed"}, {"op": "move", "at": "kitchen", "parentId": "shed"}, OPS["copy_subtree"]):
        before = await editor.tree()
        error = await tenant.refused("apply_changes", changes=[inside, outside])
        assert (error["reason"], error["index"]) == ("write_root", 1)
        assert await editor.tree() == before
    answer = await tenant.ok("apply_changes", changes=[inside, {**inside, "at": "shed"}], atomic=False)
    assert [one["error"]["reason"] for one in answer["failed"]] == ["write_root"]


async def test_guarded_properties_and_types_hold_for_every_change() -> None:
    types = {"Page": {"kind": "self"}, "Task": {"schema": {"properties": {"size": {"type": "integer"}}}}}
    editor = await hand(Grove(config(workspace={"payloadTypes": types})))
    pages = [{"op": "add", "parentId": "root", "payloadType": "Page", "ref": "p"}]
    guarded = {"op": "set", "at": {"ref": "p"}, "path": "Parent.x", "value": 1}
    assert (await editor.refused("apply_changes", changes=[*pages, guarded]))["reason"] == "guarded_property"
    unset = {"op": "unset", "at": {"ref": "p"}, "path": "nodeId"}
    assert (await editor.refused("apply_changes", changes=[*pages, unset]))["reason"] == "guarded_property"
    task = {"op": "add", "parentId": "root", "payloadType": "Task", "payload": {"size": "x"}}
    assert (await editor.refused("apply_changes", changes=[task]))["reason"] == "payload_schema"
    assert (await editor.refused("apply_changes", changes=[{**task, "payloadType": "No"}]))["reason"] == "unknown_type"


@pytest.mark.parametrize(("kept", "bodies"), [("none", (None, None)), ("arguments", ("…", None)), ("full", ("…", "…"))])
async def test_no_more_is_recorded_of_a_batch_than_of_each_of_its_changes(kept: str, bodies: tuple[Any, Any]) -> None:
    grove, editor = await sample(config(record={"tools": {"tag_node": kept}}))
    await editor.ok("apply_changes", changes=[OPS["tag_node"], OPS["update_payload"]])
    record = list(grove.audit)[-1]
    assert ("arguments" in record, "result" in record) == tuple(body is not None for body in bodies)


@pytest.mark.parametrize("changes", [None, [], 7, [7], [{}], [{"op": 7}], [{"op": "none"}], {"op": "set"}])
async def test_what_is_no_list_of_changes_is_refused_and_on_record(changes: Any) -> None:
    grove, editor = await sample()
    error = await editor.refused("apply_changes", changes=changes)
    assert (error["code"], error["reason"]) == ("invalid_argument", "schema")
    assert list(grove.audit)[-1]["operation"] == "apply_changes"


async def test_nulls_in_the_place_of_what_is_optional_count_as_left_out() -> None:
    """Strict schemas make a model name every property of every change."""
    _, editor = await sample()
    tool = next(one for one in editor.agent.openai_tools(strict=True) if one["function"]["name"] == "apply_changes")
    unset = dict.fromkeys(tool["function"]["parameters"]["properties"]["changes"]["items"]["properties"])
    changes = [
        {**unset, "op": "tag", "at": {"query": "status = open", "ref": None}, "add": ["x"]},
        {**unset, "op": "set", "at": "kitchen", "path": "status", "value": None},
        {**unset, "op": "remove", "at": ["shed"]},
    ]
    answer = await editor.ok("apply_changes", changes=changes, atomic=None, dryRun=None, idempotencyKey=None)
    assert answer["counts"] == {"tag": 2, "set": 1, "remove": 1}
    assert (await editor.ok("get_node", nodeId="kitchen"))["payload"]["status"] is None


async def test_a_change_of_a_property_called_tags_names_the_op_for_tags() -> None:
    _, editor = await sample()
    answer = await editor.ok("apply_changes", changes=[{**GOOD, "path": "tags", "value": ["x"]}])
    assert "op tag" in answer["hint"]


async def test_a_reader_has_no_batches() -> None:
    grove, _ = await sample()
    reader = await hand(grove, "reader")
    assert "apply_changes" not in [tool.name for tool in reader.agent.tools]
    assert (await reader.refused("apply_changes", changes=[GOOD]))["reason"] == "role"
