"""An agent's tools in OpenAI's strict mode: whatever a tool takes can be written by a model that is held to its list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grove_kit import config, sample
from toolgrove.openai_tools import openai_tools
from toolgrove.types import Annotations, ToolSpec

Schema = dict[str, Any]
LEAVES: st.SearchStrategy[Schema] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": ["string", "null"]},
        {"enum": ["a", 1]},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "array"},
        {"type": "array", "items": {}},
        {},
    ]
)


def objects(children: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.builds(
        lambda properties: {"type": "object", "properties": properties, "required": [*properties][:1]},
        st.dictionaries(st.sampled_from("abc"), children, max_size=3),
    )


SCHEMAS = objects(
    st.recursive(
        LEAVES,
        lambda inner: st.one_of(
            objects(inner),
            inner.map(lambda one: {"type": "array", "items": one}),
            st.lists(inner, min_size=1, max_size=2).map(lambda some: {"anyOf": some}),
        ),
        max_leaves=6,
    )
)


def taken(draw: Callable[[Any], Any], schema: Schema) -> Any:
    """A value that a schema takes, with something in whatever is open."""
    if "anyOf" in schema:
        return taken(draw, draw(st.sampled_from(schema["anyOf"])))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kind = schema.get("type", "object")
    kind = draw(st.sampled_from(kind)) if isinstance(kind, list) else kind
    if kind == "object":
        if not schema.get("properties"):
            return {"any": 1} if "properties" not in schema or schema.get("additionalProperties") else {}
        return {name: taken(draw, one) for name, one in schema["properties"].items()}
    if kind == "array":
        return [taken(draw, schema.get("items") or {"type": "string"})]
    values: Schema = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "null": None}
    return values[kind]


def is_strict(schema: Any) -> bool:
    """The rules of strict mode, as OpenAI writes them."""
    if not isinstance(schema, dict) or not ({"type", "anyOf", "enum", "const"} & schema.keys()):
        return False
    kinds = schema.get("type", [])
    kinds = kinds if isinstance(kinds, list) else [kinds]
    inner = [*schema.get("anyOf", ())]
    if "object" in kinds:
        properties = schema.get("properties")
        if properties is None or schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != set(properties):
            return False
        inner += properties.values()
    if "array" in kinds:
        inner.append(schema.get("items"))
    return all(map(is_strict, inner))


def check(definition: Schema, value: Any) -> None:
    """What the tool takes can be written, in strict mode or without."""
    function = definition["function"]
    if function["strict"]:
        assert is_strict(function["parameters"])
    jsonschema_rs.validator_for(function["parameters"]).validate(value)


@given(st.data(), SCHEMAS)
@settings(max_examples=150, deadline=None)
def test_whatever_a_tool_takes_can_be_written_in_strict_mode_or_the_list_says_that_it_is_not_strict(
    data: st.DataObject, schema: Schema
) -> None:
    spec = ToolSpec(
        name="t", description="", input_schema=schema, output_schema={}, annotations=Annotations(), source="s"
    )
    (definition,) = openai_tools([spec], strict=True, embed_annotations=False)
    check(definition, taken(data.draw, schema))
    if not definition["function"]["strict"]:
        assert definition["function"]["parameters"] == schema
    (plain,) = openai_tools([spec], strict=False, embed_annotations=False)
    assert "strict" not in plain["function"]


@given(st.data())
@settings(max_examples=10, deadline=None)
def test_every_built_in_tool_can_be_called_in_full_by_a_strict_model(data: st.DataObject) -> None:
    async def law() -> None:
        _, editor = await sample(config())
        specs = {spec.name: spec for spec in editor.agent.tools}
        for definition in editor.agent.openai_tools(strict=True):
            schema = dict(specs[definition["function"]["name"]].input_schema)
            check(definition, taken(data.draw, schema))

    anyio.run(law)


@pytest.mark.anyio
async def test_a_strict_model_writes_payloads_and_the_list_says_which_tools_are_strict() -> None:
    _, editor = await sample(config())
    functions = {one["function"]["name"]: one["function"] for one in editor.agent.openai_tools(strict=True)}
    open_ones = {name for name, one in functions.items() if one["strict"] is False}
    assert {"add_child", "update_payload", "update_nodes", "apply_changes", "import_merge"} <= open_ones
    assert {"get_node", "move_node", "remove_node", "tag_node", "select_nodes"} <= functions.keys() - open_ones
    payload = {"parentNodeId": "house", "payloadType": "Room", "payloadProps": {"name": "Attic"}}
    jsonschema_rs.validator_for(functions["add_child"]["parameters"]).validate({**payload, "versionToken": "v"})
    assert "error" not in await editor("add_child", **payload)
