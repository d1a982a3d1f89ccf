"""to_openai_tools: a registry as OpenAI tool definitions."""

import copy
import json
import logging
import subprocess
import sys
from typing import Any

import pytest
from apcore import Executor, ModuleAnnotations, Registry
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from apcore_mcp import to_openai_tools
from apcore_mcp.adapters.schema import SchemaConverter
from apcore_mcp.converters.openai import OpenAIConverter
from modules import CIRCULAR, Add, Sample, definition_of, registry_of


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [tool["function"]["name"] for tool in tools]


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    (tool,) = to_openai_tools(registry_of({"x": Sample(schema=schema)}), strict=True)
    parameters: dict[str, Any] = tool["function"]["parameters"]
    return parameters


# FR-OPENAI-001, 005


@pytest.mark.requirement("FR-OPENAI-001", "FR-OPENAI-002", "FR-SCHEMA-004")
def test_a_module_becomes_a_function_definition() -> None:
    registry = registry_of({"math.add": Add()})
    (tool,) = to_openai_tools(registry)
    assert tool == {
        "type": "function",
        "function": {
            "name": "math-add",
            "description": "Add two integers",
            "parameters": SchemaConverter().convert_input_schema(definition_of(registry, "math.add")),
        },
    }


@pytest.mark.requirement("FR-OPENAI-001")
@pytest.mark.parametrize("count", [0, 1, 100])
def test_there_is_one_definition_per_module(count: int) -> None:
    registry = registry_of({f"m.n{i}": Sample() for i in range(count)})
    tools = to_openai_tools(registry)
    assert sorted(names(tools)) == sorted(f"m-n{i}" for i in range(count))


@pytest.mark.requirement("FR-OPENAI-001", "FR-SCHEMA-004")
def test_parameters_of_a_module_without_a_schema_are_an_empty_object() -> None:
    (tool,) = to_openai_tools(registry_of({"x": Sample()}))
    assert tool["function"]["parameters"] == {"type": "object", "properties": {}}


@pytest.mark.requirement("FR-OPENAI-001", "FR-SCHEMA-004")
def test_one_bad_schema_is_skipped_with_a_warning_and_the_others_stay(caplog: pytest.LogCaptureFixture) -> None:
    tools = to_openai_tools(registry_of({"a": Add(), "bad": Sample(schema=CIRCULAR), "c": Add()}))
    assert names(tools) == ["a", "c"]
    (record,) = [record for record in caplog.records if record.name.startswith("apcore_mcp")]
    assert record.levelname == "WARNING"
    assert "bad" in record.message


@pytest.mark.requirement("FR-OPENAI-001")
def test_the_converter_class_gives_the_same() -> None:
    registry = registry_of({"math.add": Add()})
    assert OpenAIConverter().convert_registry(registry) == to_openai_tools(registry)


@pytest.mark.requirement("FR-OPENAI-005")
def test_definitions_are_plain_json_that_belongs_to_the_caller() -> None:
    registry = registry_of({"math.add": Add(), "x": Sample(schema={"properties": {"a": {"enum": [1]}}})})
    tools = to_openai_tools(registry, strict=True, embed_annotations=True)
    assert json.loads(json.dumps(tools)) == tools
    before = copy.deepcopy(tools)
    for tool in tools:
        tool["function"]["parameters"]["properties"].clear()
    assert to_openai_tools(registry, strict=True, embed_annotations=True) == before


@pytest.mark.requirement("FR-OPENAI-005")
def test_neither_openai_nor_mcp_is_imported() -> None:
    code = (
        "import sys; sys.modules['openai'] = None\n"
        "from apcore import Registry; from apcore_mcp import to_openai_tools\n"
        "assert to_openai_tools(Registry()) == []\n"
        "assert 'mcp' not in sys.modules, 'mcp was imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# FR-EXEC-006


@pytest.mark.requirement("FR-EXEC-006")
def test_an_executor_gives_the_tools_of_its_registry() -> None:
    registry = registry_of({"math.add": Add()})
    assert to_openai_tools(Executor(registry)) == to_openai_tools(registry)


@pytest.mark.requirement("FR-EXEC-006")
@pytest.mark.parametrize("source", [None, "registry", {}, Registry])
def test_anything_but_a_registry_or_executor_is_a_type_error(source: Any) -> None:
    with pytest.raises(TypeError, match=f"Expected Registry or Executor instance, got {type(source).__name__}"):
        to_openai_tools(source)


# FR-OPENAI-003


@pytest.mark.requirement("FR-OPENAI-003")
def test_without_strict_there_is_no_strict_key_and_the_schema_is_untouched() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": "x", "x-order": 1}}}
    for tools in (
        to_openai_tools(registry_of({"x": Sample(schema=schema)})),
        to_openai_tools(registry_of({"x": Sample(schema=schema)}), strict=False),
    ):
        assert "strict" not in tools[0]["function"]
        assert tools[0]["function"]["parameters"] == schema


@pytest.mark.requirement("FR-OPENAI-003")
def test_strict_marks_the_function() -> None:
    (tool,) = to_openai_tools(registry_of({"x": Sample()}), strict=True)
    assert tool["function"]["strict"] is True
    assert tool["function"]["parameters"] == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
        "required": [],
    }


