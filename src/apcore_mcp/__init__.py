"""Any apcore registry as an MCP server and as OpenAI tools."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from apcore_mcp.helpers import MCP_ELICIT_KEY, MCP_PROGRESS_KEY, elicit, report_progress
from apcore_mcp.version import __version__

if TYPE_CHECKING:
    from apcore_mcp.converters.openai import to_openai_tools
    from apcore_mcp.serving import async_serve, create_app, serve

__all__ = ["MCP_ELICIT_KEY", "MCP_PROGRESS_KEY", "__version__", "elicit", "report_progress"]
__all__ += ["async_serve", "create_app", "serve", "to_openai_tools"]


def __getattr__(name: str) -> Any:
    """Import the heavy parts when they are asked for: a module that reports progress needs no MCP server."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "apcore_mcp.converters.openai" if name == "to_openai_tools" else "apcore_mcp.serving"
    return getattr(import_module(home), name)
