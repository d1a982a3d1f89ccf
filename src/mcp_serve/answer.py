"""What a call of a tool answers."""

from mcp_types import CallToolResult, TextContent

from mcp_serve.table import Json

Answer = CallToolResult | Json
"""A dictionary is a result in the form of the wire, without its envelope, and reaches the client exactly as it is."""


def error_result(text: str) -> CallToolResult:
    """An answer that says what went wrong."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)
