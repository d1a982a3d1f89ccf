"""Behavioural annotations of apcore modules as MCP hints and as text."""

from apcore import ModuleAnnotations
from mcp_types import ToolAnnotations

_FIELDS = ("readonly", "destructive", "idempotent", "requires_approval", "open_world")
_DEFAULTS = ModuleAnnotations()


class AnnotationMapper:
    """Maps `ModuleAnnotations`; None stands for the defaults."""

    def to_mcp_annotations(self, annotations: ModuleAnnotations | None) -> ToolAnnotations:
        given = annotations or _DEFAULTS
        return ToolAnnotations(
            read_only_hint=given.readonly,
            destructive_hint=given.destructive,
            idempotent_hint=given.idempotent,
            open_world_hint=given.open_world,
        )

    def has_requires_approval(self, annotations: ModuleAnnotations | None) -> bool:
        return annotations is not None and annotations.requires_approval

    def to_description_suffix(self, annotations: ModuleAnnotations | None) -> str:
        values = {name: getattr(annotations or _DEFAULTS, name) for name in _FIELDS}
        told = [f"{name}={str(value).lower()}" for name, value in values.items() if value != getattr(_DEFAULTS, name)]
        return f"\n\n[Annotations: {', '.join(told)}]" if told else ""
