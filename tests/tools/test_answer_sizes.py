"""Whatever is asked of a large tree, the answer keeps to its budget, and tells what it left out."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from mcp import Client

from grove_kit import Hand, config, hand
from toolgrove import Grove
from toolgrove.mcp_face import mcp_endpoint
from toolgrove.runners.runner import RunnableAgent
from toolgrove.tools import DECLARATIONS
from toolgrove.tools.source import DOCUMENTS
from toolgrove.tree.formats.forms import WRITES

pytestmark = pytest.mark.anyio
WIDE = 400
DEEP = 450
WORDS = "seven wise words that nobody will ever read again "


def tokens(answer: dict[str, Any]) -> float:
    return len(json.dumps(answer)) / 4


def large() -> list[dict[str, Any]]:
    """Wide, deep, with long texts, many properties and long ids."""
    wide = [
        {
            "nodeId": f"w{at}",
            "parentId": "wide",
            "payloadType": "Task",
            "payload": {"name": f"Task {at}", "text": WORDS * 3, "hours": at},
            "tags": [f"tag {at} {WORDS}", "all"],
        }
        for at in range(WIDE)
    ]
    deep = [
        {"nodeId": f"d{at}", "parentId": f"d{at - 1}" if at else "root", "payloadType": "Level"} for at in range(DEEP)
    ]
    fat = {f"property {at}": WORDS * 20 for at in range(90)}
    return [
        {"nodeId": "wide", "parentId": "root", "payloadType": "List", "payload": {"name": "Wide"}},
        *wide,
        *deep,
        {"nodeId": "fat", "parentId": "root", "payloadType": "Fat", "payload": {"name": "Fat", **fat}},
        {"nodeId": "fat kid", "parentId": "fat", "payloadType": "Fat", "payload": {"text": WORDS * 2_000}},
    ]


RULES = {"houses": [{"id": f"needs-{at}", "required": [f"missing{at}"]} for at in range(40)]}
CALLS: dict[str, list[dict[str, Any]]] = {
    "aggregate": [{"groupBy": "name"}, {"groupBy": "text", "measures": [{"op": "max", "path": "property 3"}]}],
    "describe_tree": [{}],
    "list_tags": [{}, {"rootNodeId": "wide"}],
    "node_history": [{"nodeId": "fat"}, {"nodeId": "w3", "limit": 200}],
    "restore_subtree": [{"nodeId": "wide", "snapshotId": "s2"}],
    "get_node": [{"nodeId": "fat"}, {"nodeId": "fat kid"}],
    "get_view": [{"rootNodeId": at, "defaultExpanded": True, "includeViewRoot": True} for at in ("root", "fat")],
    "search": [{"rootNodeId": "root", "filters": [], "limit": 200}],
    "list_children": [{"nodeId": "wide", "limit": 200}, {"nodeId": "fat"}],
    "expand_node": [{"nodeId": "fat"}],
    "collapse_node": [{"nodeId": "fat"}],
    "toggle_node": [{"nodeId": "fat"}],
    "expand_all": [{"rootNodeId": "root"}],
    "collapse_all": [{"rootNodeId": "fat"}],
    "add_child": [{"parentNodeId": "root", "payloadType": "T", "payloadProps": {"text": WORDS * 2_000}}],
    "update_payload_property": [{"nodeId": "fat", "propertyName": "new", "newValue": WORDS * 2_000}],
    "remove_node": [{"nodeId": "wide"}],
    "move_node": [{"nodeId": "wide", "newParentId": "fat"}],
    "export_view": [{"rootNodeId": "root"}, {"rootNodeId": "fat"}],
    "import_view": [{"viewJson": {"viewRoot": {"rootNodeId": "root"}}, "payloadTypes": ["Root"]}],
    "get_path": [{"nodeId": f"d{DEEP - 1}"}],
    "get_subtree": [
        *({"nodeId": at, "format": form} for at in ("root", "fat") for form in ("json", "outline")),
        {"nodeId": "root", "asOf": "s2"},
    ],
    "get_common_ancestor": [{"nodeIds": [f"w{at}" for at in range(200)]}],
    "search_advanced": [{"rootId": "root", "predicates": [], "sortBy": {"path": "hours"}, "limit": 200}],
    "select_nodes": [{"queryDsl": "@depth > 300", "limit": 200}, {"queryDsl": "#fat"}, {"queryDsl": "hours >= 0"}],
    "copy_subtree": [{"sourceId": "wide", "targetParentId": "root", "mode": "duplicate"}],
    "clone_node": [{"nodeId": "fat", "targetParentId": "root"}],
    "move_before": [{"nodeId": "w1", "siblingId": "w0"}],
    "move_after": [{"nodeId": "w0", "siblingId": "w1"}],
    "sort_children": [{"parentId": "wide", "byProp": "hours", "direction": "desc"}],
    "update_payload": [{"nodeId": "fat", "patch": {"text": WORDS * 2_000}}],
    "apply_changes": [
        {"changes": [{"op": "set", "at": {"query": "hours >= 0"}, "path": "text", "value": WORDS * 9}]},
        {"changes": [{"op": "add", "parentId": "root", "payloadType": "T", "ref": f"ref {at}"} for at in range(900)]},
    ],
    "update_nodes": [{"filter": "hours >= 0", "patch": {"done": True}}],
    "set_expansion_recursive": [{"nodeId": "root", "expanded": True}],
    "set_filters": [{"scope": "all", "included": [f"{WORDS} {at}" for at in range(1_000)]}],
    "tag_node": [{"nodeId": "fat", "tags": [f"{at} {WORDS * 100}" for at in range(50)]}],
    "query_by_tag": [{"tag": "all", "limit": 200}],
    "bookmark": [{"nodeId": "fat", "label": "here"}],
    "list_bookmarks": [{}],
    "remove_bookmark": [{"label": "mark 0"}],
    "validate_tree": [{"rulesetId": "houses", "limit": 200}],
    "lint_payload": [{"nodeId": "fat", "rulesetId": "houses"}],
    "snapshot_create": [{"label": "now"}],
    "snapshot_list": [{}],
    "snapshot_restore": [{"snapshotId": "s1"}],
    "snapshot_delete": [{"snapshotId": "s1"}],
    "snapshot_diff": [{"a": "s1", "b": "current"}, {"a": "current", "b": "s1"}],
    "diff_subtree": [{"aId": "wide", "bId": "d0"}, {"aId": "wide", "bId": "fat"}],
    "export_subtree": [
        {"nodeId": "root", "includeViewRoot": True},
        {"nodeId": "fat"},
        *({"nodeId": at, "format": form} for form in WRITES for at in ("root", "fat")),
    ],
    "import_merge": [
        {"json": {"items": [{**one, "parentId": "fat"} for one in large()[1:WIDE]]}, "strategy": "upsert"},
        {"json": {"items": large()}, "strategy": "upsert", "matchBy": "path", "parentNodeId": "d0"},
    ],
    "undo": [{}],
    "redo": [{}],
    "changes_since": [{"version": "$version", "limit": 200}],
    "list_payload_types": [{}],
    "list_rulesets": [{}],
    "get_ruleset": [{"rulesetId": "houses"}],
}


async def grown() -> tuple[Hand, str]:
    """A large tree with much beside it, and the version before it."""
    editor = await hand(Grove(config(workspace={"rulesets": RULES})))
    await editor.ok("snapshot_create", label="empty")
    first = await editor.version()
    await editor.ok("import_merge", json={"items": large()}, strategy="upsert")
    for at in range(150):
        await editor.ok("bookmark", nodeId="fat", label=f"mark {at} {WORDS * 3}"[:200])
    await editor.ok("bookmark", nodeId="fat", label="mark 0")
    await editor.ok("expand_all", rootNodeId="root")
    await editor.ok("snapshot_create", label="full")
    for letter in "abcdefgh":
        await editor.ok("update_payload", nodeId="fat", patch={"text": letter * 9_000})
    await editor.ok("sort_children", parentId="wide", byProp="hours", direction="desc")
    await editor.ok("sort_children", parentId="wide", byProp="hours")
    await editor.ok("undo")
    return editor, first


@pytest.mark.long
async def test_no_answer_exceeds_its_budget_and_what_is_cut_is_told() -> None:
    editor, first = await grown()
    cuts = 0
    assert set(CALLS) == set(DECLARATIONS), "a new tool has to be tried here as well"
    for name in DECLARATIONS:
        schema = jsonschema_rs.validator_for(dict(DECLARATIONS[name].spec.output_schema))
        for one in CALLS[name]:
            arguments = {key: first if value == "$version" else value for key, value in one.items()}
            # Dry, so that no call changes the tree for the next one.
            arguments |= {"dryRun": True} if DECLARATIONS[name].mutates else {}
            whole = await editor.ok(name, **arguments, maxTokens=10**9)
            for budget in (8_000, 400):
                bound = {} if budget == 8_000 and name not in DOCUMENTS else {"maxTokens": budget}
                answer = await editor.ok(name, **arguments, **bound)
                schema.validate(answer)
                assert tokens(answer) <= budget, (name, one, budget)
                if tokens(whole) > budget:
                    assert told(answer) > 0, (name, one, budget)
                    cuts += 1
    assert cuts > 50


def told(answer: dict[str, Any]) -> int:
    """How much an answer says that it left out; a page that is not the last says so by its token."""
    cut = answer.get("cut", {})
    assert not cut or cut["hint"]
    more = "nextPageToken" in answer or any("pathCut" in item for item in answer.get("items", ()))
    left: int = cut.get("nodes", 0) + cut.get("payloads", 0) + sum(cut.get("left", {}).values())
    return left + more


async def test_a_document_is_whole_for_a_program_and_bounded_for_a_model() -> None:
    editor, _ = await grown()
    mcp = mcp_endpoint(editor.agent, "1")
    async with Client(mcp.server) as client:
        for name, field, arguments in (
            ("export_subtree", "json", {"nodeId": "wide"}),
            ("export_view", "viewJson", {"rootNodeId": "wide"}),
        ):
            whole = await editor.ok(name, **arguments)
            assert tokens(whole) > 8_000
            assert "cut" not in whole
            shown = (await client.call_tool(name, arguments)).structured_content
            assert shown is not None
            assert tokens(shown) <= 8_000
            assert json.loads(shown[field])["cut"]["nodes"] == shown["cut"]["nodes"] > 0
            asked = (await client.call_tool(name, {**arguments, "maxTokens": 10**6})).structured_content
            assert asked is not None
            assert asked[field] == whole[field]


async def test_a_model_that_a_run_drives_gets_no_document_whole_either() -> None:
    class Exporting:
        async def run(self, agent: RunnableAgent, task: str) -> dict[str, Any]:
            whole = await agent.call("export_subtree", {"nodeId": "root"})
            return {"output": str(tokens(whole))}

    grove = Grove(config(), runner=Exporting())
    await (await hand(grove)).ok("import_merge", json={"items": large()}, strategy="upsert")
    async with grove:
        events = [event async for event in grove.run("editor", "export it")]
    assert float(events[-1]["output"]) <= 8_000


async def test_the_budget_of_a_project_yields_to_that_of_an_agent_and_that_to_the_call() -> None:
    agents = {"editor": {"role": "editor"}, "brief": {"answers": {"maxTokens": 300}}}
    grove = Grove(config(agents=agents, answers={"maxTokens": 2_000}))
    editor, brief = await hand(grove), await hand(grove, "brief")
    await editor.ok("import_merge", json={"items": large()}, strategy="upsert")
    for one, most in ((editor, 2_000), (brief, 300)):
        answer = await one.ok("get_subtree", nodeId="wide")
        assert most / 2 < tokens(answer) <= most
        assert 2_000 < tokens(await one.ok("get_subtree", nodeId="wide", maxTokens=5_000)) <= 5_000


async def test_a_long_diff_and_a_long_way_come_in_pages_with_everything_once() -> None:
    editor, _ = await grown()
    asked: dict[str, Any] = {"a": "s1", "b": "current", "maxTokens": 4_000}
    seen: list[str] = []
    left = WIDE + DEEP + 3
    while True:
        page = await editor.ok("snapshot_diff", **asked)
        seen += [entry["nodeId"] for entry in page["added"]]
        left -= len(page["added"])
        assert page.get("cut", {}).get("left", {}).get("added", 0) == left
        if "nextPageToken" not in page:
            break
        asked["pageToken"] = page["nextPageToken"]
    assert len(seen) == len(set(seen)) == WIDE + DEEP + 3
    way: list[int] = []
    asked = {"nodeId": f"d{DEEP - 1}", "maxTokens": 1_500}
    while "nodeId" in asked:
        page = await editor.ok("get_path", **asked)
        way += [crumb["depth"] for crumb in page["path"]]
        asked = {**asked, "pageToken": page["nextPageToken"]} if "nextPageToken" in page else {}
    assert way == list(range(DEEP + 1))


async def test_a_search_shows_as_much_of_each_node_as_it_is_asked_for() -> None:
    editor, _ = await grown()
    searches: list[tuple[str, dict[str, Any]]] = [
        ("search", {"rootNodeId": "wide", "filters": [{"path": "hours", "op": "eq", "value": 7}]}),
        ("search_advanced", {"rootId": "wide", "predicates": [], "sortBy": {"path": "hours"}}),
        ("select_nodes", {"queryDsl": "//Wide/*"}),
        ("query_by_tag", {"tag": "all"}),
    ]
    for name, arguments in searches:
        found = await editor.ok(name, **arguments, limit=2, count=True)
        assert found["count"] == (1 if name == "search" else WIDE)
        assert {"payload", "path"} <= found["items"][0].keys()
        bare = await editor.ok(name, **arguments, limit=2, path=False)
        assert [set(item) for item in bare["items"]] == [set(item) - {"path"} for item in found["items"]]
        ids = await editor.ok(name, **arguments, limit=2, fields="ids")
        assert ids["items"] == [{"nodeId": item["nodeId"]} for item in found["items"]]
        named = await editor.ok(name, **arguments, limit=2, fields="names", path=True)
        assert named["items"] == [
            {"nodeId": item["nodeId"], "name": item["payload"]["name"], "payloadType": "Task", "path": item["path"]}
            for item in found["items"]
        ]
        assert "count" not in named


async def test_a_long_way_of_a_hit_says_how_many_steps_it_leaves_out() -> None:
    editor, _ = await grown()
    (hit,) = (await editor.ok("select_nodes", queryDsl=f"#d{DEEP - 1}"))["items"]
    assert hit["pathCut"] + len(hit["path"]) == DEEP + 1
    assert hit["path"][0]["nodeId"] == "root"
    assert hit["path"][-1]["nodeId"] == f"d{DEEP - 1}"
