"""The configuration of a project: where its tools come from, what agents there are, what each may do.

It reads and checks the file; it holds no secret's value, opens no connection and starts nothing.

- ``agent``: an agent: its tools, role and limits
- ``answers``: how long answers of the built-in tools may be
- ``app_project``: the project that a Python file stands for
- ``approvals``: how calls wait for a person
- ``document``: YAML or JSON within bounds, and where everything stands in it
- ``fields``: names, paths and secrets as fields
- ``file``: a file that is read again and again
- ``http_tool``: one HTTP call or an OpenAPI document
- ``mcp_server``: an external MCP server
- ``notify``: who is told that a call waits
- ``oauth``: how we log in to a server that asks for OAuth
- ``own_names``: what a source's tools are called, and which are left out
- ``problems``: what is wrong with a file, each problem with its place
- ``project``: the whole file
- ``rate_limits``: where the calls of agents are counted
- ``record``: what the audit log keeps of a call
- ``reference``: `${…}` in settings, those of other products translated
- ``results``: what is changed in the results of foreign tools
- ``runner``: whose model drives sub-agents
- ``sandbox``: what a sandboxed server may see and reach
- ``section``: what every part of the file has in common
- ``toolsets``: named sets of tools
- ``workspace``: the tree, its limits, payload types and store
- ``yaml_edit``: edits of the text that keep everything else as it is
"""

from toolgrove.config.agent import AgentConfig, Expose, McpSelection
from toolgrove.config.answers import AnswersConfig
from toolgrove.config.fields import SecretConfig
from toolgrove.config.file import ConfigFile, Reload
from toolgrove.config.http_tool import HttpToolConfig
from toolgrove.config.mcp_server import McpServerConfig, PinMode
from toolgrove.config.oauth import OAuthConfig
from toolgrove.config.own_names import OwnNames
from toolgrove.config.problems import ConfigError, Problem
from toolgrove.config.project import Config
from toolgrove.config.record import RecordConfig, Recorded
from toolgrove.config.results import ResultsConfig
from toolgrove.config.runner import RunnerConfig
from toolgrove.config.sandbox import SandboxConfig
from toolgrove.config.section import Section
from toolgrove.config.workspace import LimitsConfig, PayloadTypeConfig, WorkspaceConfig

__all__ = [
    "AgentConfig",
    "AnswersConfig",
    "Config",
    "ConfigError",
    "ConfigFile",
    "Expose",
    "HttpToolConfig",
    "LimitsConfig",
    "McpSelection",
    "McpServerConfig",
    "OAuthConfig",
    "OwnNames",
    "PayloadTypeConfig",
    "PinMode",
    "Problem",
    "RecordConfig",
    "Recorded",
    "Reload",
    "ResultsConfig",
    "RunnerConfig",
    "SandboxConfig",
    "SecretConfig",
    "Section",
    "WorkspaceConfig",
]
