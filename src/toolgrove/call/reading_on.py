"""`read_result`: reads on in a result that was cut, by path, by words or page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import anyio.to_thread

from toolgrove.call.kept_results import KeptResults
from toolgrove.call.shortening import PER_TOKEN, shortened, shortened_lines, tokens
from toolgrove.errors import NotFound
from toolgrove.giving_way import giving_way
from toolgrove.notation.json_value import compact, text_size
from toolgrove.types import READ_RESULT, Annotations, Call, Result, Schema, Tool, ToolSpec

SOURCE = "results"
_LARGE = 256 * 1024
_HEAD = 40
"""Tokens that an answer has beside what it shows."""
_KEYS = 20


class ReadingOn:
    """Where `read_result` comes from; `limit` says how many tokens an agent's results may have."""

    name = SOURCE

    def __init__(self, kept: KeptResults, limit: Callable[[str], int | None]) -> None:
        self._kept = kept
        self._limit = limit

    def tool(self) -> Tool:
        """The tool itself."""
        return Tool(spec=SPEC, source=self, mutates=False, own_name=READ_RESULT)

    async def call(self, call: Call) -> Result:
        """Answer with the part that was asked for, as much of it as fits."""
        asked = call.arguments
        try:
            value = self._kept.get(call.caller, asked["resultId"])
        except KeyError:
            raise NotFound(
                "There is no such result in this session, or not any more. Make the call again that gave it.",
                resultId=asked["resultId"],
            ) from None
        work = partial(_part, value, asked, self._limit(call.caller.agent) or _LARGE)
        if text_size(value, enough=_LARGE) < _LARGE:
            return work()
        with giving_way():
            return await anyio.to_thread.run_sync(work)


def _part(value: Any, asked: dict[str, Any], most: int) -> Result:
    path = asked.get("path", "")
    value = _at(value, path)
    head: Result = {"path": path} if path else {}
    query = asked.get("query", "").casefold()
    if isinstance(value, str):
        numbered = list(enumerate(value.splitlines(), 1))
        lines = [(at, one) for at, one in numbered if query in one.casefold()]
        pages = _pages(lines, most, lambda line: len(line[1]) + 1)
        page, shown = _page(pages, asked)
        return {**head, **page, "lines": len(lines), "text": _text(shown, most, numbered=bool(query))}
    if isinstance(value, list | tuple):
        items: list[tuple[Any, Any]] = [(at, one) for at, one in enumerate(value) if _has(one, query)]
        page, shown = _page(_pages(items, most, _size), asked)
        told = [{"index": at, "value": _fitting(one, most)} for at, one in shown] if query else None
        return {**head, **page, "total": len(items), "items": told or [_fitting(one, most) for _, one in shown]}
    if isinstance(value, dict):
        entries = [(key, one) for key, one in value.items() if query in str(key).casefold() or _has(one, query)]
        page, shown = _page(_pages(entries, most, _size), asked)
        return {**head, **page, "total": len(entries), "entries": {key: _fitting(one, most) for key, one in shown}}
    return {**head, "page": 1, "pages": 1, "value": value}


def _has(value: Any, query: str) -> bool:
    return not query or query in compact(value).casefold()


def _fitting(value: Any, most: int) -> Any:
    room = most - _HEAD
    return value if tokens(compact(value)) <= room else shortened(value, room, marks=True)


def _text(lines: Sequence[tuple[int, str]], most: int, *, numbered: bool) -> str:
    told = "\n".join(f"{at}: {line}" if numbered else line for at, line in lines)
    return shortened_lines(told, most - _HEAD)


def _size(entry: tuple[Any, Any]) -> int:
    return len(compact(entry[1])) + len(str(entry[0])) + 12


def _pages(entries: Sequence[Any], most: int, size: Callable[[Any], int]) -> list[Sequence[Any]]:
    """The entries in pages that fit; one that is too large by itself has a page of its own."""
    return list(_in_pages(entries, max(most - _HEAD, 1) * PER_TOKEN, size)) or [()]


def _in_pages(entries: Sequence[Any], room: int, size: Callable[[Any], int]) -> Iterator[Sequence[Any]]:
    begin, used = 0, 0
    for at, entry in enumerate(entries):
        needs = size(entry)
        if at > begin and used + needs > room:
            yield entries[begin:at]
            begin, used = at, 0
        used += needs
    if begin < len(entries):
        yield entries[begin:]


def _page(pages: Sequence[Sequence[Any]], asked: dict[str, Any]) -> tuple[Result, Sequence[Any]]:
    wanted = asked.get("page", 1)
    if wanted > len(pages):
        raise NotFound(f"There are {len(pages)} pages here; ask for one of them.", pages=len(pages))
    return {"page": wanted, "pages": len(pages)}, pages[wanted - 1]


def _at(value: Any, path: str) -> Any:
    """What stands at a path: `/items/3`, or `items.3`."""
    for key in _keys(path):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list | tuple) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise NotFound(f"Nothing stands at {key!r} of path {path!r}. {_there(value)}", path=path)
    return value


def _keys(path: str) -> list[str]:
    if path.startswith("/"):
        return [key.replace("~1", "/").replace("~0", "~") for key in path[1:].split("/")]
    return path.split(".") if path else []


def _there(value: Any) -> str:
    if isinstance(value, dict):
        return f"There are: {', '.join(map(str, list(value)[:_KEYS]))}."
    if isinstance(value, list | tuple):
        return f"There are items 0 to {len(value) - 1}." if value else "There is an empty list."
    return "There is a single value."


_INPUT: Schema = {
    "type": "object",
    "properties": {
        "resultId": {"type": "string"},
        "path": {"type": "string", "description": "A part of it: /items/3 or items.3."},
        "query": {"type": "string", "description": "Only items or lines that contain this."},
        "page": {"type": "integer", "minimum": 1},
    },
    "required": ["resultId"],
    "additionalProperties": False,
}
_FIELDS = {"path": "string", "page": "integer", "pages": "integer", "total": "integer", "lines": "integer"}
_OUTPUT: Schema = {
    "type": "object",
    "properties": {
        **{name: {"type": kind} for name, kind in _FIELDS.items()},
        "items": {"type": "array", "items": {}},
        "entries": {"type": "object"},
        "text": {"type": "string"},
        "value": {"type": ["string", "number", "boolean", "null"]},
    },
    "required": ["page", "pages"],
}
SPEC = ToolSpec(
    name=READ_RESULT,
    description="Read on in an answer that was cut, by the resultId that it names.",
    input_schema=_INPUT,
    output_schema=_OUTPUT,
    annotations=Annotations(readonly=True, destructive=False, idempotent=True, open_world=False),
    source=SOURCE,
)
