"""A secret: who may use it, never what it is."""

from __future__ import annotations

from pydantic import Field

from toolgrove.config.section import Section


class SecretConfig(Section):
    """A secret and the tools that may use it; its value is never in the file."""

    tools: tuple[str, ...] = Field(default=(), description="Patterns of the tools that may use it. Absent: none.")
