"""The ways in: `serve`, `async_serve` and `create_app`, with the same options; a test holds them to `Options`."""

import asyncio
from contextlib import closing

from starlette.applications import Starlette

from apcore_mcp.bridge import Bridge
from apcore_mcp.modules import Source
from apcore_mcp.options import Hook, Options
from mcp_serve.signals import stop_on_signals


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
    options = Options(
        transport=transport,
        host=host,
        port=port,
        name=name,
        version=version,
        on_startup=on_startup,
        on_shutdown=on_shutdown,
        tags=tags,
        prefix=prefix,
        log_level=log_level,
        dynamic=dynamic,
        validate_inputs=validate_inputs,
        explorer=explorer,
        explorer_prefix=explorer_prefix,
        allow_execute=allow_execute,
        allowed_hosts=allowed_hosts,
        cache_schemas=cache_schemas,
    )
    bridge = Bridge(registry_or_executor, options)
    stop = asyncio.Event()
    loop = asyncio.new_event_loop()
    # The loop is closed without waiting for threads: a module that never returns must not hold us.
    with closing(loop), stop_on_signals(stop, loop):
        loop.run_until_complete(bridge.run(stop))
        loop.run_until_complete(loop.shutdown_asyncgens())


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
    options = Options(
        transport=transport,
        host=host,
        port=port,
        name=name,
        version=version,
        on_startup=on_startup,
        on_shutdown=on_shutdown,
        tags=tags,
        prefix=prefix,
        log_level=log_level,
        dynamic=dynamic,
        validate_inputs=validate_inputs,
        explorer=explorer,
        explorer_prefix=explorer_prefix,
        allow_execute=allow_execute,
        allowed_hosts=allowed_hosts,
        cache_schemas=cache_schemas,
    )
    await Bridge(registry_or_executor, options).run(asyncio.Event())


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
    options = Options(
        transport=transport,
        host=host,
        port=port,
        name=name,
        version=version,
        on_startup=on_startup,
        on_shutdown=on_shutdown,
        tags=tags,
        prefix=prefix,
        log_level=log_level,
        dynamic=dynamic,
        validate_inputs=validate_inputs,
        explorer=explorer,
        explorer_prefix=explorer_prefix,
        allow_execute=allow_execute,
        allowed_hosts=allowed_hosts,
        cache_schemas=cache_schemas,
    )
    return Bridge(registry_or_executor, options).app()
