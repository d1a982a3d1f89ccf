"""Sends what stands in the form of the wire exactly as it is; the SDK knows the fields of its version and no other."""

from contextvars import ContextVar
from typing import Any

from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult

from mcp_serve.table import Json, ToolEntry

_KEPT: ContextVar["_Kept | None"] = ContextVar("_KEPT", default=None)
_EMPTY: Json = {"content": [], "resultType": "complete"}
_LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
_METHODS = frozenset(("tools/call", "resources/read", "prompts/get", "completion/complete", *_LISTS))


class _Kept:
    """What goes into the answer to one request, past the SDK."""

    def __init__(self) -> None:
        self.parts: Json = {}
        self.entries: dict[str, Json] = {}


async def verbatim(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Middleware: let the SDK write the envelope, and put in what was kept for it."""
    if ctx.method not in _METHODS:
        return await call_next(ctx)
    kept = _Kept()
    token = _KEPT.set(kept)
    try:
        answer = await call_next(ctx)
    finally:
        _KEPT.reset(token)
    if kept.parts and isinstance(answer, dict):
        meta = {**kept.parts.get("_meta", {}), **answer.get("_meta", {})}
        return {**answer, **kept.parts, **({"_meta": meta} if meta else {})}
    if kept.entries and isinstance(answer, dict):
        key, name = _LISTS[ctx.method]
        return {**answer, key: [kept.entries.get(entry[name], entry) for entry in answer[key]]}
    return answer


def keep_result(result: Json) -> Json:
    """Keep the result of a call, and hand the SDK one that stands for it."""
    kept = _KEPT.get()
    if kept is None:
        return result
    kept.parts = result
    return _EMPTY


def keep_contents(parts: Json) -> None:
    """Keep what was read or got; the SDK writes an empty result of the same kind."""
    kept = _KEPT.get()
    if kept is not None:
        kept.parts = parts


def keep_entry(name: str, wire: Json) -> None:
    """Keep one entry of a list under what tells it apart."""
    kept = _KEPT.get()
    if kept is not None:
        kept.entries[name] = wire


def keep_definition(entry: ToolEntry, *, modern: bool) -> None:
    """Keep the definition of a tool; an older client takes no output schema but that of an object."""
    kept = _KEPT.get()
    wire = entry.wire if modern else entry.legacy_wire
    if kept is not None and wire is not None:
        kept.entries[entry.tool.name] = wire
