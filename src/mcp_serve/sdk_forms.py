"""Answers and requests in the SDK's own forms. Imported where one is needed: the SDK takes long to import."""

from typing import Any

from mcp_types import CallToolResult, ClientCapabilities, ListToolsResult, TextContent, Tool
from mcp_types.methods import serialize_server_result, validate_client_request
from pydantic import ValidationError

from mcp_serve.protocol import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LEGACY,
    MODERN,
    PROTOCOL_VERSION_META_KEY,
)
from mcp_serve.table import Described, Json


def error_result(text: str) -> CallToolResult:
    """An answer that says what went wrong."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def tool_of(described: Described) -> Tool:
    """A tool as the SDK lists it."""
    if isinstance(described, Tool):
        return described
    schema = dict(described.input_schema)
    return Tool(name=described.name, description=described.description, input_schema=schema)


def definition_of(tool: Described, *, modern: bool) -> Json:
    """A tool in the form of the wire."""
    dumped = ListToolsResult(tools=[tool_of(tool)]).model_dump(by_alias=True, mode="json", exclude_none=True)
    shown: Json = serialize_server_result("tools/list", MODERN if modern else LEGACY, dumped)["tools"][0]
    return shown


def result_of(answer: CallToolResult, *, modern: bool) -> Json:
    """The result of a call in the form of the wire."""
    if _is_text(answer):
        return _texts(answer, modern=modern)
    dumped = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
    parts: Json = serialize_server_result("tools/call", MODERN if modern else LEGACY, dumped)
    return parts


def _is_text(answer: CallToolResult) -> bool:
    """Whether it holds nothing but texts, as most do; the SDK's own way to write it takes longer than many calls."""
    return answer.meta is None and all(
        type(block) is TextContent and block.annotations is None and block.meta is None for block in answer.content
    )


def _texts(answer: CallToolResult, *, modern: bool) -> Json:
    texts = [{"text": block.text, "type": "text"} for block in answer.content if isinstance(block, TextContent)]
    parts: Json = {"content": texts, "isError": bool(answer.is_error)}
    if modern:
        parts["resultType"] = answer.result_type or "complete"
    if answer.structured_content is not None:
        parts["structuredContent"] = answer.structured_content
    return parts


def can_answer(about: Json, capabilities: Any) -> bool | None:
    """Whether a client that says this of itself can be asked; None where the SDK refuses its word.

    `about` holds its name and version, if it tells them.
    """
    envelope = {
        PROTOCOL_VERSION_META_KEY: MODERN,
        CLIENT_CAPABILITIES_META_KEY: capabilities,
        **({CLIENT_INFO_META_KEY: about["client"]} if "client" in about else {}),
    }
    try:
        validate_client_request("tools/list", MODERN, {"_meta": envelope})
        return ClientCapabilities.model_validate(capabilities).elicitation is not None
    except ValidationError:
        return None
