"""From what a server answers to a call, to what the agent gets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from toolgrove.errors import Conflict, Forbidden, GroveError, InvalidArgument, NotFound, RateLimited, UpstreamFailed
from toolgrove.pool.mcp.faults import Nonsense
from toolgrove.pool.mcp.jsonrpc import Message
from toolgrove.types import Result

MAX_TEXT = 4_000
_WORD = re.compile(r"[A-Za-z0-9_.-]{1,64}")
Valid = Callable[[Any], bool]
Beginning = Callable[[str, int], str]
"""At most so many characters of a text, with no half of a secret at the end."""

_BLOCKS: Mapping[str, Mapping[str, type]] = {
    "text": {"text": str},
    "image": {"data": str, "mimeType": str},
    "audio": {"data": str, "mimeType": str},
    "resource_link": {"uri": str, "name": str},
    "resource": {"resource": dict},
}


def check(answer: Message, valid: Valid | None) -> None:
    """See that an answer is one: blocks of kinds that every client knows, and the result that the tool promised."""
    kind = answer.get("resultType", "complete")
    if kind == "input_required":
        raise UpstreamFailed(
            "The tool asks for further input, which cannot be passed on from here. Do not retry; use another tool, or "
            "give all it needs in the arguments.",
            reason="input_required",
        )
    if kind != "complete":
        raise Nonsense("answered with a kind of result that we do not know")
    content = answer.get("content", [])
    if not isinstance(content, list) or not all(map(_is_block, content)):
        raise Nonsense("answered with content that is malformed")
    if valid is not None and not is_error(answer) and not valid(answer.get("structuredContent")):
        raise Nonsense("answered with a result that does not match its own outputSchema")


def _is_block(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    parts = _BLOCKS.get(block.get("type", ""), None) if isinstance(block.get("type"), str) else None
    return parts is not None and all(isinstance(block.get(name), kind) for name, kind in parts.items())


def is_error(answer: Message) -> bool:
    """Whether the tool itself says that it failed."""
    return answer.get("isError") is True


def result_of(answer: Message) -> Result:
    """The result of a call that went well: what the tool structured, else its blocks."""
    structured = answer.get("structuredContent")
    return structured if isinstance(structured, dict) else {"content": answer.get("content", [])}


def failure_of(answer: Message, beginning: Beginning) -> GroveError:
    """The tool's own failure; one that is written as ours keeps its code and facts."""
    structured = answer.get("structuredContent")
    error = structured.get("error") if isinstance(structured, dict) else None
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        kind = _KINDS.get(error["code"]) if isinstance(error.get("code"), str) else None
        if kind is not None:
            return kind(brief(error["message"], beginning), _facts(error))
    text = "\n".join(block["text"] for block in answer.get("content", []) if block["type"] == "text").strip()
    return UpstreamFailed(brief(text, beginning) or "The tool failed and did not say why.", reason="tool_error")


def _facts(error: Mapping[str, Any]) -> dict[str, Any]:
    """What else the error says: a reason that is a word, and as much as a reader can bear, since all of it is kept."""
    facts = {name: value for name, value in error.items() if name not in ("code", "message", "reason")}
    if sum(len(name) + len(json.dumps(value)) for name, value in facts.items()) > MAX_TEXT:
        facts = {}
    reason = error.get("reason")
    return {**facts, "reason": reason if isinstance(reason, str) and _WORD.fullmatch(reason) else "tool_error"}


def brief(text: str, beginning: Beginning) -> str:
    """A foreign text, cut to what a reader can bear."""
    return text if len(text) <= MAX_TEXT else f"{beginning(text, MAX_TEXT - 1)}…"


class _Foreign(GroveError):
    """An error written as ours that came from a server of the pool."""

    def __init__(self, message: str, facts: Mapping[str, Any]) -> None:
        GroveError.__init__(self, message)
        self.facts = {name: value for name, value in facts.items() if value is not None}


class _InvalidArgument(_Foreign, InvalidArgument):
    pass


class _NotFound(_Foreign, NotFound):
    pass


class _Forbidden(_Foreign, Forbidden):
    pass


class _Conflict(_Foreign, Conflict):
    pass


class _RateLimited(_Foreign, RateLimited):
    pass


class _Internal(_Foreign):
    pass


_KINDS: Mapping[str, type[_Foreign]] = {
    kind.code: kind for kind in (_InvalidArgument, _NotFound, _Forbidden, _Conflict, _RateLimited, _Internal)
}
