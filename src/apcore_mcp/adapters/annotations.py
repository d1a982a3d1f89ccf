"""Behavioural annotations of apcore modules as MCP hints and as text."""

from typing import Any

from apcore import ModuleAnnotations
from mcp_types import ToolAnnotations

REQUIRES_APPROVAL = "apcore/requiresApproval"
_FIELDS = ("readonly", "destructive", "idempotent", "requires_approval", "open_world")
_DEFAULTS = ModuleAnnotations()


class AnnotationMapper:
    """Maps `ModuleAnnotations`; None stands for the defaults."""

    def to_mcp_annotations(self, annotations: ModuleAnnotations | None) -> ToolAnnotations:
        """The hints that MCP has words for."""
        given = annotations or _DEFAULTS
        return ToolAnnotations(
            read_only_hint=given.readonly,
            destructive_hint=given.destructive,
            idempotent_hint=given.idempotent,
            open_world_hint=given.open_world,
        )

    def has_requires_approval(self, annotations: ModuleAnnotations | None) -> bool:
        """Whether a person must agree to each call."""
        return annotations is not None and annotations.requires_approval

    def to_mcp_meta(self, annotations: ModuleAnnotations | None) -> dict[str, Any] | None:
        """What MCP has no hint for."""
        return {REQUIRES_APPROVAL: True} if self.has_requires_approval(annotations) else None

    def to_description_suffix(self, annotations: ModuleAnnotations | None) -> str:
        """What differs from the defaults, as text to append to a description."""
        given = annotations or _DEFAULTS
        differing = [name for name in _FIELDS if getattr(given, name) != getattr(_DEFAULTS, name)]
        if not differing:
            return ""
        told = [f"{name}={str(getattr(given, name)).lower()}" for name in differing]
        return f"\n\n[Annotations: {', '.join(told)}]"
