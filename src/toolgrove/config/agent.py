"""An agent's definition."""

from __future__ import annotations

import limits as rate_limits
from pydantic import Field, field_validator

from toolgrove.config.section import Section
from toolgrove.types import Concurrency, Role


class McpSelection(Section):
    """A server that an agent selects, less the tools that are hidden from it."""

    mask: tuple[str, ...] = ()


class AgentConfig(Section):
    """An agent: which tools it is given, and what it may do with them."""

    description: str = ""
    role: Role = "reader"
    tools: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mcp: dict[str, McpSelection] | None = None
    approve: tuple[str, ...] = ()
    max_depth: int = Field(default=2, ge=0)
    may_delegate: tuple[str, ...] = ()
    rate_limit: str | None = None
    read_only: bool = False
    write_root: str | None = None
    concurrency: Concurrency | None = None

    @field_validator("rate_limit")
    @classmethod
    def _readable(cls, notation: str | None) -> str | None:
        if notation is not None:
            try:
                rate_limits.parse(notation)
            except ValueError:
                raise ValueError(f"{notation!r} is not a rate like 60/minute") from None
        return notation
