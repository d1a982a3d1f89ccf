"""The whole project file: its sections, and the checks that need more than one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field, PrivateAttr, ValidationError, ValidationInfo, field_validator, model_validator

from toolgrove.config import document
from toolgrove.config.agent import AgentConfig, Expose
from toolgrove.config.answers import AnswersConfig
from toolgrove.config.approvals import ApprovalsConfig
from toolgrove.config.fields import FOLDER, Location, Name, SecretConfig, folder_of
from toolgrove.config.http_tool import HttpToolConfig
from toolgrove.config.mcp_server import McpServerConfig, PinMode
from toolgrove.config.notify import NotifyConfig
from toolgrove.config.problems import ConfigError, found
from toolgrove.config.rate_limits import RateLimitsConfig
from toolgrove.config.record import Record, RecordConfig
from toolgrove.config.results import ResultsConfig
from toolgrove.config.runner import RunnerConfig
from toolgrove.config.section import Section
from toolgrove.config.toolsets import check_no_set, check_patterns, check_sets
from toolgrove.config.workspace import Workspace, WorkspaceConfig

STATE = ".toolgrove"
ALL_OF_OURS = 14_000
"""The most tokens that all built-in tools together cost; who has defined no agent need not hear of them."""
_TAKEN = ("workspace", "coordination", "extensions")


class Config(Section):
    """A whole project; without agents it has an editor and a reader with every tool of their role."""

    project: str = Field(default="default", min_length=1, max_length=128, description="The project's name.")
    workspace: Workspace = Field(
        default=WorkspaceConfig.absent(),
        description="The built-in tree workspace. `false`: no tree, its tools and its page; all else stays.",
    )
    extensions: Location | None = Field(
        default=None,
        description="A folder of Python files with typed functions or apcore modules, or one file: `app.py`, or "
        "`app.py:registry` for a registry in it.",
    )
    mcp_servers: dict[Name, McpServerConfig] = Field(
        default_factory=dict, description="External MCP servers; a tool of one is `<server>_<tool>`."
    )
    http_tools: dict[Name, HttpToolConfig] = Field(
        default_factory=dict, description="HTTP calls as tools, and OpenAPI documents."
    )
    secrets: dict[str, SecretConfig] = Field(
        default_factory=dict, description="Which tools may use which secret; the values are never in this file."
    )
    agents: dict[Name, AgentConfig] = Field(
        default_factory=lambda: {
            "editor": AgentConfig(role="editor", tools=("*",), tool_budget=ALL_OF_OURS),
            "reader": AgentConfig(role="reader", tools=("*",), tool_budget=ALL_OF_OURS),
        },
        description="The agents. Without it there are `editor` and `reader`, with every tool of their role.",
    )
    toolsets: dict[Name, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Named groups of patterns: `triage: [time_*]` is used as `tools: ['@triage']`. Always there: "
        "`@core`, the most useful tree tools, `@read`, every tool that only reads, and `@all`.",
    )
    expose: Expose = Field(
        default="list",
        description="How agents are shown their tools: `list`, all of them; `search`, only those that `always` names, "
        "with `find_tools` and `call_tool` for the others; `auto`, search where the list would cost more than "
        "`toolBudget`.",
    )
    tool_budget: int = Field(
        default=16_000, ge=1, description="The tokens that an agent's list may cost, an estimate: characters / 4."
    )
    always: tuple[str, ...] = Field(default=(), description="Patterns of tools that are listed in search as well.")
    runner: RunnerConfig | None = Field(default=None, description="The model that drives sub-agents.")
    record: Record = Field(
        default=RecordConfig.model_construct(default="full"),
        description="What the audit log keeps of calls: `full` (arguments and result), `arguments` or `none`, or "
        "`{default, tools: {pattern: …}}`.",
    )
    record_bytes: int = Field(
        default=2 * 1024**3,
        ge=0,
        description="How many bytes all kept arguments and results may fill; the oldest go first, their records stay.",
    )
    record_body_bytes: int = Field(
        default=16 * 1024, ge=256, le=1024**2, description="How many bytes of one are kept; what is cut is marked so."
    )
    results: ResultsConfig = Field(
        default=ResultsConfig.absent(),
        description="What is changed in results before an agent gets them; nothing by default.",
    )
    answers: AnswersConfig = Field(
        default=AnswersConfig.absent(), description="How long answers of the built-in tools may be."
    )
    approvals: ApprovalsConfig = Field(default=ApprovalsConfig.absent(), description="How calls wait for approval.")
    notify: NotifyConfig | None = Field(
        default=None, description="A webhook that is notified of calls that wait for approval."
    )
    pins: PinMode = Field(
        default="firstUse",
        description="Which definitions of MCP tools are accepted without a person: `firstUse`, those that a server has "
        "at first contact and that are not suspicious; `ask`, none. All others wait until a person accepts them.",
    )
    gateway_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/\s]+\S*$",
        description="Where clients reach the gateway of this project, such as https://tools.example.org; `install` "
        "writes it where none runs on this machine.",
    )
    startup_budget: float = Field(
        default=5.0,
        gt=0,
        le=600,
        description="Seconds until `serve` is ready with the servers that answered; commands wait longer (`--wait`).",
    )
    rate_limits: RateLimitsConfig = Field(
        default=RateLimitsConfig.absent(), description="Where the calls of agents with a `rateLimit` are counted."
    )
    drain: float = Field(
        default=0.0,
        ge=0,
        le=600,
        description="Seconds that `serve` goes on serving, unready, after it was told to stop: time for a load "
        "balancer to look elsewhere. The five seconds of the shutdown come after them.",
    )
    import_budget: float = Field(
        default=10.0,
        gt=0,
        le=600,
        description="Seconds for the import of one file in `extensions`; one that takes longer is left out.",
    )
    state: Location | None = Field(
        default=None,
        validate_default=True,
        description=f"The folder of pins and approvals; `{STATE}` beside this file without it.",
    )

    _folder: Path | None = PrivateAttr(default=None)
    _file_name: str | None = PrivateAttr(default=None)
    _ignored: tuple[str, ...] = PrivateAttr(default=())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a YAML or JSON file; relative paths in it start at its folder."""
        path = Path(path)
        return cls.parse(document.read(path), path)

    @classmethod
    def parse(cls, text: str, path: Path) -> Self:
        """Read the text of the file at `path`, which is not opened again."""
        content, places = document.parse(text, path)
        folder = path.absolute().parent
        try:
            config = cls.model_validate(content, context={FOLDER: folder})
        except ValidationError as error:
            raise ConfigError(str(path), found(error, places)) from None
        config._folder, config._file_name = folder, path.name
        config._ignored = ("inputs",) if "inputs" in content else ()
        return config

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of the file, for editors."""
        schema = cls.model_json_schema(by_alias=True)
        properties = schema["properties"]
        for section in properties.values():
            if "patternProperties" in section:
                section["additionalProperties"] = False
        properties["servers"] = properties["mcpServers"] | {"description": "Another name of mcpServers: VS Code's."}
        properties["inputs"] = {"type": "array", "description": "VS Code's questions to a person; not acted on."}
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "A Toolgrove project"}

    @property
    def folder(self) -> Path:
        """Where relative paths start: the file's folder, or the current one."""
        return self._folder or Path()

    @property
    def file_name(self) -> str | None:
        """What the file is called; None for a project that was made without one."""
        return self._file_name

    @property
    def state_file(self) -> Path | None:
        """The file in the state folder that holds them; None for a project that keeps nothing, or all in a database."""
        return self.state / "state.db" if self.state is not None and not self.workspace.is_database else None

    @property
    def ignored(self) -> tuple[str, ...]:
        """The keys of the file that VS Code acts on and we do not."""
        return self._ignored

    @property
    def servers(self) -> dict[str, McpServerConfig]:
        """The MCP servers that are not disabled."""
        return {name: server for name, server in self.mcp_servers.items() if not server.disabled}

    @model_validator(mode="after")
    def _has_a_database_to_count_in(self) -> Self:
        if self.rate_limits.store == "database" and not self.workspace.is_database:
            raise ValueError("rateLimits.store is 'database', and workspace.store is none; name a redis:// address")
        return self

    @model_validator(mode="before")
    @classmethod
    def _as_vs_code_writes_it(cls, content: Any) -> Any:
        if not isinstance(content, dict) or not content.keys() & {"servers", "inputs"}:
            return content
        content = {key: value for key, value in content.items() if key != "inputs"}
        if "servers" in content:
            if content.keys() & {"mcpServers", "mcp_servers"}:
                raise ValueError("'servers' is another name of 'mcpServers'; keep one of them")
            content["mcpServers"] = content.pop("servers")
        return content

    @field_validator("state")
    @classmethod
    def _beside_the_file(cls, state: Any, info: ValidationInfo) -> Any:
        folder = folder_of(info)
        return folder / STATE if state is None and folder is not None else state

    @model_validator(mode="after")
    def _toolsets_are_known(self) -> Self:
        check_sets(self.toolsets)
        check_patterns("always", self.always, self.toolsets)
        for name, agent in self.agents.items():
            for key, patterns in agent.selections().items():
                check_patterns(f"agents.{name}.{key}", patterns, self.toolsets)
            for server, chosen in (agent.mcp or {}).items():
                check_no_set(f"agents.{name}.mcp.{server}.mask", chosen.mask)
            check_no_set(f"agents.{name}.record.tools", agent.record.tools if agent.record is not None else ())
        for name, secret in self.secrets.items():
            check_no_set(f"secrets.{name}.tools", secret.tools)
        check_no_set("record.tools", self.record.tools)
        return self

    @model_validator(mode="after")
    def _secrets_go_by_reference(self) -> Self:
        for server, config in self.mcp_servers.items():
            for name in config.pass_env:
                if name in self.secrets:
                    raise ValueError(
                        f"mcpServers.{server}.passEnv: {name!r} is one of the secrets, which says who may have it; "
                        f'write env: {{{name}: "${{env:{name}}}"}} instead'
                    )
        return self

    @model_validator(mode="after")
    def _names_are_told_apart(self) -> Self:
        for name in (*self.mcp_servers, *self.http_tools):
            if name in _TAKEN:
                raise ValueError(f"{name!r} is the name of a built-in source; call the server or tool otherwise")
        for name in self.mcp_servers.keys() & self.http_tools.keys():
            raise ValueError(f"{name!r} stands in mcpServers and in httpTools; rename one of them")
        return self
