"""A bulk change is one commit; dry runs, undo, validation and empty answers tell the truth."""

from __future__ import annotations

from typing import Any

import pytest

from grove_kit import Hand, config, hand
from toolgrove import Grove
from toolgrove.tools import DECLARATIONS

pytestmark = pytest.mark.anyio


async def grown(count: int, settings: Any = None) -> Hand:
    editor = await hand(Grove(settings or config()))
    items = [
        {"nodeId": f"k{at}", "parentId": "root", "payloadType": "T", "payload": {"at": at, "status": "open"}}
        for at in range(count)
    ]
    await editor.ok("import_merge", json={"items": items}, strategy="upsert")
    return editor


async def test_a_dry_run_does_not_use_up_its_key() -> None:
    editor = await grown(1)
    call = {"nodeId": "k0", "patch": {"status": "done"}, "idempotencyKey": "once"}
    assert (await editor.ok("update_payload", **call, dryRun=True))["dryRun"] is True
    first = await editor.ok("update_payload", **call)
    assert first["nodeIds"] == ["k0"]
    assert await editor.ok("update_payload", **call) == first
    assert (await editor.ok("update_payload", **call, dryRun=True))["nodeIds"] == []


async def test_a_bulk_change_is_one_commit_and_one_undo() -> None:
    editor = await grown(30)
    version = await editor.version()
    done = await editor.ok("update_nodes", filter="status = open", patch={"status": "done"})
    assert (done["updated"], len(done["outcomes"])) == (30, 30)
    changes = (await editor.ok("changes_since", version=version))["items"]
    assert [(one["tool"], one["nodeCount"]) for one in changes] == [("update_nodes", 30)]
    assert (await editor.ok("undo"))["nodeCount"] == 30
    assert (await editor.ok("select_nodes", queryDsl="status = done"))["items"] == []
    await editor.ok("redo")
    assert len((await editor.ok("select_nodes", queryDsl="status = done"))["items"]) == 30


async def test_bulk_changes_leave_as_much_to_take_back_as_there_were_calls() -> None:
    editor = await grown(30, config(workspace={"limits": {"history": 40}}))
    for at in range(14):
        await editor.ok("update_nodes", filter="@type = T", patch={"round": at})
    for _ in range(14):
        await editor.ok("undo")
    assert (await editor.ok("select_nodes", queryDsl="exists round"))["items"] == []


async def test_undo_says_when_history_does_not_reach_back_far_enough() -> None:
    editor = await grown(1, config(workspace={"limits": {"history": 10}}))
    assert (await editor.refused("redo"))["reason"] == "nothing_to_redo"
    for at in range(30):
        await editor.ok("update_payload", nodeId="k0", patch={"round": at})
    count = 0
    while "error" not in (answer := await editor("undo")):
        count += 1
    assert 0 < count < 30
    assert answer["error"]["reason"] == "nothing_to_undo"
    assert "changed nothing" not in answer["error"]["message"]
    assert "snapshot" in answer["error"]["message"]


async def test_a_bulk_change_tells_of_each_node_by_itself_and_keeps_those_that_succeeded() -> None:
    types = {"T": {"schema": {"properties": {"at": {"maximum": 1}}}}, "Root": {}}
    editor = await hand(Grove(config(workspace={"payloadTypes": types})))
    await editor.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={"at": 1})
    await editor.ok("add_child", parentNodeId="root", payloadType="Root", payloadProps={"at": 1})
    done = await editor.ok("update_nodes", filter="at = 1", patch={"at": 2})
    assert [outcome["status"] for outcome in done["outcomes"]] == ["failed", "updated"]
    assert (await editor.ok("get_node", nodeId="n1"))["payload"] == {"at": 1}
    assert (await editor.ok("undo"))["nodeIds"] == ["n2"]


@pytest.mark.parametrize("dry", [True, False])
async def test_every_holder_of_a_shared_payload_is_told_as_updated(dry: bool) -> None:
    editor = await grown(1)
    copy = (await editor.ok("copy_subtree", sourceId="k0", targetParentId="root", mode="reference"))["nodeId"]
    done = await editor.ok("update_nodes", filter="status = open", patch={"status": "done"}, dryRun=dry)
    assert done["outcomes"] == [{"nodeId": "k0", "status": "updated"}, {"nodeId": copy, "status": "updated"}]
    assert done["updated"] == 2


