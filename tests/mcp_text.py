"""What an answer of the `mcp` client, or one as it is on the wire, says."""

from __future__ import annotations

from typing import Any

from mcp_types import CallToolResult, ReadResourceResult, TextContent, TextResourceContents


def text_of(result: CallToolResult) -> str:
    """What the one block of a result says."""
    [block] = result.content
    assert isinstance(block, TextContent), block
    return block.text


def told(result: CallToolResult) -> dict[str, Any]:
    """What an agent is told in process: the result of one of our own tools, or our refusal."""
    return told_on_wire(result.model_dump(by_alias=True, exclude_none=True))


def told_on_wire(result: dict[str, Any]) -> dict[str, Any]:
    """The same, from the form of the wire; whatever else it is comes back as it is."""
    error = result.get("_meta", {}).get("toolgrove/error")
    if error is not None:
        return {"error": error}
    answer: dict[str, Any] = result.get("structuredContent", result)
    return answer


def contents_of(result: ReadResourceResult) -> TextResourceContents:
    """The one text of a resource."""
    [contents] = result.contents
    assert isinstance(contents, TextResourceContents), contents
    return contents
