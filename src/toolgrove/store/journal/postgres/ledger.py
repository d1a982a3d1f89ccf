"""Writing entries: a group of them in one transaction, which holds the head against all other writers meanwhile.

The outcome of a transaction whose COMMIT was cut off is looked up: its last audit record is there, or it is not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import psycopg
from psycopg import errors

from toolgrove.notation.times import to_milliseconds
from toolgrove.store.audit import Sealed, Unfinished, hash_of
from toolgrove.store.audit.resuming import Resumption
from toolgrove.store.journal.journal import Behind, ClaimLost, Outdated, Stalled
from toolgrove.store.journal.postgres.doorbell import channel
from toolgrove.store.journal.postgres.failures import AGAIN, passes, refusal
from toolgrove.store.journal.postgres.holders import end_silent_holders
from toolgrove.store.journal.postgres.replicas import Replica, as_notes, calls
from toolgrove.store.journal.postgres.settling import has_lost_claim, settle_closed, settle_ended
from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.journal.tables.entries import EntryTables, Outcome
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.rows import Rows
from toolgrove.store.journal.tables.writer import Undecided
from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import DatabaseUnavailable, connect
from toolgrove.store.postgres.migrations import version
from toolgrove.store.postgres.presence import BEAT, GRACE
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.store")
LOCKED = " FOR UPDATE"
_HOLD = f"SELECT body, crc, oldest, (SELECT line FROM audit WHERE number = ?) FROM head{LOCKED}"  # noqa: S608
_WAIT = f"SELECT one FROM head{LOCKED}"  # noqa: S608  our own words
_OLDEST = "SELECT oldest FROM head"
_TRIES = 5
_SILENT_MS = 2_000
_KEPT, _NOT_KEPT = "what it was to keep is kept", "nothing of it was kept"


class InDoubt(Exception):
    """The connection was cut after COMMIT was sent; the last record tells whether the transaction was kept."""

    def __init__(self, outcomes: list[Outcome], head: Head) -> None:
        super().__init__()
        self.outcomes, self.head = outcomes, head


class PostgresLedger:
    """The tables as the writer sees them; between two transactions others may have changed them."""

    def __init__(
        self,
        address: DatabaseAddress,
        tables: PostgresTables,
        head: Head,
        entries: EntryTables,
        replica: Replica,
        clock: Clock,
        resume: Callable[..., Resumption],
    ) -> None:
        """`resume` tells how the audit log goes on; it is `tables.going_on.resumption` but for what only we know."""
        self.is_cut = False
        """Whether the database could not be reached at the last try."""
        self.keeps_others_waiting = False
        self.is_outdated = False
        """Whether a newer version has changed the store so that this process may not write it any more."""
        self.head = head
        self._address = address
        self._tables: PostgresTables | None = tables
        self._entries = entries
        self._replica = replica
        self._clock = clock
        self._resume = resume
        self._came = self._stayed = clock.monotonic()

    @property
    def unfinished(self) -> Unfinished:
        """Calls that have not ended yet, and calls whose outcome is unknown."""
        return self._entries.unfinished

    def announce(self, tables: PostgresTables, going_on: Resumption) -> list[Sealed]:
        """Keep what a log that is opened says first, in the open transaction that holds the head."""
        said: list[Sealed] = []
        if going_on.records or not self._entries.is_sealed(self.head):
            settled = settle_closed(tables, going_on.records)
            said, head = self._entries.announce(tables, self.head, [*going_on.records, *settled], going_on.after)
            self.head = self._entries.write_head(tables, head)
        return said

    def write(self, group: Sequence[Rows]) -> Sequence[Outcome]:
        """Keep a group; for each entry its sealed audit record, or why it was refused.

        Raises Stalled where the database cannot be written now, and nothing of the group was; Undecided where that is
        not known yet.
        """
        if self.is_outdated:
            raise Outdated
        for _ in range(_TRIES):
            before = self.unfinished.copy()
            try:
                outcomes = self._write(self._connected(), group)
            except InDoubt as doubt:
                self._drop()
                return self._decide(doubt, before)
            except AGAIN:
                self._roll_back(before)
                continue
            except errors.LockNotAvailable:
                self._roll_back(before)
                if not self._is_freed():
                    raise Stalled from None
                continue
            except psycopg.Error as error:
                is_cut = self._roll_back(before)
                if passes(error, is_cut=is_cut):
                    log.debug("the database cannot be written now: %s", error)
                    raise Stalled from None
                return [refusal(error) for _ in group]
            except BaseException:
                self._roll_back(before)
                raise
            if any(rows.overdue and isinstance(one, Behind) for rows, one in zip(group, outcomes, strict=True)):
                self._keep_others_waiting()
            self.tell_outside()
            return outcomes
        raise Stalled

    def _keep_others_waiting(self) -> None:
        """Hold the head until the next group: those who were not quick enough catch up with it meanwhile."""
        tables = self._connected()
        try:
            tables.execute("BEGIN")
            tables.execute(_WAIT).fetchone()
            self.keeps_others_waiting = True
        except psycopg.Error:
            self._roll_back(self.unfinished)

    def release(self) -> None:
        """Let others write again."""
        self._roll_back(self.unfinished)

    def look(self, *, thoroughly: bool) -> None:
        """Find out whether it could be written; say that this process lives, and close calls of those that do not."""
        tables = self._connected()
        if self.keeps_others_waiting:
            self.release()
        if not thoroughly and not self.is_cut and self._clock.monotonic() - self._stayed < BEAT:
            return
        before = self.unfinished.copy()
        try:
            self._replica.stay(tables)
            self._stayed = self._clock.monotonic()
            self._see_version(tables.execute(_OLDEST).fetchone()[0])
            self._take_over(tables)
            self.tell_outside()
        except psycopg.Error as error:
            if passes(error, is_cut=self._roll_back(before)):
                raise Stalled from None
            raise refusal(error) from None
        self.is_cut = False

    def _take_over(self, tables: PostgresTables) -> None:
        """Hear of calls that others left in doubt, and close those of processes that are gone."""
        found = calls(tables)
        self.unfinished.share(found.all)
        if self._clock.monotonic() - self._came < GRACE or not found.orphans.has_open:
            return
        with tables:
            tables.execute("BEGIN")
            head = self._locked_head(tables)
            now = to_milliseconds(self._clock.wall())
            found = calls(tables)  # but for those closed meanwhile
            records = found.orphans.close(now, found.lived)
            settled = settle_closed(tables, records)
            _, head = self._entries.announce(tables, head, [*records, *settled], head.place)
            self.head = self._entries.write_head(tables, head)
            tables.execute("COMMIT")
        for record in records:
            log.warning(
                "A replica is gone; the outcome of its call %s of %s is unknown.", record["callId"], record["operation"]
            )

    def tell_outside(self) -> None:
        """Bring copies of the audit records up to the head."""
        if self._tables is not None:
            self._entries.tell_outside(self._tables, self.head)

    def close(self) -> None:
        """Say that this process is gone, and let go."""
        if self._tables is not None:
            with suppress(psycopg.Error):
                self._replica.leave(self._tables)
            self._tables.connection.close()
            self._tables = None

    def _write(self, tables: PostgresTables, group: Sequence[Rows]) -> list[Outcome]:
        doubt: InDoubt | None = None
        try:
            with tables:
                if not self.keeps_others_waiting:
                    tables.execute("BEGIN")
                head = self._locked_head(tables)
                lost = [has_lost_claim(tables, rows) for rows in group]
                held = [rows for rows, is_lost in zip(group, lost, strict=True) if not is_lost]
                held = as_notes(tables, self.unfinished, held)
                answers, head = self._entries.keep(tables, head, held)
                answer = iter(answers)
                outcomes = [ClaimLost() if is_lost else next(answer) for is_lost in lost]
                kept = zip(held, answers, strict=True)
                settle_ended(tables, [rows.audit for rows, one in kept if isinstance(one, Sealed)])
                head = self._entries.write_head(tables, head)
                if any(rows.effects is not None for rows in group):
                    tables.execute("SELECT pg_notify(?, ?)", (channel(self._address), self._replica.name))
                doubt = InDoubt(outcomes, head)
                tables.execute("COMMIT")
        except psycopg.Error:
            if doubt is not None and tables.connection.closed and any(isinstance(one, Sealed) for one in outcomes):
                raise doubt from None
            raise
        self.head, self.is_cut, self.keeps_others_waiting = head, False, False
        return outcomes

    def _locked_head(self, tables: PostgresTables) -> Head:
        """The head, held against all other writers; raises Outdated where this process may not write any more, and
        Stalled where it is that of another project.

        Behind a new connection there may be a database that lacks the last commits, and somebody may set one back that
        we are connected to. Then records that this process knows of are gone: the log goes on with a marked break.
        """
        row = tables.execute(_HOLD, (self.head.audit_number,)).fetchone()
        if row is None:
            raise refusal(psycopg.DataError("the row of the head is missing"))
        body, crc, oldest, line = row
        self._see_version(oldest)
        head = Head.of((body, crc))
        if head.identity != self.head.identity:
            log.error("The database %s is of project %s now: nothing is written.", self._address.told, head.identity)
            self._drop()
            raise Stalled
        if self.head.audit_number > head.floor.number and (line is None or hash_of(line) != self.head.audit_hash):
            going_on = self._resume(tables, head, left=Unfinished(), known=self.head.place)
            if going_on.lost is not None:
                _, head = self._entries.announce(tables, head, going_on.records, going_on.after)
        return self._entries.going_on(tables, head, to_milliseconds(self._clock.wall()))

    def _see_version(self, oldest: int) -> None:
        if oldest > version():
            if not self.is_outdated:
                log.critical(
                    "A newer Toolgrove has brought the database to a version that only versions from %d on may write, "
                    "and this one is version %d: it writes nothing any more. Replace this replica.",
                    oldest,
                    version(),
                )
            self.is_outdated = True
            raise Outdated

    def _decide(self, doubt: InDoubt, before: Unfinished) -> Sequence[Outcome]:
        """Look for the last record; who holds the head waits for a COMMIT still under way."""
        last = next(one for one in reversed(doubt.outcomes) if isinstance(one, Sealed))
        try:
            tables = self._connected()
            with tables:
                tables.execute("BEGIN")
                tables.execute(_WAIT)
                found = tables.execute("SELECT line FROM audit WHERE number = ?", (doubt.head.audit_number,))
                line = found.fetchone()
                tables.execute("COMMIT")
        except (Stalled, psycopg.Error) as error:
            log.debug("what became of a transaction cannot be looked up yet: %s", error)
            self._drop()
            raise Undecided(partial(self._decide, doubt, before)) from None
        is_kept = line is not None and line[0] == last.line
        log.warning("The connection was cut in the middle of COMMIT; %s.", _KEPT if is_kept else _NOT_KEPT)
        if not is_kept:
            self.unfinished.take_back(before)
            raise Stalled
        self.head = doubt.head
        self.tell_outside()
        return doubt.outcomes

    def _is_freed(self) -> bool:
        """Whether another process held the head without a word, and does so no more."""
        try:
            is_freed = end_silent_holders(self._connected())
        except psycopg.Error as error:
            log.debug("it cannot be found out who holds the head: %s", error)
            return False
        if is_freed:
            log.warning("Another replica held the store and fell silent. Its transaction was ended.")
        return is_freed

    def _connected(self) -> PostgresTables:
        """The connection, made anew if need be; raises Stalled where there is none to be had."""
        if self._tables is not None and self._tables.connection.closed:
            self._drop()
        if self._tables is None:
            try:
                self._tables = PostgresTables(connect(self._address))
                prepare(self._tables, self._replica)
                self._came = self._clock.monotonic()
            except (DatabaseUnavailable, psycopg.Error) as error:
                self._drop()
                if not self.is_cut:
                    log.error("%s", error)
                self.is_cut = True
                raise Stalled from None
            if self.is_cut:
                log.warning("The database %s can be used again.", self._address.told)
            self.is_cut = False
        return self._tables

    def _roll_back(self, unfinished: Unfinished) -> bool:
        """Undo what was not kept; whether the connection is gone with it."""
        self.keeps_others_waiting = False
        if unfinished is not self.unfinished:
            self.unfinished.take_back(unfinished)
        tables = self._tables
        if tables is not None and not tables.connection.closed:
            with suppress(psycopg.Error):
                tables.execute("ROLLBACK")
                return False
        self._drop()
        self.is_cut = True
        return True

    def _drop(self) -> None:
        self.keeps_others_waiting = False
        if self._tables is not None:
            with suppress(psycopg.Error):
                self._tables.connection.close()
            self._tables = None


def prepare(tables: PostgresTables, replica: Replica) -> None:
    """Let the database know on a new connection who writes; it is a default of what that one begins.

    A process that is cut off while it holds the head must not hold up the others for long.
    """
    tables.execute("SELECT set_config('toolgrove.replica', ?, false)", (replica.name,))
    for name in ("idle_in_transaction_session_timeout", "lock_timeout"):
        tables.execute("SELECT set_config(?, ?, false)", (name, str(_SILENT_MS)))
    replica.come(tables)
