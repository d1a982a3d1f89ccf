"""Proving that a log is whole: what was altered, cut or put back is found, and what could not be checked is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from toolgrove.store.audit.chain import START, ChainedRecord, Place, read_record
from toolgrove.store.audit.notary import Notary
from toolgrove.store.audit.notices import lost_in


@dataclass(frozen=True, kw_only=True, slots=True)
class Breach:
    """Where a chain of records does not hold: so many records after its beginning; `file` names a copy."""

    number: int
    problem: str
    file: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Break:
    """A marked gap: record `number` goes on after `after`, though the log had once gone on to `lost`."""

    number: int
    after: int
    lost: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What is known about a log: its first and last record, where it fails, and what cannot be known.

    `removed` is the last record that went by retention or with an earlier part of the file; `sealed_from` the first
    that this machine's key sealed, and with it all before.
    """

    first: int | None = None
    last: int | None = None
    removed: int = 0
    sealed_from: int | None = None
    breach: Breach | None = None
    breaks: Sequence[Break] = ()
    unchecked: Sequence[str] = ()

    def with_copy(self, name: str, copy: Proof) -> Proof:
        """This proof, and what a copy of the log adds to it."""
        breach = self.breach
        if breach is None and copy.breach is not None:
            breach = replace(copy.breach, file=name)
        said = [f"{name}: {one}" for one in copy.unchecked if one not in self.unchecked]
        return replace(self, breach=breach, unchecked=(*self.unchecked, *said))


class ChainCheck:
    """Follows a chain from record to record.

    The log goes on from `floor`; without one it is an excerpt, which may begin anywhere. `known` are places that it
    must pass, unless they lie before its beginning.
    """

    def __init__(
        self, notary: Notary | None = None, *, floor: Place | None = None, known: Iterable[Place] = ()
    ) -> None:
        self.breach: Breach | None = None
        self.first: Place | None = None
        self.last: Place | None = None
        self._notary = notary if notary is not None and notary.has_key else None
        self._floor = floor
        self._known: dict[int, set[Place]] = {}
        for place in known:
            self._known.setdefault(place.number, set()).add(place)
        self._count = 0
        self._sealed_from: int | None = None
        self._breaks: list[Break] = []

    def follow(self, line: str) -> ChainedRecord | None:
        """Take the next line: the record in it, or None where the chain does not hold."""
        link = read_record(line)
        problem = "the record was altered" if link is None else self._disorder(link) or self._falsehood(link)
        if link is None or problem is not None:
            self.fail(problem or "")
            return None
        self.first = self.first or link.place
        self.last = link.place
        self._count += 1
        return link

    def fail(self, problem: str, *, back: int = 0) -> None:
        """Note a breach at the record that comes now, or so many before it; the first one counts."""
        self.breach = self.breach or Breach(number=max(0, self._count - back), problem=problem)

    def finish(self, *, is_sealed: bool = False) -> Proof:
        """The proof, after the last line; `is_sealed` where the log is known to have had seals."""
        unchecked = list(self._check_known()) if self.breach is None else []
        if self._notary is None:
            unchecked.append("the seals, since the key of this machine is not here")
        elif self.breach is None and self.last is not None and self._sealed_from is None:
            if is_sealed:
                self.fail("it is not sealed with the key of this machine", back=1)
            else:
                unchecked.append("the seals: no record has one of this key yet; the next start begins with them")
        return Proof(
            first=self.first.number if self.first else None,
            last=self.last.number if self.last else None,
            removed=self._floor.number if self._floor else 0,
            sealed_from=self._sealed_from,
            breach=self.breach,
            breaks=tuple(self._breaks),
            unchecked=tuple(unchecked),
        )

    def _disorder(self, link: ChainedRecord) -> str | None:
        before, lost = self.last or self._floor, lost_in(link.record)
        if before is None:
            return None
        number = link.place.number
        if lost is not None and number == lost.number + 1 and (before == lost or before.number < lost.number):
            self._breaks.append(Break(number=number, after=before.number, lost=lost.number))
        elif link.previous != before.hash or number != before.number + 1:
            return "a record before it is missing or out of order" if self.last else "records before it are missing"
        return None

    def _falsehood(self, link: ChainedRecord) -> str | None:
        body = link.bodies.misfit(link.record)
        if body is not None:
            return f"what it says of the call's {body} was altered"
        if self._known.pop(link.place.number, {link.place}) != {link.place}:
            return "another record stood here"
        if self._notary is not None:
            if self._notary.holds(link.place.hash, link.seal):
                self._sealed_from = self._sealed_from or link.place.number
            elif self._sealed_from is not None:
                return "it is not sealed with the key of this machine"
        return None

    def _check_known(self) -> Iterator[str]:
        """What became of the known places that were not passed."""
        start = self._floor or self.first or START
        end = self.last or start
        for place in sorted(place for places in self._known.values() for place in places if place.number):
            if place.number > end.number:
                self.fail(f"records after it are missing: there was a record {place.number}", back=1)
            elif place.number > start.number:
                self.fail(f"record {place.number} was lost when the log was put back to an older state", back=1)
            elif place == start:
                continue
            elif place.number == start.number:
                self.fail("records before it are not those that stood there")
            else:
                yield f"the anchor at record {place.number}, which is no longer kept"


def verify(lines: Iterable[str]) -> Breach | None:
    """The first place where an excerpt of a log was altered, cut in the middle or reordered; None if it is whole."""
    check = ChainCheck()
    for line in lines:
        if check.follow(line) is None:
            break
    return check.breach
