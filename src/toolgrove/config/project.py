"""A whole project."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import yaml

from toolgrove.config.agent import AgentConfig
from toolgrove.config.http_tool import HttpToolConfig
from toolgrove.config.mcp_server import McpServerConfig
from toolgrove.config.secret import SecretConfig
from toolgrove.config.section import Section
from toolgrove.config.workspace import WorkspaceConfig


class Config(Section):
    """A whole project; without agents it has an editor and a reader with every tool of their role."""

    project: str = "default"
    workspace: WorkspaceConfig = WorkspaceConfig()
    extensions: Path | None = None
    mcp_servers: dict[str, McpServerConfig] = {}
    http_tools: dict[str, HttpToolConfig] = {}
    secrets: dict[str, SecretConfig] = {}
    agents: dict[str, AgentConfig] = {
        "editor": AgentConfig(role="editor", tools=("*",)),
        "reader": AgentConfig(role="reader", tools=("*",)),
    }

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a YAML or JSON file."""
        form = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        return cls.model_validate(form or {})
