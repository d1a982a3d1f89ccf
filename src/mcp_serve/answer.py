"""What a call of a tool answers."""

from mcp_types import CallToolResult, TextContent

from mcp_serve.table import Json

Answer = CallToolResult | Json
"""A dictionary is a result in the form of the wire, without its envelope, and reaches the client exactly as it is."""


class Refusal(CallToolResult):
    """What the endpoint itself answers, in place of a tool that it does not run, or no longer."""

    @property
    def text(self) -> str:
        """Its words."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))


def refusal(text: str) -> Refusal:
    """A refusal in these words."""
    return Refusal(content=[TextContent(text=text)], is_error=True)


def error_result(text: str) -> CallToolResult:
    """An answer that says what went wrong."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)
