"""What a log says about itself: a lost end, another key, the part that a file goes on from, its signed end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from toolgrove.notation.json_value import compact
from toolgrove.store.audit.chain import Place
from toolgrove.store.audit.record import AuditRecord

BROKEN = "audit.broken"
SEALED = "audit.sealed"
_HEADING = "goesOnFrom"
_ENDING = "signedTo"
_NAMING = "publicKey"


def broken(timestamp: str, *, lost: Place, ends: Iterable[Place], public: str = "") -> Mapping[str, Any]:
    """The record of a log that was found to end before `lost`, where it had stood: its number is the next after it.

    `ends` are the places at which copies of the log end that it goes on in. With a `public` key it is the first record
    under that as well.
    """
    facts = {"lost": _as_json(lost), "ends": [_as_json(end) for end in ends]}
    return {**_notice(timestamp, BROKEN), **facts, **({"details": {"key": public}} if public else {})}


def newly_sealed(timestamp: str, public: str) -> Mapping[str, Any]:
    """The first record under a key: those before it have no seal, one of another key, or one of before."""
    return {**_notice(timestamp, SEALED), "details": {"key": public}}


def is_newly_sealed(record: Mapping[str, Any]) -> bool:
    """Whether a record is the first under a key; it does not vouch for those before it."""
    if record.get("kind") != "audit":
        return False
    return record.get("operation") == SEALED or (record.get("operation") == BROKEN and "details" in record)


def lost_in(record: Mapping[str, Any]) -> Place | None:
    """Where the log had ended before it was cut off, by the record that says so; None in all other records."""
    return _place(record.get("lost")) if record.get("operation") == BROKEN else None


def ends_in(record: Mapping[str, Any]) -> list[Place] | None:
    """The ends of the copies that a record of a lost end names; None in one of before, which named none."""
    ends = record.get("ends")
    return [place for place in map(_place, ends) if place is not None] if isinstance(ends, list) else None


class SealedPlace(NamedTuple):
    """What a line says that is no record: a place, the seal of that, and the text that the seal is made of."""

    place: Place
    seal: str
    text: str


def heading(place: Place, sign: Callable[[str], str]) -> str:
    """The first line of a file that goes on from an earlier one."""
    return _line(_HEADING, place, sign(_part(place)))


def ending(place: Place, sign: Callable[[str], str]) -> str:
    """A line behind a record, which signs it and all before; nothing where there is no key."""
    mark = sign(_end(place))
    return _line(_ENDING, place, mark) if mark else ""


def naming(public: str) -> str:
    """A line of an export that names the public half of the key; it proves nothing, and only says which to ask for."""
    return compact({_NAMING: public}, ascii=True)


def read_heading(line: str) -> SealedPlace | None:
    """What such a line says; None for any other, also for one that was altered."""
    found = _read(line, _HEADING)
    return None if found is None else SealedPlace(*found, _part(found[0]))


def read_ending(line: str) -> SealedPlace | None:
    """The same for a line that signs the record before it."""
    found = _read(line, _ENDING)
    return None if found is None else SealedPlace(*found, _end(found[0]))


def read_naming(line: str) -> str | None:
    """The public half of a key that such a line names; None for any other."""
    line = line.rstrip("\n")
    public = line.removeprefix(f'{{"{_NAMING}":"').removesuffix('"}')
    return public if line == naming(public) else None


def _part(place: Place) -> str:
    return f"part {place}"


def _end(place: Place) -> str:
    return f"end {place}"


def _line(name: str, place: Place, mark: str) -> str:
    return compact({name: _as_json(place), "seal": mark}, ascii=True)


def _read(line: str, name: str) -> tuple[Place, str] | None:
    line = line.rstrip("\n")
    if not line.startswith(f'{{"{name}":'):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    place, mark = _place(found[name]), str(found.get("seal", ""))
    # To the letter: of two values under one name, say, readers take the last.
    return (place, mark) if place is not None and _line(name, place, mark) == line else None


def _notice(timestamp: str, operation: str) -> dict[str, Any]:
    return AuditRecord(timestamp, "", "", "", operation, "success", kind="audit").to_json()


def _as_json(place: Place) -> dict[str, Any]:
    return {"number": place.number, "hash": place.hash}


def _place(value: Any) -> Place | None:
    if isinstance(value, dict) and isinstance(value.get("number"), int) and isinstance(value.get("hash"), str):
        return Place(value["number"], value["hash"])
    return None
