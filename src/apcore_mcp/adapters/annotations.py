"""Behavioural annotations of apcore modules as MCP hints and as text."""

from apcore import ModuleAnnotations
from mcp_types import ToolAnnotations

_DEFAULTS = {
    "readonly": False,
    "destructive": False,
    "idempotent": False,
    "requires_approval": False,
    "open_world": True,
}


class AnnotationMapper:
    """Maps `ModuleAnnotations`; None stands for the defaults."""

    def to_mcp_annotations(self, annotations: ModuleAnnotations | None) -> ToolAnnotations:
        if annotations is None:
            annotations = ModuleAnnotations()
        return ToolAnnotations(
            read_only_hint=annotations.readonly,
            destructive_hint=annotations.destructive,
            idempotent_hint=annotations.idempotent,
            open_world_hint=annotations.open_world,
        )

    def has_requires_approval(self, annotations: ModuleAnnotations | None) -> bool:
        return annotations is not None and annotations.requires_approval

    def to_description_suffix(self, annotations: ModuleAnnotations | None) -> str:
        if annotations is None:
            return ""
        values = {field: getattr(annotations, field) for field in _DEFAULTS}
        changed = [f"{field}={str(value).lower()}" for field, value in values.items() if value != _DEFAULTS[field]]
        return f"\n\n[Annotations: {', '.join(changed)}]" if changed else ""