@pytest.mark.requirement("FR-OPENAI-003")
def test_strict_closes_requires_and_makes_optional_nullable() -> None:
    schema = {
        "type": "object",
        "properties": {
            "needed": {"type": "string"},
            "optional": {"type": "integer", "default": 3, "x-unit": "px", "description": "how many"},
            "union": {"type": ["string", "integer"]},
            "nullable": {"type": ["string", "null"]},
            "choice": {"type": "string", "enum": ["a", "b"]},
            "any": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "required": ["needed"],
        "x-internal": True,
    }
    assert strict(schema) == {
        "type": "object",
        "properties": {
            "needed": {"type": "string"},
            "optional": {"type": ["integer", "null"], "description": "how many"},
            "union": {"type": ["string", "integer", "null"]},
            "nullable": {"type": ["string", "null"]},
            "choice": {"type": ["string", "null"], "enum": ["a", "b", None]},
            "any": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        },
        "required": ["needed", "optional", "union", "nullable", "choice", "any"],
        "additionalProperties": False,
    }


@pytest.mark.requirement("FR-OPENAI-003")
def test_a_schema_that_is_strict_already_stays() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert strict(schema) == schema


@pytest.mark.requirement("FR-OPENAI-003")
def test_strict_reaches_nested_objects_items_and_branches() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "integer", "default": 1, "x-y": 0}}}
    closed = {
        "type": "object",
        "properties": {"x": {"type": ["integer", "null"]}},
        "required": ["x"],
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {
            "object": inner,
            "items": {"type": "array", "items": inner},
            "any": {"anyOf": [inner, {"type": "string"}]},
            "one": {"oneOf": [inner, {"type": "string"}]},
            "all": {"allOf": [inner]},
            "deep": {"type": "array", "items": {"type": "array", "items": {"anyOf": [{"type": "null"}, inner]}}},
        },
        "required": ["object", "items", "any", "one", "all", "deep"],
    }
    assert strict(schema)["properties"] == {
        "object": closed,
        "items": {"type": "array", "items": closed},
        "any": {"anyOf": [closed, {"type": "string"}]},
        "one": {"oneOf": [closed, {"type": "string"}]},
        "all": {"allOf": [closed]},
        "deep": {"type": "array", "items": {"type": "array", "items": {"anyOf": [{"type": "null"}, closed]}}},
    }


@pytest.mark.requirement("FR-OPENAI-003")
@pytest.mark.parametrize("name", ["default", "x-rate", "properties", "items", "anyOf", "required", "type", "enum"])
def test_strict_keeps_properties_that_are_named_like_keywords(name: str) -> None:
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    assert strict(schema) == schema | {"additionalProperties": False}


@pytest.mark.requirement("FR-OPENAI-003")
def test_an_intentionally_open_object_is_closed_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert strict({"type": "object", "properties": {}, "additionalProperties": True})["additionalProperties"] is False
    (record,) = [record for record in caplog.records if record.name.startswith("apcore_mcp")]
    assert record.levelname == "WARNING"
    assert record.message == (
        "Schema for module 'x' uses additionalProperties: true, which is incompatible with strict mode"
    )


@pytest.mark.requirement("FR-OPENAI-003")
def test_a_closed_object_gives_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    strict({"type": "object", "properties": {"a": {"type": "object"}}, "additionalProperties": False})
    assert caplog.records == []


_LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "default": 3},
        {"type": "boolean", "x-hint": 1},
        {"type": ["string", "null"]},
        {"type": "string", "enum": ["a", "b"]},
        {"enum": [1, "one"]},
        {"const": 5},
        {},
    ]
)
_NAMES = st.sampled_from(["a", "b", "default", "x-c", "items"])


@st.composite
def _objects(draw: st.DrawFn, children: st.SearchStrategy[Any]) -> dict[str, Any]:
    properties = draw(st.dictionaries(_NAMES, children, max_size=3))
    required = [name for name in properties if draw(st.booleans())]
    return {"type": "object", "properties": properties, "required": required}


_SCHEMAS = _objects(
    st.recursive(
        _LEAVES,
        lambda c: st.one_of(
            _objects(c),
            st.builds(lambda s: {"type": "array", "items": s}, c),
            st.builds(lambda s: {"anyOf": s}, st.lists(c, min_size=1, max_size=2)),
        ),
        max_leaves=5,
    )
)


def _complete(schema: dict[str, Any], draw: st.DrawFn) -> Any:
    """An instance with every declared property and no other."""
    if "anyOf" in schema:
        return _complete(draw(st.sampled_from(schema["anyOf"])), draw)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kind = schema.get("type", "boolean")
    kind = draw(st.sampled_from(kind)) if isinstance(kind, list) else kind
    match kind:
        case "object":
            return {name: _complete(child, draw) for name, child in schema["properties"].items()}
        case "array":
            return [_complete(schema["items"], draw) for _ in range(draw(st.integers(0, 2)))]
        case "string":
            return draw(st.sampled_from(["", "text"]))
        case "integer":
            return draw(st.integers(-1, 1))
        case "null":
            return None
        case _:
            return draw(st.booleans())