async def test_a_bulk_change_through_a_shared_payload_stops_at_the_write_root() -> None:
    agents = {"editor": {"role": "editor"}, "tenant": {"role": "editor", "writeRoot": "k0"}}
    grove = Grove(config(agents=agents))
    editor, tenant = await hand(grove), await hand(grove, "tenant")
    await editor.ok(
        "import_merge",
        json={"items": [{"nodeId": key, "parentId": "root", "payloadType": "T"} for key in ("k0", "k1")]},
        strategy="upsert",
    )
    inner = (await editor.ok("add_child", parentNodeId="k0", payloadType="T", payloadProps={"n": 1}))["nodeId"]
    await editor.ok("copy_subtree", sourceId=inner, targetParentId="k1", mode="reference")
    free = (await editor.ok("add_child", parentNodeId="k0", payloadType="T", payloadProps={"n": 1}))["nodeId"]
    done = await tenant.ok("update_nodes", filter="n = 1", patch={"n": 2})
    assert [(one["nodeId"], one["status"]) for one in done["outcomes"] if one["status"] == "updated"] == [
        (free, "updated")
    ]
    assert done["failed"] == 2


async def test_warnings_alone_leave_a_tree_valid() -> None:
    rules = [
        {"id": "soft", "severity": "warning", "required": ["owner"], "types": ["T"]},
        {"id": "hard", "required": ["status"], "types": ["T"]},
    ]
    editor = await grown(2, config(workspace={"rulesets": {"rules": rules}}))
    answer = await editor.ok("validate_tree", rulesetId="rules", limit=1)
    assert (answer["valid"], len(answer["violations"])) == (True, 1)
    lint = await editor.ok("lint_payload", rulesetId="rules", nodeId="k0")
    assert (lint["valid"], len(lint["violations"])) == (True, 1)
    await editor.ok("add_child", parentNodeId="root", payloadType="T")
    assert (await editor.ok("validate_tree", rulesetId="rules", limit=1))["valid"] is False
    assert (await editor.ok("lint_payload", rulesetId="rules", nodeId="n1"))["valid"] is False


async def test_a_question_that_only_the_root_answers_says_so() -> None:
    editor = await grown(2)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("select_nodes", {"queryDsl": "@id = root"}),
        ("select_nodes", {"queryDsl": "@type = Root"}),
        ("update_nodes", {"filter": "@id = root", "patch": {"a": 1}}),
    ]
    for tool, arguments in asked:
        assert "#root" in (await editor.ok(tool, **arguments))["hint"]
    await editor.ok("update_payload", nodeId="root", patch={"mark": 1})
    plain = [{"path": "mark", "op": "eq", "value": 1}]
    assert "below" in (await editor.ok("search", rootNodeId="root", filters=plain))["hint"]
    assert "below" in (await editor.ok("search_advanced", rootId="root", predicates=plain))["hint"]
    assert "#root" in (await editor.ok("update_nodes", filter=plain, patch={"a": 1}))["hint"]
    assert "hint" not in await editor.ok("select_nodes", queryDsl="@id = k0")
    assert "hint" not in await editor.ok("select_nodes", queryDsl="@id = nothing")
    assert (await editor.ok("update_nodes", filter="#root", patch={"a": 1}))["updated"] == 1


async def test_the_guard_of_self_payloads_says_what_can_be_changed_and_how() -> None:
    settings = config(workspace={"payloadTypes": {"Page": {"kind": "self"}}})
    editor = await hand(Grove(settings))
    node = (await editor.ok("add_child", parentNodeId="root", payloadType="Page"))["nodeId"]
    error = await editor.refused("update_payload", nodeId=node, patch={"PayloadType": "x"})
    assert "import_merge" in error["message"]
    assert "types never change" not in error["message"]


async def test_every_changing_tool_publishes_its_version_token_as_required() -> None:
    editor = await hand(Grove())
    for spec in editor.agent.tools:
        demanded = spec.name in DECLARATIONS and DECLARATIONS[spec.name].mutates
        assert ("versionToken" in spec.input_schema.get("required", ())) == demanded, spec.name


async def test_a_missing_version_token_is_a_conflict_that_names_the_latest() -> None:
    editor = await hand(Grove())
    answer = await editor.agent.call("add_child", {"parentNodeId": "root", "payloadType": "T"})
    assert answer["error"]["code"] == "conflict"
    assert answer["error"]["latestVersion"] == await editor.version()
    wrong = await editor.agent.call("add_child", {"parentNodeId": "root"})
    assert wrong["error"]["code"] == "invalid_argument"
    assert "payloadType" in wrong["error"]["message"]
    odd = await editor.agent.call("add_child", {"parentNodeId": "root", "payloadType": "T", "versionToken": 7})
    assert odd["error"]["code"] == "invalid_argument"
