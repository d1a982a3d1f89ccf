"""The configuration of a project: where its tools come from, what agents there are, what each may do."""

from toolgrove.config.agent import AgentConfig, McpSelection
from toolgrove.config.http_tool import HttpToolConfig
from toolgrove.config.mcp_server import McpServerConfig
from toolgrove.config.project import Config
from toolgrove.config.secret import SecretConfig
from toolgrove.config.section import Section
from toolgrove.config.workspace import LimitsConfig, PayloadTypeConfig, WorkspaceConfig

__all__ = [
    "AgentConfig",
    "Config",
    "HttpToolConfig",
    "LimitsConfig",
    "McpSelection",
    "McpServerConfig",
    "PayloadTypeConfig",
    "SecretConfig",
    "Section",
    "WorkspaceConfig",
]
