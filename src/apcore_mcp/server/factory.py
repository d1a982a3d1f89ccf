"""MCP tools from apcore modules."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from apcore import ModuleDescriptor, Registry
from mcp_types import Tool

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.adapters.schema import SchemaConverter
from apcore_mcp.options import Tags
from mcp_serve.table import ToolEntry

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ModuleEntry(ToolEntry):
    """A row of the tool table with the module's definition, which is read once."""

    tool: Tool
    descriptor: ModuleDescriptor


class MCPServerFactory:
    """Builds tools; a module that cannot be one is skipped with a warning."""

    def build_tool(self, descriptor: ModuleDescriptor) -> Tool:
        """The MCP tool of one module."""
        schemas = SchemaConverter()
        annotations = AnnotationMapper()
        output_schema = schemas.convert_output_schema(descriptor)
        return Tool(
            name=descriptor.module_id,
            description=descriptor.description,
            input_schema=schemas.convert_input_schema(descriptor),
            output_schema=output_schema if output_schema.get("type") == "object" else None,
            annotations=annotations.to_mcp_annotations(descriptor.annotations),
            _meta=annotations.to_mcp_meta(descriptor.annotations),
        )

    def build_tools(self, registry: Registry, tags: Tags = None, prefix: str | None = None) -> list[Tool]:
        """The MCP tools of every module that passes the filters."""
        return [entry.tool for entry in self.build_entries(registry, registry.list(tags=tags, prefix=prefix))]

    def build_entries(self, registry: Registry, module_ids: list[str]) -> list[ModuleEntry]:
        """The rows of those modules that can be tools; definitions come first, as each half is quicker while warm."""
        definitions = [_attempt(each, partial(registry.get_definition, each)) for each in module_ids]
        entries = [_attempt(each.module_id, partial(self._entry, each)) for each in definitions if each]
        return [entry for entry in entries if entry]

    def _entry(self, descriptor: ModuleDescriptor) -> ModuleEntry:
        tool = self.build_tool(descriptor)
        try:
            (tool.model_dump_json() + (descriptor.documentation or "")).encode()
        except ValueError:  # one definition that no client can read would take the whole list away from it
            raise ValueError(
                "its definition holds something that JSON cannot carry, such as half a character"
            ) from None
        return ModuleEntry(tool=tool, documentation=descriptor.documentation, descriptor=descriptor)


def _attempt(module_id: str, work: Callable[[], T]) -> T | None:
    """What the work gives, or None and a warning if the module cannot be a tool."""
    problem = "it has no definition"
    try:
        if (made := work()) is not None:
            return made
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    logger.warning("Skipping module %s: %s", module_id, problem)
    return None
