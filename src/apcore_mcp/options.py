"""The options of `serve`, `async_serve`, `create_app` and the command line: defaults, help and checks."""

from dataclasses import dataclass, field
from typing import Any, get_args, get_type_hints

from mcp_serve.hooks import Hook

TRANSPORTS = ("stdio", "streamable-http", "sse")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
MAX_NAME = 255
Tags = list[str] | None
_WORDS = {str: "a string", int: "a whole number", bool: "True or False", list[str]: "a list of strings"}


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
    version: str | None = flag(None, "server version that clients see")
    on_startup: Hook | None = None
    on_shutdown: Hook | None = None
    tags: list[str] | None = flag(None, "serve only modules that have this tag (repeatable)", action="append")
    prefix: str | None = flag(None, "serve only modules whose id starts with this")
    log_level: str | None = flag(None, "log verbosity", choices=LOG_LEVELS)
    dynamic: bool = flag(False, "watch the extensions directory and serve what changes", action="store_true")
    validate_inputs: bool = flag(False, "check arguments by JSON Schema before apcore does", action="store_true")
    explorer: bool = flag(False, "serve the Explorer page (HTTP transports)", action="store_true")
    explorer_prefix: str = flag("/explorer", "path of the Explorer page")
    allow_execute: bool = flag(False, "let the Explorer run tools", action="store_true")
    allowed_hosts: list[str] | None = flag(None, "accept this host name in requests (repeatable)", action="append")
    cache_schemas: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "transport", str(self.transport).lower())
        check_types(get_type_hints(Options), vars(self))
        object.__setattr__(self, "explorer_prefix", self.explorer_prefix.rstrip("/"))
        check_filters(self.tags, self.prefix)
        over_http = self.transport != "stdio"
        level = self.log_level
        _require(self.transport in TRANSPORTS, f"Unknown transport: '{self.transport}'. {_one_of(TRANSPORTS)}")
        _require(not over_http or self.host != "", "Host must not be empty")
        _require(not over_http or 1 <= self.port <= 65535, f"Port must be between 1 and 65535, got {self.port}")
        _require(self.explorer_prefix.startswith("/"), "explorer_prefix must start with '/' and name a path")
        _require(self.name != "", "name must not be empty")
        _require(len(self.name) <= MAX_NAME, f"name must not exceed {MAX_NAME} characters")
        _require(self.version != "", "version must not be empty")
        _require(level is None or level.upper() in LOG_LEVELS, f"Unknown log level: '{level}'. {_one_of(LOG_LEVELS)}")


def check_types(hints: dict[str, Any], given: dict[str, Any]) -> None:
    """TypeError that names an option whose value is of no type that it may have."""
    for name, hint in hints.items():
        kinds = (hint,) if hint in _WORDS else get_args(hint)
        if name in given and not any(_is(given[name], kind) for kind in kinds):
            words = " or ".join(_WORDS.get(kind, "callable") for kind in kinds if kind is not type(None))
            raise TypeError(f"{name} must be {words}, got {given[name]!r:.100}")


def _is(value: Any, kind: Any) -> bool:
    if kind == list[str]:
        return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    if not isinstance(kind, type):
        return callable(value)
    return isinstance(value, kind) and isinstance(value, bool) == (kind is bool)


def check_filters(tags: Tags, prefix: str | None) -> None:
    """ValueError for a filter that can only be a mistake."""
    if tags is not None and not all(tags):
        raise ValueError("Tag values must not be empty")
    if prefix == "":
        raise ValueError("prefix must not be empty")


def _require(met: bool, otherwise: str) -> None:
    if not met:
        raise ValueError(otherwise)


def _one_of(choices: tuple[str, ...]) -> str:
    return f"Must be one of: {', '.join(choices)}"
