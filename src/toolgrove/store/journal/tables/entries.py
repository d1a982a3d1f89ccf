"""A group of entries as it goes into the tables, within a transaction that somebody else begins and ends."""

from __future__ import annotations

import errno
from collections.abc import Mapping, MutableSequence, Sequence
from typing import Any

from toolgrove.store.audit import (
    NO_BODIES,
    Bodies,
    Notary,
    Place,
    RememberedCall,
    Sealed,
    Unfinished,
    chained,
    newly_sealed,
    signed,
)
from toolgrove.store.journal.journal import Behind, KeyTaken
from toolgrove.store.journal.tables import unfinished_calls
from toolgrove.store.journal.tables.audit_bodies import AuditBodies
from toolgrove.store.journal.tables.audit_copies import AuditCopies
from toolgrove.store.journal.tables.audit_retention import AuditRetention
from toolgrove.store.journal.tables.connection import Connection, insert
from toolgrove.store.journal.tables.encoding import checksum, key
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.idempotency_keys import IdempotencyKeys
from toolgrove.store.journal.tables.rows import Row, Rows
from toolgrove.store.journal.tables.sharing import SHARE, shared

Outcome = Sealed | OSError
_SHARED, _SWEEP = 2_000, 256


class EntryTables:
    """Writes entries behind a head, and gives the head that they lead to."""

    def __init__(
        self,
        keys: IdempotencyKeys,
        copies: AuditCopies,
        retention: AuditRetention,
        bodies: AuditBodies,
        unfinished: Unfinished,
        notary: Notary | None,
        *,
        is_shared: bool = False,
    ) -> None:
        """`is_shared` where other processes take over what is written."""
        self.unfinished = unfinished
        self.keys = keys
        self.copies = copies
        self._retention = retention
        self._bodies = bodies
        self._pruned = 0
        self._is_shared = is_shared
        self._notary = notary

    def is_sealed(self, head: Head) -> bool:
        """Whether this project's key stamped a head as it is."""
        return head.audit_seal == self._stamp(head.seal_text)

    def write_head(self, connection: Connection, head: Head) -> Head:
        """Put a head into the open transaction, stamped; last, since it says what all the rest is."""
        head = head._replace(audit_seal=self._stamp(head.seal_text))
        head.write(connection)
        return head

    def announce(
        self, connection: Connection, head: Head, records: Sequence[Mapping[str, Any]], after: Place
    ) -> tuple[list[Sealed], Head]:
        """Keep what a log that is opened says first, each signed, and have the head name the key that signs."""
        rows: list[Row] = []
        heard: list[RememberedCall] = []
        said: list[Sealed] = []
        for record in records:
            said.append(self._chain(record, after, rows, heard))
            after = Place(after.number + 1, said[-1].hash)
            self._sign_last(rows, said)
        self._keep_records(connection, rows, heard)
        head = head._replace(audit_number=after.number, audit_hash=after.hash)
        return said, head if self._notary is None else head._replace(audit_key=head.audit_key or self._notary.public)

    def going_on(self, connection: Connection, head: Head, timestamp: str) -> Head:
        """A head that others may have written: one that no key of ours stamped is not signed as if it were ours.

        Whatever it holds, the next record says that the key is new. Raises OSError where it is by now another one.
        """
        if self._notary is None or self.is_sealed(head):
            return head
        if head.audit_key not in ("", self._notary.public):
            raise OSError(errno.EPERM, "the audit log has another key by now: start this process again with that key")
        return self.announce(connection, head, [newly_sealed(timestamp, self._notary.public)], head.place)[1]

    def keep(self, connection: Connection, head: Head, group: Sequence[Rows]) -> tuple[list[Outcome], Head]:
        """Keep a group; for each entry its sealed audit record, or why it was refused."""
        newest, revision, mark, place = head.newest, head.revision, head.mark, head.place
        taken: list[Rows] = []
        outcomes: list[Outcome] = []
        audit: list[Row] = []
        heard: list[RememberedCall] = []
        bodies: list[tuple[int, Bodies]] = []
        used: set[tuple[str, str]] = (
            self.keys.used(connection, [rows.key for rows in group if rows.key]) if self._is_shared else set()
        )
        for rows in group:
            effects = rows.effects
            if rows.key is not None and (rows.key.agent, rows.key.key) in used:
                outcomes.append(KeyTaken())
                continue
            if effects is not None:
                if effects.parent != newest:  # nor is anything kept that rests on this one
                    outcomes.append(Behind(parent=effects.parent, newest=newest))
                    continue
                newest, revision, mark = effects.id, effects.revision, effects.mark
            sealed = self._chain(rows.audit.to_json(), place, audit, heard, rows.audit.bodies)
            place = Place(place.number + 1, sealed.hash)
            bodies.append((place.number, sealed.bodies))
            taken.append(rows)
            outcomes.append(sealed)
            if self._is_shared and rows.key is not None:
                used.add((rows.key.agent, rows.key.key))
        head = head._replace(
            commit=newest, revision=revision, mark=mark, audit_number=place.number, audit_hash=place.hash
        )
        self._sign_last(audit, outcomes)
        self._keep_records(connection, audit, heard)
        filled = self._bodies.keep(connection, bodies, head.audit_body_bytes)
        last = min(place.number - 1, self.copies.least(place.number))
        floor = self._retention.prune(connection, last, head.floor.number, self.copies.sync)
        if floor is not None:
            filled = self._bodies.drop(connection, floor.place.number, filled)
            head = head._replace(audit_floor=floor.place.hash, audit_floor_number=floor.place.number)
            signed_floor = self._notary.sign(head.floor_text) if self._notary is not None and floor.is_ours else ""
            head = head._replace(audit_floor_seal=signed_floor)
        head = head._replace(audit_body_bytes=filled)
        _change(connection, taken)
        if self._is_shared:
            _share(connection, taken, revision)
        kept = [(rows.key, rows.result) for rows in taken if rows.key is not None]
        if kept:
            self.keys.keep(connection, kept)
        if head.mark.floor > self._pruned:
            connection.execute("DELETE FROM journal WHERE revision <= ?", (head.mark.floor,))
            self._pruned = head.mark.floor
        return outcomes, head

    def tell_outside(self, connection: Connection, head: Head) -> None:
        """Bring the copies up to the head, then the mark, so that it is never ahead of them."""
        self.copies.update(connection, head.audit_number)
        if self._notary is not None:
            self._notary.note(head.place)

    def _stamp(self, text: str) -> str:
        return "" if self._notary is None else self._notary.stamp(text)

    def _sign_last(self, rows: list[Row], sealed: MutableSequence[Any]) -> None:
        """Sign the last record, and with it all in the same transaction; the outcomes behind it are refusals."""
        at = next((at for at in range(len(sealed) - 1, -1, -1) if isinstance(sealed[at], Sealed)), None)
        if at is not None and self._notary is not None:
            sealed[at] = signed(sealed[at], self._notary.sign)
            rows[-1] = (*rows[-1][:-1], sealed[at].line)

    def _chain(
        self,
        record: Mapping[str, Any],
        after: Place,
        rows: list[Row],
        heard: list[RememberedCall],
        bodies: Bodies = NO_BODIES,
    ) -> Sealed:
        """Put a record at the end of the chain: its row, and what it means for calls without an end."""
        sealed = chained(record, after, bodies)
        columns = record["timestamp"], key(record["agent"]), key(record["operation"]), record["outcome"], sealed.line
        rows.append((after.number + 1, *columns))
        heard += self.unfinished.hear(record)
        return sealed

    def _keep_records(self, connection: Connection, rows: Sequence[Row], heard: Sequence[RememberedCall]) -> None:
        insert(connection, "INSERT INTO audit (number, timestamp, agent, operation, outcome, line)", rows)
        unfinished_calls.write(connection, heard)


