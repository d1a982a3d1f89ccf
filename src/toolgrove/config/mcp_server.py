"""An external MCP server."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from toolgrove.config.section import Section


class McpServerConfig(Section):
    """An external MCP server, as Claude Desktop, Cursor and VS Code write it."""

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: Path | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    protocol: Literal["auto", "legacy", "modern"] = "auto"
    timeout: float = Field(default=60.0, gt=0, description="Seconds that one call may take.")
    concurrency: int = Field(default=16, ge=1, description="Calls in flight at a time.")

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("name either a command (stdio) or a url (Streamable HTTP), not both and not neither")
        return self
