"""What a call of a tool answers."""

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mcp_serve.table import Json

if TYPE_CHECKING:
    from mcp_types import CallToolResult

Answer: TypeAlias = "CallToolResult | Json"
"""A dictionary is a result in the form of the wire, without its envelope, and reaches the client exactly as it is."""


class Told(dict[str, Any]):
    """A result whose content is one object, structured and as its text; both are written already.

    `text` is that object as JSON on one line, in ASCII.
    """

    __slots__ = ("text",)

    def __init__(self, value: Json, text: str) -> None:
        super().__init__(content=[{"type": "text", "text": text}], structuredContent=value, isError=False)
        self.text = text


class Refusal(NamedTuple):
    """What the endpoint itself says, in place of a tool that it does not run, or no longer."""

    text: str


def failure(text: str) -> Json:
    """An answer that says what went wrong."""
    return {"content": [{"type": "text", "text": text}], "isError": True}
