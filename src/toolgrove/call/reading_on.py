"""`read_result`: reads on in a result that was cut, by path, by words or page by page.

The pages of a value, of a part of it or of what was found in it, are all of that, to the last character, and each fits
into an answer. What does not fit into one page has pages of its own, with the `path` to it: a long text goes on `at`
a character, a list `at` an item. So whoever reads from page 1 to the last, by `nextPage`, has read the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import anyio.to_thread

from toolgrove.call.kept_results import KeptResults
from toolgrove.call.shortening import PER_TOKEN
from toolgrove.errors import NotFound
from toolgrove.giving_way import giving_way
from toolgrove.notation.json_value import compact, text_size, texts
from toolgrove.types import READ_RESULT, Annotations, Call, Result, Schema, Tool, ToolSpec

SOURCE = "results"
_LARGE = 256 * 1024
_HEAD = 40
"""Tokens that an answer has beside what it shows."""
_KEYS = 20
_AROUND = 22
"""Characters around an item that was found: its index and the names of both."""
_LEAST = 40
"""Characters that a page shows at least, however little an answer may have."""
Entry = tuple[Any, Any]


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
    room = max(most - _HEAD, 1) * PER_TOKEN
    pages = list(_pages(value, "/".join(["", *map(_escaped, _keys(path))]), asked.get("query", "").casefold(), room))
    pages = pages or [_nothing(value)]
    wanted = asked.get("page", 1)
    if wanted > len(pages):
        raise NotFound(f"There are {len(pages)} pages here; ask for one of them.", pages=len(pages))
    after = {"nextPage": wanted + 1} if wanted < len(pages) else {}
    return {"page": wanted, "pages": len(pages), **after, **pages[wanted - 1]}


def _pages(value: Any, path: str, query: str, room: int) -> Iterator[Result]:
    """All of a value in pages that fit, or all of it that contains the words, each with the path to what it shows.

    Put together they are the value, to the last character: what does not fit into a page has pages of its own.
    """
    head: Result = {"path": path} if path else {}
    room = max(room - len(path), _LEAST)
    if isinstance(value, str):
        text, lines = _found_lines(value, query)
        for at, piece in _pieces(text, room):
            yield {**head, "lines": lines, **({"at": at} if at else {}), "text": piece}
        if not text and not query:
            yield {**head, "lines": 0, "text": ""}
    elif isinstance(value, list | tuple):
        items = [(at, one) for at, one in enumerate(value) if _has(one, query)]
        for group in _groups(items, room):
            if isinstance(group, tuple):
                yield from _pages(group[1], f"{path}/{group[0]}", query, room)
            elif query:
                yield {**head, "total": len(items), "items": [{"index": at, "value": one} for at, one in group]}
            else:
                first = group[0][0]
                yield {
                    **head,
                    "total": len(items),
                    **({"at": first} if first else {}),
                    "items": [one for _, one in group],
                }
    elif isinstance(value, dict):
        entries = [(key, one) for key, one in value.items() if query in str(key).casefold() or _has(one, query)]
        for group in _groups(entries, room):
            if isinstance(group, tuple):
                key, one = group
                within = "" if query in str(key).casefold() else query
                yield from _pages(one, f"{path}/{_escaped(str(key))}", within, room)
            else:
                yield {**head, "total": len(entries), "entries": dict(group)}
    else:
        yield {**head, "value": value}
    if isinstance(value, list | tuple | dict) and not value:
        yield {**head, **_nothing(value)}


def _nothing(value: Any) -> Result:
    """A page of a value that is empty, or in which nothing was found."""
    if isinstance(value, str):
        return {"lines": 0, "text": ""}
    return {"total": 0, "entries": {}} if isinstance(value, dict) else {"total": 0, "items": []}


def _has(value: Any, query: str) -> bool:
    return not query or query in compact(value).casefold() or any(query in text.casefold() for _, text in texts(value))


def _found_lines(text: str, query: str) -> tuple[str, int]:
    """The text, or its lines that contain the words, each with its number; and how many lines those are."""
    lines = text.split("\n")
    if not query:
        return text, len(lines) - (not lines[-1])
    found = [f"{at}: {line}" for at, line in enumerate(lines, 1) if query in line.casefold()]
    return "\n".join(found), len(found)


def _pieces(text: str, room: int) -> Iterator[tuple[int, str]]:
    """A text in pieces that fit, each with its place; a piece ends with a line where one ends in it."""
    at = 0
    while at < len(text):
        length = room
        while (size := len(compact(text[at : at + length]))) > room and length > 1:
            length = max(min(length * room // size, length - 1), 1)
        end = at + length
        if end < len(text):
            end = text.rfind("\n", at, end) + 1 or end
        yield at, text[at:end]
        at = end


def _groups(entries: Sequence[Entry], room: int) -> Iterator[list[Entry] | Entry]:
    """The entries in groups that fit; one that is too large by itself stands alone, outside of any group."""
    group: list[Entry] = []
    used = 0
    for entry in entries:
        length = len(compact(entry[1]))
        needs = length + len(compact(str(entry[0]))) + _AROUND
        is_large = length + _AROUND > room and isinstance(entry[1], str | list | tuple | dict)
        if group and (is_large or used + needs > room):
            yield group
            group, used = [], 0
        if is_large:
            yield entry
            continue
        group.append(entry)
        used += needs
    if group:
        yield group


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


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
_NUMBERS = ("page", "pages", "nextPage", "at", "total", "lines")
_OUTPUT: Schema = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        **{name: {"type": "integer"} for name in _NUMBERS},
        "items": {"type": "array", "items": {}},
        "entries": {"type": "object"},
        "text": {"type": "string"},
        "value": {"type": ["string", "number", "boolean", "null"]},
    },
    "required": ["page", "pages"],
}
SPEC = ToolSpec(
    name=READ_RESULT,
    description="Read on in an answer that was cut, by the resultId that it names: page 1 to the last are all of it.",
    input_schema=_INPUT,
    output_schema=_OUTPUT,
    annotations=Annotations(readonly=True, destructive=False, idempotent=True, open_world=False),
    source=SOURCE,
)
