"""From what a server answers to a call, to what the agent gets: the same, once it is clear that it is a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolgrove.errors import ToolError, UpstreamFailed
from toolgrove.pool.mcp.faults import Nonsense
from toolgrove.pool.mcp.jsonrpc import Message
from toolgrove.types import Result

MAX_TEXT = 4_000
_SUGGESTED = 100
OURS = "toolgrove/"
"""Keys of `_meta` that begin so are our word; a server that writes one could pass for us."""
POLICY = "reservedMeta"
_STAMP = "io.modelcontextprotocol/serverInfo"
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
    """Check an answer: blocks of kinds that every client knows, and the result that the tool promised."""
    _check_kind(answer)
    content = answer.get("content", [])
    if not isinstance(content, list) or not all(map(_is_block, content)):
        raise Nonsense("answered with content that is malformed")
    if not isinstance(answer.get("isError"), bool | None) or not isinstance(answer.get("_meta"), dict | None):
        raise Nonsense("answered with a result that is malformed")
    if valid is not None and not is_error(answer) and not valid(answer.get("structuredContent")):
        raise Nonsense("answered with a result that does not match its own outputSchema")


def check_contents(answer: Message) -> None:
    """Check what the reading of a resource answered: texts and blobs, each with its address."""
    _check_kind(answer)
    contents = answer.get("contents")
    if not isinstance(contents, list) or not all(map(_is_content, contents)):
        raise Nonsense("answered with a resource that is malformed")
    if not isinstance(answer.get("_meta"), dict | None):
        raise Nonsense("answered with a resource that is malformed")


def check_messages(answer: Message) -> None:
    """Check what the getting of a prompt answered: messages of one block each."""
    _check_kind(answer)
    messages = answer.get("messages")
    if not isinstance(messages, list) or not all(map(_is_message, messages)):
        raise Nonsense("answered with a prompt that is malformed")
    if not isinstance(answer.get("description"), str | None) or not isinstance(answer.get("_meta"), dict | None):
        raise Nonsense("answered with a prompt that is malformed")


def _is_message(message: Any) -> bool:
    return (
        isinstance(message, dict) and message.get("role") in ("user", "assistant") and _is_block(message.get("content"))
    )


def check_completion(answer: Message) -> None:
    """Check what a server suggests: at most a hundred texts."""
    _check_kind(answer)
    found = answer.get("completion")
    values = found.get("values") if isinstance(found, dict) else None
    if not isinstance(values, list) or len(values) > _SUGGESTED or not all(isinstance(one, str) for one in values):
        raise Nonsense("answered with suggestions that are malformed")


def completion_of(answer: Message) -> Result:
    """The suggestions, without the envelope."""
    found = answer["completion"]
    told: Result = {"values": found["values"]}
    if type(found.get("total")) is int:
        told["total"] = found["total"]
    if isinstance(found.get("hasMore"), bool):
        told["hasMore"] = found["hasMore"]
    return {"completion": told}


def _check_kind(answer: Message) -> None:
    kind = answer.get("resultType", "complete")
    if kind == "input_required":
        raise UpstreamFailed(
            "The server asks for further input, which cannot be passed on from here. Do not retry; give "
            "all it needs in the arguments, or use another tool.",
            reason="input_required",
        )
    if kind != "complete":
        raise Nonsense("answered with a kind of result that we do not know")


def _is_content(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and isinstance(content.get("uri"), str)
        and isinstance(content.get("mimeType"), str | None)
        and isinstance(content.get("_meta"), dict | None)
        and [type(content[part]) for part in ("text", "blob") if part in content] == [str]
    )


def _is_block(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    parts = _BLOCKS.get(block.get("type", ""), None) if isinstance(block.get("type"), str) else None
    return parts is not None and all(isinstance(block.get(name), kind) for name, kind in parts.items())


def is_error(answer: Message) -> bool:
    """Whether the tool itself says that it failed."""
    return answer.get("isError") is True


def result_of(answer: Message) -> Result:
    """The result without its envelope, which is between the server and us."""
    result: Result = {"content": answer.get("content", [])}
    if "structuredContent" in answer:
        result["structuredContent"] = answer["structuredContent"]
    if answer.get("isError") is not None:
        result["isError"] = answer["isError"]
    return _with_meta(result, answer)


def resource_of(answer: Message) -> Result:
    """What was read, without the envelope."""
    return _with_meta({"contents": answer["contents"]}, answer)


def prompt_of(answer: Message) -> Result:
    """A prompt, without the envelope."""
    return _with_meta({key: answer[key] for key in ("description", "messages") if answer.get(key) is not None}, answer)


def _with_meta(result: Result, answer: Message) -> Result:
    meta = {key: value for key, value in _meta(answer).items() if key != _STAMP and not key.startswith(OURS)}
    return {**result, "_meta": meta} if meta else result


def is_impostor(answer: Message) -> bool:
    """Whether a server speaks in our name."""
    return any(key.startswith(OURS) for key in _meta(answer))


def _meta(answer: Message) -> Message:
    return answer.get("_meta") or {}


def failure_of(answer: Message, beginning: Beginning) -> ToolError:
    """The tool's own failure: its result for the agent, and its words for the records."""
    result = result_of(answer)
    text = "\n".join(block["text"] for block in result["content"] if block["type"] == "text").strip()
    return ToolError(brief(text, beginning) or "The tool failed and did not say why.", result=result)


def brief(text: str, beginning: Beginning) -> str:
    """A foreign text, cut to what a reader can bear."""
    return text if len(text) <= MAX_TEXT else f"{beginning(text, MAX_TEXT - 1)}…"
