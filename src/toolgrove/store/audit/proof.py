"""Proving that a log is whole: what was altered, cut or put back is found, and what is not proved is told.

There are three verdicts. A log is broken where its chain does not hold, or a seal in it is false. It is proved where it
holds, and seals of the key at hand cover all of it. Else it is not proved: who has no key can only say that the records
fit together, which anybody can bring about. A public key that stands in the log or in its store counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from toolgrove.store.audit.chain import START, ChainedRecord, Place, read_record, sealed_text
from toolgrove.store.audit.notices import ends_in, is_newly_sealed, lost_in, read_ending, read_naming
from toolgrove.store.audit.signing import PublicKeys


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
class Difference:
    """What does not fit a replay of the journal: a node, a change, an entry, a replica or the store, and why."""

    what: str
    name: str
    problem: str


class Served(NamedTuple):
    """What a process says of the tree that it serves: at which version, and its digest; none where it serves nothing
    because it left the stored history."""

    name: str
    version: str
    digest: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeProof:
    """What a replay of so many changes says of the stored tree, and of those that processes serve.

    `is_proved` where all was looked at that is kept. `is_moving` where a process serves what is not stored, which may
    be on its way.
    """

    changes: int = 0
    served: int = 0
    is_proved: bool = False
    is_moving: bool = False
    differs: Sequence[Difference] = ()
    unchecked: Sequence[str] = ()

    def without(self, silent: Iterable[str]) -> TreeProof:
        """The same, where some replicas did not say what they serve."""
        doubts = [f"replica {name}, which did not say what it serves" for name in silent]
        return replace(self, is_proved=self.is_proved and not doubts, unchecked=(*self.unchecked, *doubts))


NO_TREE = TreeProof(unchecked=("the tree: it is in memory alone, and no journal leads to it",))


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What is known about a log: its first and last record, where it fails, and what cannot be known.

    `removed` is the last record that went by retention or with an earlier part of the file; `sealed_from` is the first
    that seals of the key cover, and `sealed_to` the last. `is_proved` where they cover all of it.
    """

    first: int | None = None
    last: int | None = None
    removed: int = 0
    sealed_from: int | None = None
    sealed_to: int | None = None
    is_proved: bool = False
    breach: Breach | None = None
    breaks: Sequence[Break] = ()
    unchecked: Sequence[str] = ()
    tree: TreeProof | None = None
    """What is known about the tree, where that was looked at as well."""

    @property
    def whole(self) -> bool | None:
        """Whether it is as it was written; None where nobody can tell."""
        if self.breach is not None or (self.tree is not None and self.tree.differs):
            return False
        return True if self.is_proved and (self.tree is None or self.tree.is_proved) else None

    def with_copy(self, name: str, copy: Proof, *, is_part: bool = False) -> Proof:
        """This proof, and what a copy of the log adds; one that is a part of it holds what the log has no more."""
        breach = self.breach
        if breach is None and copy.breach is not None:
            breach = replace(copy.breach, file=name)
        said = [f"{name}: {one}" for one in copy.unchecked if one not in self.unchecked]
        is_proved = self.is_proved and (copy.is_proved or not is_part)
        return replace(self, breach=breach, is_proved=is_proved, unchecked=(*self.unchecked, *said))


class Seals(Protocol):
    """What seals are checked with: the project's key, which checks all of its own, or the public half of it."""

    @property
    def has_key(self) -> bool:
        """Whether there is a key at all."""
        ...

    def can_check(self, seal: str) -> bool:
        """Whether it is a kind of seal that can be checked at all."""
        ...

    def holds(self, text: str, seal: str) -> bool:
        """Whether it is a seal of this key for this text."""
        ...


