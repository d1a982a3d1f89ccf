"""The MCP SDK, loaded when it is first needed: importing it takes longer than all the rest of a start."""

import asyncio
import sys
from importlib import import_module
from typing import Any

_SERVER = "mcp_serve.sdk_server"


def is_loaded() -> bool:
    """Whether it can be asked without a wait; one that is being imported cannot."""
    return getattr(sys.modules.get(_SERVER), "IS_LOADED", False)


def load() -> None:
    """Import it; takes a while the first time."""
    import_module("mcp_serve.sdk_http")


async def loaded() -> None:
    """Return when it is there; it is imported aside, so that others are answered meanwhile."""
    if not is_loaded():
        await asyncio.to_thread(load)


def server() -> Any:
    """The server that it makes of an endpoint."""
    return import_module(_SERVER)


def http() -> Any:
    """Its transports over HTTP."""
    return import_module("mcp_serve.sdk_http")


def forms() -> Any:
    """Its own forms of answers and requests."""
    return import_module("mcp_serve.sdk_forms")
