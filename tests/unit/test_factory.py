"""MCPServerFactory: MCP tools from modules, one bad module never in the way of the others."""

from typing import Any

import pytest
from apcore import ModuleAnnotations, ModuleDescriptor, Registry
from mcp_types import Tool

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.adapters.schema import SchemaConverter
from apcore_mcp.server.factory import MCPServerFactory
from modules import CIRCULAR, Add, Sample, definition_of, registry_of


@pytest.mark.requirement("FR-SERVER-011", "FR-SCHEMA-001", "FR-ANNOT-001")
def test_a_tool_says_what_its_module_says() -> None:
    annotations = ModuleAnnotations(destructive=True, readonly=False, idempotent=True, open_world=False)
    module = Sample(
        schema={"type": "object", "properties": {"w": {"type": "integer"}}},
        output={"type": "object", "properties": {"path": {"type": "string"}}},
        description="Resize an image",
        annotations=annotations,
    )
    registry = registry_of({"image.resize": module})
    descriptor = definition_of(registry, "image.resize")
    tool = MCPServerFactory().build_tool(descriptor)
    assert isinstance(tool, Tool)
    assert tool.name == "image.resize"
    assert tool.description == "Resize an image"
    assert tool.input_schema == SchemaConverter().convert_input_schema(descriptor)
    assert tool.output_schema == SchemaConverter().convert_output_schema(descriptor)
    assert tool.annotations == AnnotationMapper().to_mcp_annotations(annotations)
    assert MCPServerFactory().build_tools(registry) == [tool]


@pytest.mark.requirement("FR-SERVER-011")
def test_a_tool_without_an_output_schema_declares_none() -> None:
    (tool,) = MCPServerFactory().build_tools(registry_of({"x": Sample()}))
    assert tool.output_schema is None


@pytest.mark.requirement("FR-SERVER-011")
@pytest.mark.parametrize("count", [0, 1, 100])
def test_there_is_one_tool_per_module(count: int) -> None:
    registry = registry_of({f"m.n{i}": Sample() for i in range(count)})
    tools = MCPServerFactory().build_tools(registry)
    assert [tool.name for tool in tools] == registry.list()
    assert len(tools) == count


@pytest.mark.requirement("FR-SERVER-011", "NFR-REL-002")
def test_one_circular_schema_in_five_leaves_four_tools_and_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    modules: dict[str, Any] = {f"good.m{i}": Add() for i in range(4)} | {"bad.circular": Sample(schema=CIRCULAR)}
    tools = MCPServerFactory().build_tools(registry_of(modules))
    assert [tool.name for tool in tools] == ["good.m0", "good.m1", "good.m2", "good.m3"]
    (record,) = [record for record in caplog.records if record.name.startswith("apcore_mcp")]
    assert record.levelname == "WARNING"
    assert "bad.circular" in record.message


@pytest.mark.requirement("NFR-REL-002")
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"$ref": "#/$defs/Missing"}}},
        {"properties": {"x": {"$ref": "https://example.org/schema.json"}}},
        {"$ref": "#"},
        {"properties": 7},
    ],
    ids=str,
)
def test_no_kind_of_bad_schema_takes_the_others_down(schema: dict[str, Any]) -> None:
    tools = MCPServerFactory().build_tools(registry_of({"bad": Sample(schema=schema), "good": Add()}))
    assert "good" in [tool.name for tool in tools]


@pytest.mark.requirement("FR-SERVER-011")
def test_a_module_that_vanishes_meanwhile_is_skipped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    class Racing(Registry):
        """Lists a module that is gone when its definition is asked for."""

        def get_definition(self, module_id: str, version_hint: str | None = None) -> ModuleDescriptor | None:
            return None if module_id == "gone" else super().get_definition(module_id, version_hint)

    registry = Racing()
    registry.register("gone", Add())
    registry.register("here", Add())
    assert [tool.name for tool in MCPServerFactory().build_tools(registry)] == ["here"]
    (record,) = [record for record in caplog.records if record.name.startswith("apcore_mcp")]
    assert record.levelname == "WARNING"
    assert "gone" in record.message


@pytest.mark.requirement("FR-FILTER-001", "FR-FILTER-002", "FR-FILTER-003")
def test_filters_select_the_modules() -> None:
    registry = registry_of({"api.a": Sample(tags=["public"]), "api.b": Sample(), "c": Sample(tags=["public"])})
    factory = MCPServerFactory()
    assert [tool.name for tool in factory.build_tools(registry, tags=["public"])] == ["api.a", "c"]
    assert [tool.name for tool in factory.build_tools(registry, prefix="api.")] == ["api.a", "api.b"]
    assert [tool.name for tool in factory.build_tools(registry, tags=["public"], prefix="api.")] == ["api.a"]


@pytest.mark.requirement("NFR-SEC-003")
def test_a_schema_is_reproduced_faithfully_and_carries_no_values() -> None:
    schema = {
        "type": "object",
        "properties": {"password": {"type": "string", "x-sensitive": True, "description": "yours"}},
        "required": ["password"],
    }
    registry = registry_of({"login": Sample(schema=schema)})
    (tool,) = MCPServerFactory().build_tools(registry)
    assert tool.input_schema == schema
