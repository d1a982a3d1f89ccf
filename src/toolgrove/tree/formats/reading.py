"""Texts as nodes to merge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from toolgrove.errors import BatchTooLarge, InvalidArgument
from toolgrove.notation.half_characters import PROBLEM, has_half
from toolgrove.tree.document import MAX_TEXT, Incoming, read
from toolgrove.tree.formats import markdown, opml, table
from toolgrove.tree.formats.lines import MAX_DEPTH, Line, refuse


def read_text(text: str, form: str, *, payload_type: str | None, limit: int) -> list[Incoming]:
    """The nodes of a text, parents before children; names and nesting alone, unless it is a table."""
    if len(text) > MAX_TEXT:
        raise BatchTooLarge(argument="text", count=len(text), limit=MAX_TEXT, hint="Split the text.")
    if form == "csv":
        document = table.read(text, payload_type)
        if not document["items"]:
            refuse("csv", 2, "is missing: there is no row below the names of the columns")
        return read(document, limit=limit)
    if payload_type is None:
        raise InvalidArgument(
            f"A {form} text does not say what its nodes are: give payloadType, such as Task.", reason="document"
        )
    return _incoming(markdown.read(text) if form == "markdown" else opml.read(text), form, payload_type, limit)


def _incoming(lines: Iterable[Line], form: str, payload_type: str, limit: int) -> list[Incoming]:
    found: list[Incoming] = []
    above: list[int] = []
    is_cut = False
    for one in lines:
        if one.is_cut:
            is_cut = True
            continue
        if one.name is not None and has_half(one.name):  # as an escape makes it
            refuse(form, one.number, f"{PROBLEM}; send well-formed text")
        if one.depth > MAX_DEPTH:
            refuse(form, one.number, f"is more than {MAX_DEPTH} levels deep")
        if len(found) == limit:
            raise BatchTooLarge(argument="text", count=limit + 1, limit=limit, hint="Split the text.")
        del above[one.depth :]
        found.append(
            Incoming(
                node_id=None,
                parent=above[-1] if above else None,
                parent_id=None,
                type=payload_type,
                payload={"name": one.name or ""},
                tags=None,
                group=None,
                is_cut=False,
                names_only=True,
            )
        )
        above.append(len(found) - 1)
    if not found:
        raise InvalidArgument(f"The {form} text has no node in it.", reason="document")
    found[0] = replace(found[0], is_cut=is_cut)
    return found
