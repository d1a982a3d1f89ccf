"""The options of `serve`, `async_serve`, `create_app` and the command line, spelled once."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from apcore_mcp.modules import check_filters
from apcore_mcp.version import __version__

TRANSPORTS = ("stdio", "streamable-http", "sse")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
MAX_NAME = 255
Hook = Callable[[], Awaitable[None] | None]
P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")


def flag(default: Any, text: str, **argument: Any) -> Any:
    """A field that is a command-line flag too; `argument` goes to argparse."""
    return field(default=default, metadata={"help": text, **argument})


@dataclass(frozen=True, kw_only=True)
class Options:
    """How modules are served. Fields with a help text are flags of `apcore-mcp` as well."""

    transport: str = flag("stdio", "MCP transport", choices=TRANSPORTS)
    host: str = flag("127.0.0.1", "bind address of the HTTP transports")
    port: int = flag(8000, "port of the HTTP transports, 1 to 65535", type=int)
    name: str = flag("apcore-mcp", "server name that clients see")
    version: str | None = flag(None, f"server version that clients see (default: {__version__})")
    on_startup: Hook | None = None
    on_shutdown: Hook | None = None
    tags: list[str] | None = flag(None, "serve only modules that have this tag (repeatable)", action="append")
    prefix: str | None = flag(None, "serve only modules whose id starts with this")
    log_level: str | None = flag(None, "log verbosity (default: INFO)", choices=LOG_LEVELS)
    dynamic: bool = flag(False, "watch the extensions directory and serve what changes", action="store_true")
    validate_inputs: bool = flag(
        False, "check arguments against the JSON Schema before apcore does", action="store_true"
    )
    explorer: bool = flag(False, "serve the Explorer page (HTTP transports)", action="store_true")
    explorer_prefix: str = flag("/explorer", "path of the Explorer page")
    allow_execute: bool = flag(False, "let the Explorer run tools", action="store_true")
    allowed_hosts: list[str] | None = flag(None, "accept this host name in requests (repeatable)", action="append")
    cache_schemas: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "transport", str(self.transport).lower())
        object.__setattr__(self, "explorer_prefix", self.explorer_prefix.rstrip("/"))
        self._check_network()
        self._check_identity()
        check_filters(self.tags, self.prefix)
        if self.log_level is not None and self.log_level.upper() not in LOG_LEVELS:
            raise ValueError(f"Unknown log level: '{self.log_level}'. Must be one of: {', '.join(LOG_LEVELS)}")

    def _check_network(self) -> None:
        if self.transport not in TRANSPORTS:
            raise ValueError(f"Unknown transport: '{self.transport}'. Must be one of: {', '.join(TRANSPORTS)}")
        if not self.explorer_prefix.startswith("/"):
            raise ValueError(f"explorer_prefix must start with '/', got '{self.explorer_prefix}'")
        if self.transport != "stdio":
            if not self.host:
                raise ValueError("Host must not be empty")
            if not 1 <= self.port <= 65535:
                raise ValueError(f"Port must be between 1 and 65535, got {self.port}")

    def _check_identity(self) -> None:
        if not self.name:
            raise ValueError("name must not be empty")
        if len(self.name) > MAX_NAME:
            raise ValueError(f"name must not exceed {MAX_NAME} characters")
        if self.version == "":
            raise ValueError("version must not be empty")


def takes_options(build: Callable[P, Options]) -> Callable[[Callable[[S, Options], R]], Callable[Concatenate[S, P], R]]:
    """Give a function of (source, options) the options as keyword arguments, for callers and type checkers."""

    def decorate(function: Callable[[S, Options], R]) -> Callable[Concatenate[S, P], R]:
        @functools.wraps(function)
        def call(registry_or_executor: S, *args: P.args, **kwargs: P.kwargs) -> R:
            return function(registry_or_executor, build(*args, **kwargs))

        source, options = inspect.signature(function).parameters.values()
        keywords = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
            for f in fields(options.annotation)
        ]
        call.__signature__ = inspect.Signature([source, *keywords])  # type: ignore[attr-defined]
        return cast("Callable[Concatenate[S, P], R]", call)

    return decorate
