"""The text in an answer of the `mcp` client."""

from __future__ import annotations

from mcp_types import CallToolResult, ReadResourceResult, TextContent, TextResourceContents


def text_of(result: CallToolResult) -> str:
    """What the one block of a result says."""
    [block] = result.content
    assert isinstance(block, TextContent), block
    return block.text


def contents_of(result: ReadResourceResult) -> TextResourceContents:
    """The one text of a resource."""
    [contents] = result.contents
    assert isinstance(contents, TextResourceContents), contents
    return contents
