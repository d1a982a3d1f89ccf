"""An external MCP server, in the shape that MCP clients write."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from toolgrove.config.fields import Location, folder_of
from toolgrove.config.oauth import OAuthConfig
from toolgrove.config.own_names import OwnNames
from toolgrove.config.reference import Filled, Word, translated
from toolgrove.config.sandbox import Sandbox
from toolgrove.errors import closest
from toolgrove.notation.secret_names import names_a_secret

PinMode = Literal["firstUse", "ask"]
"""Whether definitions at first contact are accepted without a person."""

_SPELLINGS = {"serverUrl": "url", "httpUrl": "url", "transport": "type"}
_LEAVING_OUT = ("disabledTools", "disabled_tools", "excludeTools")
_TAKING_IN = ("includeTools", "enabledTools", "enabled_tools")
"""How other clients name the tools that they leave out, and the only ones that they take."""
_HOUR = 3600.0

FOREIGN = frozenset(
    (
        *("auth", "dev", *_LEAVING_OUT, *_TAKING_IN, "envFile", "headersHelper", "tools", "trust"),
        *("connectTimeout", "initTimeout", "networkTimeout", "requestTimeout", "startupTimeout", "toolTimeout"),
    )
)
"""Keys of other clients that look like misspelt ones of ours; other foreign keys need no entry here."""

RESTRICTING = frozenset((*_LEAVING_OUT, *_TAKING_IN, "allowedTools", "tools"))
"""Keys by which a client hides tools, and that were not understood; `include`, `exclude` and masks do that here."""


class McpServerConfig(OwnNames):
    """An external MCP server, as Claude Desktop, Cursor and VS Code write it."""

    model_config = ConfigDict(coerce_numbers_to_str=True, json_schema_extra={"additionalProperties": True})

    command: Filled | None = Field(default=None, description="The program of a stdio server.")
    args: tuple[Word, ...] = Field(default=(), description="Its arguments.")
    env: dict[str, Word] = Field(
        default_factory=dict, repr=False, description="Its environment. From ours it gets only the basics."
    )
    pass_env: tuple[str, ...] = Field(
        default=(),
        description="Names of our own variables that it gets as they are, such as HTTPS_PROXY or SSL_CERT_FILE; those "
        "that are not set are left out. A secret goes by `env`.",
    )
    cwd: Location | None = Field(
        default=None, validate_default=True, description="The folder it starts in; else that of this file."
    )
    sandbox: Sandbox = Field(
        default=None,
        description="Run it under bubblewrap, in a folder of its own and without a view of the project, its state and "
        "your home; `true`, or what it may see and reach.",
    )
    url: Filled | None = Field(default=None, description="The address of a server over HTTP.")
    headers: dict[str, Filled] = Field(default_factory=dict, repr=False, description="Sent with every request to it.")
    oauth: OAuthConfig | None = Field(
        default=None, description="Log in to it with OAuth, by `toolgrove login NAME`; `{}` is enough for most servers."
    )
    allow_private: bool = Field(
        default=False,
        description="Let `url` lead to private and loopback addresses; a loopback address written in it is "
        "always allowed. Link-local and metadata addresses stay closed.",
    )
    type: Literal["stdio", "http", "streamable-http", "streamableHttp", "sse"] | None = Field(
        default=None,
        description="The transport, as clients write it; without it, `command` or `url` decides. `sse` is the old "
        "HTTP+SSE, anything else at a `url` is Streamable HTTP.",
    )
    disabled: bool = Field(default=False, description="Keep the entry, leave the server out.")
    protocol: Literal["auto", "legacy", "modern"] = Field(
        default="auto", description="The protocol era to speak: with a handshake, 2026-07-28, or what it answers to."
    )
    timeout: float = Field(
        default=60.0,
        gt=0,
        description="Seconds that one call may take; more than 3600 are milliseconds, as some clients write them.",
    )
    concurrency: int = Field(
        default=16, ge=1, description="Calls in flight at a time; one agent alone gets most of them, never all."
    )
    reads: tuple[str, ...] = Field(
        default=(),
        description="Patterns of its own tool names that only read; every other tool counts as one that changes "
        "something, so readers and read-only agents do not get it.",
    )
    changes: tuple[str, ...] = Field(
        default=(), description="Patterns of those that change something, whatever `reads` or a hint says."
    )
    trust_hints: bool = Field(
        default=False, description="Whether its own `readOnlyHint` is believed where `reads` and `changes` are silent."
    )
    elicitation: bool = Field(
        default=False,
        description="Pass on what it asks while a call runs to the person at the client that made the call, where that "
        "client can ask; each question names the server.",
    )
    pins: PinMode | None = Field(
        default=None, description="Which of its definitions are accepted without a person; else as the project says."
    )
    volatile: tuple[Literal["description", "title"], ...] = Field(
        default=(),
        description="Parts of its definitions that change by themselves and are not pinned. What is suspicious in them "
        "is held back all the same.",
    )

    _ignored: tuple[str, ...] = PrivateAttr(default=())

    @property
    def ignored(self) -> tuple[str, ...]:
        """The keys of the entry that other clients act on and we do not."""
        return self._ignored

    @model_validator(mode="wrap")
    @classmethod
    def _imported(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(given, dict):
            return handler(given)
        given, own = _in_our_words(given), cls.keys()
        ignored = [key for key in given if key not in own and not _is_typo(key, own)]
        server = handler({key: value for key, value in given.items() if key not in ignored})
        server._ignored = tuple(map(str, ignored))
        return server

    @field_validator("cwd", mode="before")
    @classmethod
    def _is_a_place(cls, cwd: Any, info: ValidationInfo) -> Any:
        place = translated(cwd, info) if isinstance(cwd, str) else cwd
        if isinstance(place, str) and "${" in place:
            raise ValueError(
                "a folder is no secret; write the path, or begin it with ${workspaceFolder} or ${userHome}"
            )
        return place

    @field_validator("cwd")
    @classmethod
    def _beside_the_file(cls, cwd: Any, info: ValidationInfo) -> Any:
        return cwd or folder_of(info)

    @field_validator("pass_env")
    @classmethod
    def _holds_no_secret(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if names_a_secret(name):
                raise ValueError(f'{name} looks like a secret; write env: {{{name}: "${{env:{name}}}"}} instead')
        return names

    @field_validator("timeout")
    @classmethod
    def _in_seconds(cls, timeout: float) -> float:
        return timeout / 1000 if timeout > _HOUR else timeout

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("name a command (stdio) or a url (HTTP), one of the two")
        return self

    @model_validator(mode="after")
    def _environment_fits(self) -> Self:
        if self.pass_env and self.command is None:
            raise ValueError("passEnv is for a server with a command; one with a url runs elsewhere")
        return self

    @model_validator(mode="after")
    def _sandbox_fits(self) -> Self:
        if self.sandbox is not None and self.command is None:
            raise ValueError("sandbox is for a server with a command; one with a url runs elsewhere")
        if self.sandbox is not None and "cwd" in self.model_fields_set:
            raise ValueError("a sandboxed server starts in a folder of its own; leave cwd out")
        return self

    @model_validator(mode="after")
    def _oauth_fits(self) -> Self:
        if self.oauth is not None and self.url is None:
            raise ValueError("oauth is for a server with a url; one with a command gets its credentials by env")
        if self.oauth is not None and any(name.lower() == "authorization" for name in self.headers):
            raise ValueError("oauth and a header Authorization exclude each other; leave one out")
        return self


def _in_our_words(given: dict[str, Any]) -> dict[str, Any]:
    renamed = {_SPELLINGS.get(key, key): value for key, value in given.items()} | given
    renamed = {key: value for key, value in renamed.items() if key not in _SPELLINGS}
    if isinstance(renamed.get("enabled"), bool):
        renamed.setdefault("disabled", not renamed.pop("enabled"))
    for key in _LEAVING_OUT:
        if _are_names(renamed.get(key)) and _are_names(renamed.get("exclude", [])):
            renamed["exclude"] = [*renamed.get("exclude", ()), *renamed.pop(key)]
    for key in _TAKING_IN:
        if _are_names(renamed.get(key)) and "include" not in renamed:
            renamed["include"] = renamed.pop(key)
    return renamed


def _are_names(given: Any) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)


def _is_typo(key: Any, own: dict[str, str]) -> bool:
    return key not in FOREIGN and closest(str(key), own.values()) is not None
