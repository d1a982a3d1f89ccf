"""Tools of external MCP servers: a lean client for both protocol eras, over stdio and Streamable HTTP."""

from toolgrove.pool.mcp.source import McpSource

__all__ = ["McpSource"]
