"""The chain: each record is bound to the one before it by that one's hash; where there is a key, some are signed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from toolgrove.notation.json_value import compact_ascii
from toolgrove.store.audit.bodies import NO_BODIES, Bodies, parted
from toolgrove.store.audit.signing import SIGNATURE

GENESIS = "0" * 64


class Place(NamedTuple):
    """A place in the chain: a record's number and hash. Kept elsewhere it is an anchor."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    @classmethod
    def read(cls, text: str) -> Place:
        """The place that a text names; raises ValueError where it names none."""
        number, _, digest = text.strip().partition(":")
        if not number.isdecimal() or len(digest) != len(GENESIS) or not digest.isalnum():
            raise ValueError(f"{text.strip()[:100]!r} is not an anchor as 'toolgrove audit anchor' prints it")
        return cls(int(number), digest)


START = Place(0, GENESIS)


class Sealed(NamedTuple):
    """A record in its place in the chain; `line` is its exact text, and `bodies` stand beside it."""

    line: str
    hash: str
    bodies: Bodies = NO_BODIES

    @property
    def is_signed(self) -> bool:
        """Whether it has a seal of its own."""
        return not self.line.endswith(f'"hash":"{self.hash}"}}')

    @property
    def text(self) -> str:
        """The line with the bodies in it."""
        return self.bodies.beside(self.line)


class ChainedRecord(NamedTuple):
    """A record as it was read back, whose hash fits its text; the bodies beside it are not looked at yet."""

    record: Mapping[str, Any]
    place: Place
    previous: str
    seal: str
    bodies: Bodies


def chained(record: Mapping[str, Any], after: Place, bodies: Bodies = NO_BODIES) -> Sealed:
    """Bind a record to the one before it."""
    facts = compact_ascii(record)[1:-1]
    bound = f'{{"number":{after.number + 1},{facts},"previous":"{after.hash}"'
    digest = sha256(f"{bound}}}".encode()).hexdigest()
    return Sealed(f'{bound},"hash":"{digest}"}}', digest, bodies)


def signed(sealed: Sealed, sign: Callable[[str], str]) -> Sealed:
    """The same record with a signature, which covers all before it as well."""
    mark = sign(f"record {sealed.hash}")
    return sealed._replace(line=f'{sealed.line[:-1]},"seal":"{mark}"}}') if mark else sealed


def sealed_text(digest: str, mark: str) -> str:
    """What the seal of a record with this hash is made of; seals of before were made of the hash alone."""
    return f"record {digest}" if len(mark) == SIGNATURE else digest


def is_signed_by(link: ChainedRecord, holds: Callable[[str, str], bool]) -> bool:
    """Whether a record has a signature, and that holds."""
    return len(link.seal) == SIGNATURE and holds(sealed_text(link.place.hash, link.seal), link.seal)


def unsigned(text: str) -> str:
    """Signs nothing: the seals of a chain without a key."""
    return ""


def number_of(line: str) -> int:
    """The number in the line of a record."""
    return int(line[len('{"number":') : line.index(",")])


def hash_of(line: str) -> str:
    """The hash in the line of a record, the bodies aside."""
    return line.rpartition(',"hash":"')[2][: len(GENESIS)]


def read_record(text: str) -> ChainedRecord | None:
    """The record of a line; None where the text is no record, or another than was written."""
    line, bodies = parted(text)
    try:
        record = json.loads(line)
        number, previous, digest = record["number"], record["previous"], record["hash"]
    except (ValueError, TypeError, KeyError):
        return None
    bound, _, rest = line.partition(f',"hash":"{digest}"')
    mark = str(record.get("seal", ""))
    # Nothing may follow the hash but the seal: of two values under one name, readers take the last.
    if rest != (f',"seal":"{mark}"}}' if mark else "}") or type(number) is not int:
        return None
    if sha256(f"{bound}}}".encode()).hexdigest() != digest:
        return None
    return ChainedRecord(record, Place(number, digest), previous, mark, bodies)
