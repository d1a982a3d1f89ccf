"""What a call of a tool answers."""

from mcp_types import CallToolResult, TextContent

from mcp_serve.table import Json

Answer = CallToolResult | Json
"""The SDK takes the form of the wire as well, and has less to do then."""


def error_result(text: str) -> CallToolResult:
    """An answer that says what went wrong."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)