class ChainCheck:
    """Follows a chain from record to record.

    The log goes on from `floor`; without one it is an excerpt, which may begin anywhere. `known` are places that it
    must pass, unless they lie before its beginning; `vouched` are some that a seal elsewhere vouches for.

    A seal covers its record and all before that have none, since each record holds the hash of the one before. But a
    record that says that a key is new covers nothing before it: that may have been anybody's.
    """

    def __init__(
        self,
        seals: Seals | None = None,
        *,
        floor: Place | None = None,
        known: Iterable[Place] = (),
        vouched: Iterable[Place] = (),
    ) -> None:
        self.breach: Breach | None = None
        self.first: Place | None = None
        self.last: Place | None = None
        self._seals = seals if seals is not None and seals.has_key else None
        self._floor = floor
        self._vouched = set(vouched)
        self._known: dict[int, set[Place]] = {}
        for place in (*known, *self._vouched):
            self._known.setdefault(place.number, set()).add(place)
        self._count = 0
        self._sealed_from: int | None = None
        self._sealed_to: int | None = None
        self._pending: int | None = None
        """The first of the latest records, none of which has a seal."""
        self._strange: int | None = None
        """The first of the latest records whose seals cannot be checked, or are of another key."""
        self._ended: Place | None = None
        self._breaks: list[Break] = []
        self._doubts: list[str] = []

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
        if link.place in self._vouched:
            self._pending = self._strange = None
        return link

    def take(self, line: str) -> bool:
        """Take the next line of a file, which may be one that signs the record before it; whether the chain holds."""
        end = read_ending(line)
        if (named := read_naming(line)) is not None:
            if isinstance(self._seals, PublicKeys) and named not in self._seals.texts:
                self.doubt("that this is the key: the log names another")
            return True
        if end is None:
            return self.follow(line) is not None
        if end.place != self.last or end.place == self._ended:
            self.fail("the line behind it that signs it is not where it was", back=1)
            return False
        self._ended = end.place
        if self._strange is not None and self._pending is None:  # the seal of the record itself tells nothing
            return True
        problem = self._weigh(end.place.number, end.text, end.seal, is_new_key=False)
        if problem is not None:
            self.fail(problem, back=1)
        return problem is None

    def fail(self, problem: str, *, back: int = 0) -> None:
        """Note a breach at the record that comes now, or so many before it; the first one counts."""
        self.breach = self.breach or Breach(number=max(0, self._count - back), problem=problem)

    def doubt(self, what: str) -> None:
        """Note that something is not proved."""
        self._doubts.append(what)

    def finish(self, *, is_sealed: bool = False) -> Proof:
        """The proof, after the last line; `is_sealed` where the log is known to have had seals."""
        unchecked = list(self._check_known()) if self.breach is None else []
        if self._seals is None:
            unchecked.append("the seals, since the key of this machine is not here")
        elif self.breach is None:
            self._end(is_sealed=is_sealed)
        return Proof(
            first=self.first.number if self.first else None,
            last=self.last.number if self.last else None,
            removed=self._floor.number if self._floor else 0,
            sealed_from=self._sealed_from,
            sealed_to=self._sealed_to,
            is_proved=self._seals is not None and self.breach is None and not self._doubts,
            breach=self.breach,
            breaks=tuple(self._breaks),
            unchecked=(*unchecked, *self._doubts),
        )

    def _end(self, *, is_sealed: bool) -> None:
        """What becomes of the last records."""
        if self.last is None:
            if not self._vouched:
                self.doubt("anything: there is no record")
        elif self._sealed_from is None and self.last not in self._vouched:
            if is_sealed:
                self.fail("it is not sealed with this key", back=1)
            elif isinstance(self._seals, PublicKeys):
                self.doubt("the seals: no record has one that this key can check")
            else:
                self.doubt("the seals: no record has one of this key yet; the next start begins with them")
        else:
            self._leave(self._strange or self._pending, self.last.number)

    def _leave(self, first: int | None, last: int) -> None:
        """Note records that no seal covers, if there are any."""
        if first is not None and first <= last:
            which = f"records {first} to {last}" if first < last else f"record {first}"
            self.doubt(f"{which}, which no seal of this key covers")

    def _disorder(self, link: ChainedRecord) -> str | None:
        before, lost = self.last or self._floor, lost_in(link.record)
        if before is None:
            return None
        number = link.place.number
        if lost is not None and number == lost.number + 1 and _goes_on(link, before, lost):
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
        if not link.seal:
            self._pending = self._pending or link.place.number
            return None
        text = sealed_text(link.place.hash, link.seal)
        return self._weigh(link.place.number, text, link.seal, is_new_key=is_newly_sealed(link.record))

    def _weigh(self, number: int, text: str, seal: str, *, is_new_key: bool) -> str | None:
        """What a seal means for its record and those before; a problem where it is false."""
        if self._seals is None:
            return None
        if not self._seals.can_check(seal) or not self._seals.holds(text, seal):
            if self._sealed_from is not None and self._seals.can_check(seal):
                return "it is not sealed with this key"
            self._strange, self._pending = self._strange or self._pending or number, None
            return None
        first = number if is_new_key or self._pending is None else self._pending
        before = 0 if self.last is None else min(self.last.number, first - 1)
        self._leave(self._strange or (self._pending if is_new_key else None), before)
        self._sealed_from = self._sealed_from or first
        self._sealed_to, self._strange, self._pending = number, None, None
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


def _goes_on(link: ChainedRecord, before: Place, lost: Place) -> bool:
    """Whether the record of a lost end stands behind one that it names, by its hash."""
    ends = ends_in(link.record)
    if before == lost or link.previous == before.hash:
        return before.number <= lost.number
    return before.number < lost.number if ends is None else before in ends


def verify(lines: Iterable[str]) -> Breach | None:
    """The first place where an excerpt of a log was altered, cut in the middle or reordered; None if it is whole."""
    check = ChainCheck()
    for line in lines:
        if not check.take(line):
            break
    return check.breach
