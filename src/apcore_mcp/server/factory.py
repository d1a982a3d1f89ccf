"""MCP tools from apcore modules."""

import contextlib
import logging
import marshal
from typing import Any, NamedTuple

from apcore import ModuleDescriptor, Registry
from mcp_types import Tool
from pydantic import BaseModel

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.adapters.schema import SchemaConverter
from apcore_mcp.modules import Tags

logger = logging.getLogger(__name__)


class Entry(NamedTuple):
    """One row of the tool table: the definition read once, and the tool made of it."""

    tool: Tool
    descriptor: ModuleDescriptor


class MCPServerFactory:
    """Builds tools; a module that cannot be one is skipped with a warning."""

    def build_tool(self, descriptor: ModuleDescriptor) -> Tool:
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
        entries = [self.build_entry(registry, name) for name in registry.list(tags=tags, prefix=prefix)]
        return [entry.tool for entry in entries if entry is not None]

    def build_entry(self, registry: Registry, module_id: str) -> Entry | None:
        try:
            descriptor = registry.get_definition(module_id)
            if descriptor is None:
                raise ValueError("it has no definition")
            return Entry(self.build_tool(descriptor), descriptor)
        except Exception as error:
            logger.warning("Skipping module %s: %s: %s", module_id, type(error).__name__, error)
            return None


def remember_schemas(module: Any) -> None:
    """Make the module's pydantic models compute their JSON Schema once; apcore asks three times per call."""
    for model in (getattr(module, "input_schema", None), getattr(module, "output_schema", None)):
        if isinstance(model, type) and issubclass(model, BaseModel) and "model_json_schema" not in vars(model):
            _remember(model)


def _remember(model: Any) -> None:
    compute = model.model_json_schema.__func__
    with contextlib.suppress(Exception):  # no schema, or one that is not plain data: leave the model as it is
        model.model_rebuild()
        plain = marshal.dumps(compute(model))

        def model_json_schema(cls: Any, *args: Any, **kwargs: Any) -> Any:
            asked_again = cls is model and not args and not kwargs
            return marshal.loads(plain) if asked_again else compute(cls, *args, **kwargs)  # noqa: S302 - our own bytes

        model.model_json_schema = classmethod(model_json_schema)
