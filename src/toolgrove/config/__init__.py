"""The configuration of a project: where its tools come from, what agents there are, what each may do."""

from toolgrove.config.agent import AgentConfig, McpSelection
from toolgrove.config.file import ConfigFile, Reload
from toolgrove.config.http_tool import HttpToolConfig
from toolgrove.config.mcp_server import McpServerConfig
from toolgrove.config.problems import ConfigError, Problem
from toolgrove.config.project import Config
from toolgrove.config.runner import RunnerConfig
from toolgrove.config.secret import SecretConfig
from toolgrove.config.section import Section
from toolgrove.config.workspace import LimitsConfig, PayloadTypeConfig, WorkspaceConfig

__all__ = [
    "AgentConfig",
    "Config",
    "ConfigError",
    "ConfigFile",
    "HttpToolConfig",
    "LimitsConfig",
    "McpSelection",
    "McpServerConfig",
    "PayloadTypeConfig",
    "Problem",
    "Reload",
    "RunnerConfig",
    "SecretConfig",
    "Section",
    "WorkspaceConfig",
]
