"""The ways in: `serve`, `async_serve` and `create_app`, with the same options; a test holds them to `Options`."""

from starlette.applications import Starlette

from apcore_mcp.bridge import Bridge
from apcore_mcp.modules import Json, Source
from apcore_mcp.options import Options
from mcp_serve.hooks import Hook
from mcp_serve.own_loop import run_to_the_end
from mcp_serve.signals import Stop


def serve(
    registry_or_executor: Source,
    *,
    transport: str = "stdio",
    host: str = "127.0.0.1",
    port: int = 8000,
    name: str = "apcore-mcp",
    version: str | None = None,
    on_startup: Hook | None = None,
    on_shutdown: Hook | None = None,
    tags: list[str] | None = None,
    prefix: str | None = None,
    log_level: str | None = None,
    dynamic: bool = False,
    validate_inputs: bool = False,
    explorer: bool = False,
    explorer_prefix: str = "/explorer",
    allow_execute: bool = False,
    allowed_hosts: list[str] | None = None,
    cache_schemas: bool = True,
) -> None:
    """Serve the modules over MCP; blocks until SIGINT, SIGTERM or the end of stdin."""
    run_to_the_end(_bridge(locals()).run, Stop())


async def async_serve(
    registry_or_executor: Source,
    *,
    transport: str = "stdio",
    host: str = "127.0.0.1",
    port: int = 8000,
    name: str = "apcore-mcp",
    version: str | None = None,
    on_startup: Hook | None = None,
    on_shutdown: Hook | None = None,
    tags: list[str] | None = None,
    prefix: str | None = None,
    log_level: str | None = None,
    dynamic: bool = False,
    validate_inputs: bool = False,
    explorer: bool = False,
    explorer_prefix: str = "/explorer",
    allow_execute: bool = False,
    allowed_hosts: list[str] | None = None,
    cache_schemas: bool = True,
) -> None:
    """`serve` inside a running loop; cancel it to stop."""
    await _bridge(locals()).run(Stop())


def create_app(
    registry_or_executor: Source,
    *,
    transport: str = "stdio",
    host: str = "127.0.0.1",
    port: int = 8000,
    name: str = "apcore-mcp",
    version: str | None = None,
    on_startup: Hook | None = None,
    on_shutdown: Hook | None = None,
    tags: list[str] | None = None,
    prefix: str | None = None,
    log_level: str | None = None,
    dynamic: bool = False,
    validate_inputs: bool = False,
    explorer: bool = False,
    explorer_prefix: str = "/explorer",
    allow_execute: bool = False,
    allowed_hosts: list[str] | None = None,
    cache_schemas: bool = True,
) -> Starlette:
    """The ASGI app that `serve` would run: Streamable HTTP, or SSE if that is the transport."""
    return _bridge(locals()).app()


def _bridge(arguments: Json) -> Bridge:
    """The bridge that the arguments of one of the functions above ask for; they are named as the options are."""
    source = arguments.pop("registry_or_executor")
    return Bridge(source, Options(**arguments))
