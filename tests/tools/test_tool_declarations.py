"""Every tool says what it is, and its example works as written."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import jsonschema_rs
import pytest

from grove_kit import Hand, sample
from toolgrove import Grove
from toolgrove.call.reading_on import SPEC as READ_RESULT
from toolgrove.pool.coordination import SPECS as COORDINATION_SPECS
from toolgrove.pool.discovery import discovery_tools
from toolgrove.pool.toolsets import CORE_TOOLS
from toolgrove.tools import DECLARATIONS
from toolgrove.tools.catalog import FAMILIES
from toolgrove.tools.effort import BESIDE, EFFORTS

pytestmark = pytest.mark.anyio

SPECIFIED = {
    "get_node": "nodeId includedProperties excludedProperties",
    "get_view": "rootNodeId includeViewRoot defaultExpanded includedProperties excludedProperties depthLimit "
    "pageSize pageToken",
    "search": "rootNodeId filters limit pageToken",
    "list_children": "nodeId limit pageToken",
    "expand_node": "nodeId",
    "collapse_node": "nodeId",
    "toggle_node": "nodeId",
    "expand_all": "rootNodeId",
    "collapse_all": "rootNodeId",
    "add_child": "parentNodeId payloadType payloadProps",
    "update_payload_property": "nodeId propertyName newValue",
    "remove_node": "nodeId",
    "move_node": "nodeId newParentId",
    "export_view": "rootNodeId includeViewRoot",
    "import_view": "viewJson payloadTypes rootLookupStrategy",
    "get_path": "nodeId",
    "get_subtree": "nodeId depthLimit filters paging asOf",
    "get_common_ancestor": "nodeIds",
    "search_advanced": "rootId predicates sortBy limit pageToken",
    "select_nodes": "queryDsl",
    "copy_subtree": "sourceId targetParentId mode",
    "clone_node": "nodeId targetParentId",
    "move_before": "nodeId siblingId",
    "move_after": "nodeId siblingId",
    "sort_children": "parentId byProp direction stable",
    "update_payload": "nodeId patch",
    "update_nodes": "filter patch",
    "set_expansion_recursive": "nodeId expanded maxDepth",
    "set_filters": "scope included excluded",
    "tag_node": "nodeId tags",
    "query_by_tag": "tag",
    "bookmark": "nodeId label",
    "list_bookmarks": "",
    "remove_bookmark": "label",
    "validate_tree": "rulesetId",
    "lint_payload": "nodeId rulesetId",
    "snapshot_create": "label",
    "snapshot_list": "",
    "snapshot_restore": "snapshotId",
    "snapshot_diff": "a b",
    "diff_subtree": "aId bId",
    "export_subtree": "nodeId includeViewRoot",
    "import_merge": "json strategy matchBy",
    "snapshot_delete": "snapshotId",
    "undo": "",
    "redo": "",
    "changes_since": "version",
    "list_payload_types": "",
    "list_rulesets": "",
    "aggregate": "rootNodeId query groupBy measures",
    "describe_tree": "rootNodeId",
    "get_ruleset": "rulesetId",
    "node_history": "nodeId",
    "restore_subtree": "nodeId snapshotId",
    "list_tags": "rootNodeId",
    "apply_changes": "changes atomic",
}


def test_the_catalog_is_exactly_what_the_specifications_and_the_issue_name() -> None:
    assert set(DECLARATIONS) == set(SPECIFIED)


@pytest.mark.parametrize("name", SPECIFIED)
def test_a_tool_declares_the_arguments_that_the_specification_gives_it(name: str) -> None:
    tool = DECLARATIONS[name]
    named = {*SPECIFIED[name].split(), *(("versionToken", "idempotencyKey", "dryRun") if tool.mutates else ())}
    for schema in (tool.accepts, tool.spec.input_schema):
        assert named <= set(schema["properties"])


@pytest.mark.parametrize("name", DECLARATIONS)
def test_a_tool_publishes_schemas_that_are_valid_and_closed(name: str) -> None:
    tool = DECLARATIONS[name]
    for schema in (tool.accepts, tool.answer):
        jsonschema_rs.meta.validate(schema)
        assert schema["additionalProperties"] is False
    for told in (tool.spec.input_schema, tool.spec.output_schema):
        jsonschema_rs.meta.validate(dict(told))
    assert "version" in tool.spec.output_schema["required"]


@pytest.mark.parametrize("name", DECLARATIONS)
def test_what_a_model_is_told_is_short_and_leaves_out_no_field_and_only_arguments_that_are_said_once(name: str) -> None:
    tool = DECLARATIONS[name]
    told, takes = set(tool.spec.input_schema["properties"]), set(tool.accepts["properties"])
    assert takes - told <= ({"maxTokens"} if tool.mutates else set())
    assert tool.spec.input_schema.get("required", []) == tool.accepts["required"]
    assert list(tool.spec.output_schema["properties"]) == list(tool.answer["properties"])
    assert all("type" in field or "anyOf" in field for field in tool.spec.output_schema["properties"].values())
    assert tool.spec.tokens <= 1_000


def test_all_tools_together_cost_a_model_little() -> None:
    """The limits leave room for no more than a few new tools: shorten first, then add."""
    specs = [tool.spec for tool in DECLARATIONS.values()]
    ours = [*specs, *COORDINATION_SPECS, *(tool.spec for tool in discovery_tools({})), READ_RESULT]
    assert sum(spec.lean_tokens for spec in ours) <= 9_300
    assert sum(spec.tokens for spec in ours) <= 14_000
    assert sum(spec.lean_tokens for spec in specs if spec.name in CORE_TOOLS) <= 3_500


@pytest.mark.parametrize("name", DECLARATIONS)
def test_a_mutation_takes_a_version_a_key_and_a_dry_run_and_a_read_does_not(name: str) -> None:
    declaration = DECLARATIONS[name]
    takes = {"versionToken", "idempotencyKey", "dryRun"} & set(declaration.accepts["properties"])
    expected = {"versionToken", "idempotencyKey", "dryRun"} if declaration.mutates else set()
    assert takes - ({"versionToken"} if name == "export_view" else set()) == expected
    assert declaration.spec.annotations.readonly is not declaration.mutates


@pytest.mark.parametrize("name", DECLARATIONS)
def test_a_tool_explains_itself_and_every_argument(name: str) -> None:
    tool = DECLARATIONS[name]
    assert 20 <= len(tool.spec.description) <= 700
    for argument, schema in tool.accepts["properties"].items():
        assert schema.get("description"), argument


def test_a_family_is_small_and_lives_in_one_file() -> None:
    for title, family in FAMILIES.items():
        assert 3 <= len(family.tools) <= 8, title
        assert len({inspect.getsourcefile(tool.run) for tool in family.tools}) == 1


async def prepared(name: str) -> Hand:
    return (await ready(name))[1]


async def ready(name: str) -> tuple[Grove, Hand]:
    """A project in which the example of a tool has something to do, and its editor."""
    grove, editor = await sample()
    if name in ("restore_subtree", "snapshot_restore", "snapshot_delete", "snapshot_diff"):
        await editor.ok("snapshot_create", label="first")
        await editor.ok("remove_node", nodeId="shed")
    if name == "remove_bookmark":
        await editor.ok("bookmark", nodeId="house", label="home")
    if name == "redo":
        await editor.ok("undo")
    return grove, editor


@pytest.mark.parametrize("name", DECLARATIONS)
async def test_the_example_of_a_tool_works_and_fits_its_output_schema(name: str) -> None:
    editor = await prepared(name)
    declaration = DECLARATIONS[name]
    example: dict[str, Any] = copy.deepcopy(dict(declaration.example))
    if example.get("version") == "$version":
        example["version"] = await editor.version()
    answer = await editor.ok(name, **example)
    jsonschema_rs.validator_for(declaration.answer).validate(answer)
    jsonschema_rs.validator_for(dict(declaration.spec.output_schema)).validate(answer)


@pytest.mark.parametrize("name", [name for name in DECLARATIONS if DECLARATIONS[name].mutates])
async def test_the_record_of_a_change_names_what_it_was_about(name: str) -> None:
    grove, editor = await ready(name)
    known = {"root", "property", "house", "kitchen", "living", "bath", "shed", "s1"}
    answer = await editor.ok(name, **copy.deepcopy(dict(DECLARATIONS[name].example)))
    record = [one for one in grove.audit if one["operation"] == name][-1]
    assert record["version"] == answer["version"]
    assert set(record["targets"]) - {"n1", "n2", "n3", "n4", "n5", "n6"} <= known | {"garage"}
    assert record["targets"]


@pytest.mark.parametrize("name", [name for name in DECLARATIONS if DECLARATIONS[name].mutates])
async def test_a_dry_run_of_any_mutation_reports_and_changes_nothing(name: str) -> None:
    editor = await prepared(name)
    before = (
        await editor.tree(),
        await editor.version(),
        await editor.ok("list_bookmarks"),
        await editor.ok("snapshot_list"),
    )
    answer = await editor.ok(name, **copy.deepcopy(dict(DECLARATIONS[name].example)), dryRun=True)
    assert answer["dryRun"] is True
    assert set(answer["wouldChange"]) == {"added", "removed", "moved", "reordered", "changed"}
    jsonschema_rs.validator_for(DECLARATIONS[name].answer).validate(answer)
    assert before == (
        await editor.tree(),
        await editor.version(),
        await editor.ok("list_bookmarks"),
        await editor.ok("snapshot_list"),
    )


@pytest.mark.parametrize("name", [name for name in DECLARATIONS if DECLARATIONS[name].mutates])
async def test_every_mutation_without_a_version_is_a_conflict_that_tells_the_latest(name: str) -> None:
    editor = await prepared(name)
    answer = await editor.agent.call(name, copy.deepcopy(dict(DECLARATIONS[name].example)))
    assert answer["error"]["code"] == "conflict"
    assert answer["error"]["latestVersion"] == await editor.version()


async def test_effort_and_what_lies_beside_the_tree_are_told_of_tools_that_there_are() -> None:
    changing = {name for name, tool in DECLARATIONS.items() if tool.mutates}
    assert changing > BESIDE
    assert set(EFFORTS) < set(DECLARATIONS)
