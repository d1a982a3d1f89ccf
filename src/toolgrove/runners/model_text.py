"""What a model reads of a result: of one that an MCP server gave, its words instead of its wrapping."""

from __future__ import annotations

import json
from typing import Any

from toolgrove.types import RESULT_META, Result

_PARTS = frozenset(("content", "structuredContent", "isError", "_meta"))


def is_of_mcp(result: Result) -> bool:
    """Whether a result has the shape in which MCP servers give theirs."""
    return isinstance(result.get("content"), list) and result.keys() <= _PARTS


def failed(result: Result) -> bool:
    """Whether the call failed, by our word or by the tool's own."""
    return "error" in result if not is_of_mcp(result) else result.get("isError") is True


def model_text(result: Result) -> str:
    """The result as one text: blocks in words, data once, and nothing that only a program can read."""
    if not is_of_mcp(result):
        return json.dumps(result, ensure_ascii=False)
    texts = [_words(block) for block in result["content"]]
    if RESULT_META in (result.get("_meta") or {}):
        return "\n".join(filter(None, texts))  # what was cut is not told whole after all
    if "structuredContent" in result and not any(_says(text, result["structuredContent"]) for text in texts):
        texts.append(json.dumps(result["structuredContent"], ensure_ascii=False))
    return "\n".join(filter(None, texts)) or "(no content)"


def _words(block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "resource_link":
        return f"[{block.get('name')}: {block.get('uri')}]"
    resource = block.get("resource")
    if isinstance(resource, dict):
        return str(resource["text"]) if "text" in resource else f"[a file: {resource.get('uri')}]"
    return f"[{kind}: {block.get('mimeType')}, not shown]"


def _says(text: str, value: Any) -> bool:
    """Whether a text is that value as JSON already, as most servers write it for those who read nothing else."""
    try:
        return bool(json.loads(text) == value)
    except ValueError:
        return False
