"""What a call of a tool answers."""

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mcp_serve.table import Json

if TYPE_CHECKING:
    from mcp_types import CallToolResult

Answer: TypeAlias = "CallToolResult | Json"
"""A dictionary is a result in the form of the wire, without its envelope, and reaches the client exactly as it is."""


class Refusal(NamedTuple):
    """What the endpoint itself says, in place of a tool that it does not run, or no longer."""

    text: str


def failure(text: str) -> Json:
    """An answer that says what went wrong."""
    return {"content": [{"type": "text", "text": text}], "isError": True}
