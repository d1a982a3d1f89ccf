"""`tools/list` as bytes: written once per table and era, in slices, and kept until the table is another."""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from mcp_serve import sdk
from mcp_serve.table import Json, ToolEntry, ToolTable
from mcp_serve.wire import LISTED, Writer, encoded

SLICE = 0.005
"""Seconds of work after which others have their turn."""


class Page(NamedTuple):
    """Some of the tools in a row, and where the next ones begin, if there are any."""

    entries: Sequence[ToolEntry]
    next_cursor: str | None


class _Kept(NamedTuple):
    entries: list[ToolEntry]
    size: int | None
    pages: "dict[str | None, asyncio.Task[bytes]]"


class Listing:
    """The tools of a table, all at once or, with a `size`, so many at a time; a cursor is the last name before it."""

    def __init__(self, tools: ToolTable, writer: Writer, size: int | None = None) -> None:
        self._tools = tools
        self._writer = writer
        self.size = size
        self._kept: dict[bool, _Kept] = {}

    def page(self, cursor: str | None) -> Page | None:
        """The tools behind a cursor; None where there is no such place in the list any more."""
        return self._cut(list(self._tools.entries().values()), cursor)

    def result(self, cursor: str | None, *, modern: bool) -> "asyncio.Task[bytes] | None":
        """The result that lists them; None where there is no such place in the list."""
        entries = list(self._tools.entries().values())
        kept = self._kept.get(modern)
        if kept is None or kept.entries != entries or kept.size != self.size:
            kept = self._kept[modern] = _Kept(entries, self.size, {})
        if cursor not in kept.pages or _is_lost(kept.pages[cursor]):
            page = self._cut(entries, cursor)
            if page is None:
                return None
            kept.pages[cursor] = asyncio.ensure_future(self._written(page, modern=modern))
        return kept.pages[cursor]

    def _cut(self, entries: list[ToolEntry], cursor: str | None) -> Page | None:
        start = 0
        if cursor is not None:
            start = next((at for at, entry in enumerate(entries, 1) if entry.tool.name == cursor), 0)
            if not start or not self.size:
                return None
        end = len(entries) if not self.size else start + self.size
        chosen = entries[start:end]
        return Page(chosen, chosen[-1].tool.name if chosen and end < len(entries) else None)

    async def _written(self, page: Page, *, modern: bool) -> bytes:
        texts, since = [], time.perf_counter()
        for entry in page.entries:
            texts.append(encoded(definition(entry, modern=modern), modern=modern))
            if time.perf_counter() - since > SLICE:
                await asyncio.sleep(0)
                since = time.perf_counter()
        around = {**LISTED[modern], "nextCursor": page.next_cursor}
        if page.next_cursor is None:
            del around["nextCursor"]
        if modern:
            around = self._writer.stamped(around)
        before, _, after = encoded(around, modern=modern).partition(b'"tools":[]')
        return b'%b"tools":[%b]%b' % (before, b",".join(texts), after)


def definition(entry: ToolEntry, *, modern: bool) -> Json:
    """A tool as a client of this era is shown it; an older one takes no output schema but that of an object."""
    wire = entry.wire if modern else entry.legacy_wire
    if wire is None:
        shown: Json = sdk.forms().definition_of(entry.tool, modern=modern)
        return shown
    return wire


def _is_lost(writing: "asyncio.Task[bytes]") -> bool:
    """Whether it will never be written: its loop ended first, or it failed, which the next one may not."""
    if not writing.done():
        return writing.get_loop().is_closed()
    return writing.cancelled() or writing.exception() is not None
