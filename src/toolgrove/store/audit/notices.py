"""What a log says about itself: a lost end, another key, the part that a file goes on from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from toolgrove.notation.json_value import compact
from toolgrove.store.audit.chain import Place
from toolgrove.store.audit.record import AuditRecord

BROKEN = "audit.broken"
SEALED = "audit.sealed"
_HEADING = "goesOnFrom"


def broken(timestamp: str, *, lost: Place) -> Mapping[str, Any]:
    """The record of a log that was found to end before `lost`, where it had stood: its number is the next after it."""
    return {**_notice(timestamp, BROKEN), "lost": _as_json(lost)}


def newly_sealed(timestamp: str) -> Mapping[str, Any]:
    """The first record under a key: those before it have no seal, or one of another key."""
    return _notice(timestamp, SEALED)


def lost_in(record: Mapping[str, Any]) -> Place | None:
    """Where the log had ended before it was cut off, by the record that says so; None in all other records."""
    return _place(record.get("lost")) if record.get("operation") == BROKEN else None


def heading(place: Place, sign: Callable[[str], str]) -> str:
    """The first line of a file that goes on from an earlier one."""
    return compact({_HEADING: _as_json(place), "seal": sign(heading_text(place))}, ascii=True)


def read_heading(line: str) -> tuple[Place, str] | None:
    """The place that such a line names, and its seal; None for any other line."""
    if not line.startswith(f'{{"{_HEADING}":'):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    place = _place(found[_HEADING])
    return None if place is None else (place, str(found.get("seal", "")))


def heading_text(place: Place) -> str:
    """What the seal of a heading is made of."""
    return f"part {place}"


def _notice(timestamp: str, operation: str) -> dict[str, Any]:
    return AuditRecord(timestamp, "", "", "", operation, "success", kind="audit").to_json()


def _as_json(place: Place) -> dict[str, Any]:
    return {"number": place.number, "hash": place.hash}


def _place(value: Any) -> Place | None:
    if isinstance(value, dict) and isinstance(value.get("number"), int) and isinstance(value.get("hash"), str):
        return Place(value["number"], value["hash"])
    return None
