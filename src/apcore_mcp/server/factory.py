"""MCP tools from apcore modules."""

import logging
from dataclasses import dataclass

from apcore import ModuleDescriptor, Registry
from mcp_types import Tool

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.adapters.schema import SchemaConverter
from apcore_mcp.modules import Tags
from mcp_serve.table import ToolEntry

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ModuleEntry(ToolEntry):
    """A row of the tool table with the module's definition, which is read once."""

    descriptor: ModuleDescriptor


class MCPServerFactory:
    """Builds tools; a module that cannot be one is skipped with a warning."""

    def build_tool(self, descriptor: ModuleDescriptor) -> Tool:
        """The MCP tool of one module."""
        schemas = SchemaConverter()
        output_schema = schemas.convert_output_schema(descriptor)
        return Tool(
            name=descriptor.module_id,
            description=descriptor.description,
            input_schema=schemas.convert_input_schema(descriptor),
            output_schema=output_schema if output_schema.get("type") == "object" else None,
            annotations=AnnotationMapper().to_mcp_annotations(descriptor.annotations),
        )

    def build_tools(self, registry: Registry, tags: Tags = None, prefix: str | None = None) -> list[Tool]:
        """The MCP tools of every module that passes the filters."""
        entries = [self.build_entry(registry, module_id) for module_id in registry.list(tags=tags, prefix=prefix)]
        return [entry.tool for entry in entries if entry is not None]

    def build_entry(self, registry: Registry, module_id: str) -> ModuleEntry | None:
        """The row of one module, or None if it cannot be a tool."""
        try:
            descriptor = registry.get_definition(module_id)
            if descriptor is None:
                raise ValueError("it has no definition")
            tool = self.build_tool(descriptor)
            return ModuleEntry(tool=tool, documentation=descriptor.documentation, descriptor=descriptor)
        except Exception as error:
            logger.warning("Skipping module %s: %s: %s", module_id, type(error).__name__, error)
            return None
