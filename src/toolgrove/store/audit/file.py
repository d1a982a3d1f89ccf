"""The audit log in a file of JSON Lines, read while another process may write it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import anyio.to_thread

from toolgrove.store.audit.chain import START, Place
from toolgrove.store.audit.log import AuditPage, AuditQuery
from toolgrove.store.audit.notary import Notary
from toolgrove.store.audit.notices import read_heading
from toolgrove.store.audit.proof import ChainCheck, Proof
from toolgrove.store.audit.signing import PublicKeys

_ASKED = {"number": int, "timestamp": str, "agent": str, "operation": str, "outcome": str}


class AuditFile:
    """The records in a file; a line that is not one is passed over, and found by `verify`."""

    def __init__(self, path: Path, seals: Notary | PublicKeys | None = None) -> None:
        self._path = path
        self._seals = seals

    async def records(self, query: AuditQuery) -> AuditPage:
        """A page of the records."""
        return await anyio.to_thread.run_sync(self._page, query)

    async def verify(self, anchors: Iterable[Place] = ()) -> Proof:
        """Whether the file was altered, cut or reordered."""
        noted = self._seals.noted() if isinstance(self._seals, Notary) else None
        ends = [] if noted is None else [noted]
        return await anyio.to_thread.run_sync(lambda: self.prove(anchors, vouched=ends, is_sealed=noted is not None))

    def prove(self, known: Iterable[Place], *, vouched: Iterable[Place] = (), is_sealed: bool) -> Proof:
        """The same, against places that the file is known to have passed; a seal elsewhere vouches for some of them."""
        lines = self._lines()
        first = next(lines, "")
        part = read_heading(first)
        if part is None:
            lines = chain([first] if first else [], lines)
        check = ChainCheck(self._seals, floor=part.place if part else START, known=known, vouched=vouched)
        key = self._seals if self._seals is not None and self._seals.has_key else None
        if part is not None and key is not None and not (key.can_check(part.seal) and key.holds(part.text, part.seal)):
            if key.can_check(part.seal):
                check.fail("the line before it, which names the part that it goes on from, was altered")
            else:
                check.doubt(f"that it goes on from record {part.place.number}, since this key cannot check that line")
        for line in lines:
            if not check.take(line):
                break
        return check.finish(is_sealed=is_sealed)

    def _page(self, query: AuditQuery) -> AuditPage:
        found = self._wanted(query)
        return AuditPage.of(reversed(deque(found, query.limit + 1)) if query.newest else found, query.limit)

    def _wanted(self, query: AuditQuery) -> Iterator[str]:
        for line in self._lines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            known = isinstance(record, dict) and all(
                isinstance(record.get(name), kind) for name, kind in _ASKED.items()
            )
            if known and query.wants(record):
                yield line.rstrip("\n")

    def _lines(self) -> Iterator[str]:
        try:
            with self._path.open(encoding="utf-8", errors="replace") as lines:
                yield from lines
        except FileNotFoundError:  # moved away, or removed
            return