def _schemas_in(schema: Any) -> Any:
    """Every schema inside a schema, data left out."""
    yield schema
    for child in (schema.get("properties") or {}).values():
        yield from _schemas_in(child)
    for child in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]:
        yield from _schemas_in(child)


@pytest.mark.requirement("FR-OPENAI-003")
@given(_SCHEMAS)
def test_every_object_of_a_strict_schema_is_closed_and_requires_all(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    result = strict(schema)
    assert schema == before
    Draft202012Validator.check_schema(result)
    for node in _schemas_in(result):
        assert not any(key == "default" or key.startswith("x-") for key in node)
        if "object" in node.get("type", ()) or "properties" in node:
            assert node["additionalProperties"] is False
            assert sorted(node["required"]) == sorted(node["properties"])


@pytest.mark.requirement("FR-OPENAI-003")
@given(_SCHEMAS, st.data())
def test_complete_arguments_of_a_schema_are_valid_under_its_strict_form(schema: dict[str, Any], data: Any) -> None:
    instance = _complete(schema, data.draw)
    assume(Draft202012Validator(schema).is_valid(instance))
    Draft202012Validator(strict(schema)).validate(instance)


@pytest.mark.requirement("FR-OPENAI-003")
@given(_SCHEMAS, st.data())
def test_every_optional_property_of_a_strict_schema_may_be_null(schema: dict[str, Any], data: Any) -> None:
    instance = _complete(schema, data.draw)
    assume(Draft202012Validator(schema).is_valid(instance))
    optional = [name for name in schema["properties"] if name not in schema["required"]]
    Draft202012Validator(strict(schema)).validate(instance | dict.fromkeys(optional))


# FR-OPENAI-004

_ANNOTATED = {
    "changed": Sample(description="It changes.", annotations=ModuleAnnotations(destructive=True, open_world=False)),
    "default": Sample(description="It is.", annotations=ModuleAnnotations()),
    "none": Sample(description="It is not."),
}


@pytest.mark.requirement("FR-OPENAI-004")
def test_annotations_are_embedded_when_asked_for() -> None:
    tools = to_openai_tools(registry_of(_ANNOTATED), embed_annotations=True)
    assert [tool["function"]["description"] for tool in tools] == [
        "It changes.\n\n[Annotations: destructive=true, open_world=false]",
        "It is.",
        "It is not.",
    ]


@pytest.mark.requirement("FR-OPENAI-004")
def test_descriptions_are_left_alone_by_default() -> None:
    for tools in (
        to_openai_tools(registry_of(_ANNOTATED)),
        to_openai_tools(registry_of(_ANNOTATED), embed_annotations=False),
    ):
        assert [tool["function"]["description"] for tool in tools] == ["It changes.", "It is.", "It is not."]


# FR-OPENAI-006, 007, FR-FILTER-003


@pytest.fixture
def tagged() -> Registry:
    return registry_of(
        {
            "comfyui.load": Sample(tags=["image", "stable"]),
            "comfyui.save": Sample(tags=["image"]),
            "text.count": Sample(tags=["stable"]),
            "comfyui_other": Sample(),
        }
    )


@pytest.mark.requirement("FR-OPENAI-006", "FR-OPENAI-007", "FR-FILTER-003")
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"tags": None, "prefix": None}, ["comfyui-load", "comfyui-save", "comfyui_other", "text-count"]),
        ({"tags": []}, ["comfyui-load", "comfyui-save", "comfyui_other", "text-count"]),
        ({"tags": ["image"]}, ["comfyui-load", "comfyui-save"]),
        ({"tags": ["image", "stable"]}, ["comfyui-load"]),
        ({"tags": ["nonexistent"]}, []),
        ({"prefix": "comfyui."}, ["comfyui-load", "comfyui-save"]),
        ({"prefix": "nonexistent."}, []),
        ({"tags": ["stable"], "prefix": "comfyui."}, ["comfyui-load"]),
        ({"tags": ["stable"], "prefix": "nonexistent."}, []),
        ({"tags": ["nonexistent"], "prefix": "comfyui."}, []),
    ],
    ids=str,
)
def test_filters_select_modules(tagged: Registry, filters: dict[str, Any], expected: list[str]) -> None:
    assert sorted(names(to_openai_tools(tagged, **filters))) == expected


@pytest.mark.requirement("FR-OPENAI-006")
@pytest.mark.parametrize("tags", [[""], ["image", ""]])
def test_an_empty_tag_is_refused(tagged: Registry, tags: list[str]) -> None:
    with pytest.raises(ValueError, match="Tag values must not be empty"):
        to_openai_tools(tagged, tags=tags)


@pytest.mark.requirement("FR-OPENAI-007")
def test_an_empty_prefix_is_refused(tagged: Registry) -> None:
    with pytest.raises(ValueError, match="prefix must not be empty"):
        to_openai_tools(tagged, prefix="")