def _change(connection: Connection, taken: Sequence[Rows]) -> None:
    past: list[Row] = []
    nodes: dict[str, str | None] = {}
    sums: dict[str, int | None] = {}
    for rows in taken:
        if rows.effects is not None:
            one = rows.effects
            past.append((one.revision, one.base, one.id, one.parent, rows.journal, checksum(rows.journal)))
            nodes.update(rows.nodes)
            sums.update(rows.sums)
            for statement, parameters in rows.beside:
                connection.executemany(statement, parameters)
    insert(connection, "INSERT INTO journal (revision, base, id, parent, body, crc)", past)
    present = [(name, body, sums[name]) for name, body in nodes.items() if body is not None]
    insert(connection, "INSERT OR REPLACE INTO node (id, body, crc)", present)
    gone = [(name,) for name, body in nodes.items() if body is None]
    if gone:
        connection.executemany("DELETE FROM node WHERE id = ?", gone)


def _share(connection: Connection, taken: Sequence[Rows], revision: int) -> None:
    """Leave the entries for other processes; one that falls further behind than these reads all of it anew."""
    rows = [shared(one) for one in taken if one.effects is not None]
    insert(connection, SHARE, rows)
    if rows and rows[0][0] // _SWEEP != revision // _SWEEP:
        connection.execute("DELETE FROM entry WHERE revision <= ?", (revision - _SHARED,))
