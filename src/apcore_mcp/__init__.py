"""Any apcore registry as an MCP server and as OpenAI tools.

- ``adapters``: pure translations of schemas, annotations, errors and ids
- ``bridge``: one registry behind one MCP endpoint
- ``cli``: the command `apcore-mcp`
- ``converters``: exports to other tool formats
- ``explorer``: the page on which people browse and try the tools
- ``helpers``: what a module may ask of its client
- ``internals``: what we change inside apcore and pydantic
- ``modules``: which registry
- ``options``: defaults, help and checks of every option, filters included
- ``server``: from a registry to what `mcp_serve` serves
- ``serving``: `serve`, `async_serve` and `create_app`
- ``version``: the version of the distribution
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from apcore_mcp.helpers import MCP_ELICIT_KEY, MCP_PROGRESS_KEY, elicit, report_progress
from apcore_mcp.version import __version__

if TYPE_CHECKING:
    from apcore_mcp.converters.openai import to_openai_tools
    from apcore_mcp.serving import async_serve, create_app, serve

__all__ = [
    "MCP_ELICIT_KEY",
    "MCP_PROGRESS_KEY",
    "__version__",
    "async_serve",
    "create_app",
    "elicit",
    "report_progress",
    "serve",
    "to_openai_tools",
]
_HEAVY = {
    "async_serve": "apcore_mcp.serving",
    "create_app": "apcore_mcp.serving",
    "serve": "apcore_mcp.serving",
    "to_openai_tools": "apcore_mcp.converters.openai",
}


def __getattr__(name: str) -> Any:
    """Import the heavy parts when they are asked for: a module that reports progress needs no MCP server."""
    if name not in _HEAVY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HEAVY[name]), name)
