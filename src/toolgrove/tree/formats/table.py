"""CSV: one row for each node, with its properties and tags. Nothing in a cell is ever a formula."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from toolgrove.notation import strict_json
from toolgrove.notation.half_characters import PROBLEM
from toolgrove.notation.json_value import compact
from toolgrove.tree.formats.fitting import Shown, cut_note, in_order, is_cut_note
from toolgrove.tree.formats.lines import refuse
from toolgrove.tree.node import Node
from toolgrove.tree.render import Cut

COLUMNS = ("nodeId", "parentId", "payloadType", "tags")
_CELL = re.compile(r'"([^"]*(?:""[^"]*)*)"(,|\r\n|\n|\r|$)|([^",\r\n]*)(,|\r\n|\n|\r|$)')
_RISKY = ("'", "=", "+", "-", "@", "\t", "\r", "#", '"', "[", "{")


def line(node: Node, depth: int, *, short: bool = False) -> str:
    """A node's row, with what its properties are called."""
    return ",".join([*_place(node, None), *(_quoted(f"{key}{_cell(value)}") for key, value in node.payload.items())])


def write(root: Node, shown: Shown, cut: Cut) -> str:
    nodes = [node for node, _ in in_order(root, shown)]
    bare = cut.payloads > 0
    keys = list(dict.fromkeys(key for node in nodes for key in (() if bare and node is root else node.payload)))
    rows = [",".join(_quoted(name) for name in (*COLUMNS, *map(_heading, keys)))]
    for node in nodes:
        payload = {} if bare and node is root else node.payload
        cells = [_quoted(_cell(payload[key])) if key in payload else "" for key in keys]
        rows.append(",".join([*_place(node, root), *cells]))
    note = cut_note(cut)
    return "\r\n".join([*rows, *([f"# {note}"] if note else []), ""])


def read(text: str, payload_type: str | None) -> dict[str, Any]:
    """The rows as a flat document; `payload_type` is that of rows which do not say theirs."""
    rows = _rows(text.removeprefix("\ufeff"))
    header = next(rows, None)
    if header is None:
        refuse(
            "csv", 1, "is missing: the first row names the columns (nodeId, parentId, payloadType, tags, properties)"
        )
    names = [name if name in COLUMNS else _text(name) for name in header[1]]
    structural = [name in COLUMNS for name in header[1]]
    if len(set(zip(names, structural, strict=True))) < len(names):
        refuse("csv", 1, "has a column twice")
    items: list[dict[str, Any]] = []
    is_cut = False
    for number, cells in rows:
        if len(cells) == 1 and cells[0].startswith("#") and is_cut_note(cells[0].removeprefix("#")):
            is_cut = True
            continue
        if len(cells) > len(names):
            refuse("csv", number, f"has {len(cells)} cells for {len(names)} columns")
        if any(cells):
            items.append(_item(cells, names, structural, payload_type, number))
    return {"items": items, **({"cut": {}} if is_cut else {})}


def _item(
    cells: Sequence[str], names: Sequence[str], structural: Sequence[bool], payload_type: str | None, number: int
) -> dict[str, Any]:
    item: dict[str, Any] = {"payload": {}}
    for cell, name, is_structural in zip(cells, names, structural, strict=False):
        if cell == "":
            continue
        if not is_structural:
            item["payload"][name] = _value(cell, number)
        elif name == "tags":
            item["tags"] = _tags(cell, number)
        else:
            item[name] = _text(cell)
    if "payloadType" not in item:
        if payload_type is None:
            refuse("csv", number, "has no payloadType; give a column or the argument payloadType")
        item["payloadType"] = payload_type
    return item


def _place(node: Node, root: Node | None) -> list[str]:
    above = "" if node is root or node.parent is None else node.parent.id
    tags = compact(sorted(node.tags)) if node.tags else ""
    return [_quoted(_plain(node.id)), _quoted(_plain(above)), _quoted(_plain(node.type)), _quoted(tags)]


def _heading(key: str) -> str:
    return f"'{key}" if key in COLUMNS else _plain(key) or "'"


def _cell(value: Any) -> str:
    """A text as it is, unless it could be taken for something else; any other value as JSON."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if value == "" or _is_json(value) else _plain(value)


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(_RISKY) or text != text.strip() else text


def _text(cell: str) -> str:
    return cell.removeprefix("'")


def _value(cell: str, number: int) -> Any:
    """What a cell holds: JSON where it is, else a text."""
    if cell.startswith("'"):
        return cell[1:]
    try:
        return strict_json.decode(cell) if _is_json(cell) else cell
    except strict_json.HalfCharacter:
        _refuse_half(number)
    except ValueError:
        return cell


def _is_json(text: str) -> bool:
    if text.strip() != text or not text or text[0] not in '-0123456789tfn"[{NI':
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _tags(cell: str, number: int) -> list[str]:
    if not cell.startswith("["):
        return [tag.strip() for tag in _text(cell).split(";") if tag.strip()]
    try:
        tags = strict_json.decode(cell)
    except strict_json.HalfCharacter:
        _refuse_half(number)
    except ValueError:
        tags = None
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        refuse("csv", number, 'has tags that are not a list: write ["a","b"] or a; b')
    return tags


def _refuse_half(number: int) -> NoReturn:
    refuse("csv", number, f"{PROBLEM}; send well-formed text")


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\r\n') else cell


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows with the numbers of their first lines."""
    at, number, first, cells = 0, 1, 1, list[str]()
    while at < len(text):
        found = _CELL.match(text, at)
        if found is None:
            refuse("csv", number, "has a quote that is never closed, or text after a closing quote")
        inside, end = (found[1].replace('""', '"'), found[2]) if found[1] is not None else (found[3], found[4])
        cells.append(inside)
        at = found.end()
        number += len(re.findall(r"\r\n|\n|\r", found[0]))
        if end != ",":
            yield first, cells
            first, cells = number, []
        elif at == len(text):
            yield first, [*cells, ""]
