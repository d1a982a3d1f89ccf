"""Writing entries: a group of them in one transaction, each whole or not at all."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Sequence

from toolgrove.store.audit import Unfinished
from toolgrove.store.audit.resuming import Resumption
from toolgrove.store.file_marks import FileMarks
from toolgrove.store.journal.journal import Gone, Stalled
from toolgrove.store.journal.sqlite.compaction import compact
from toolgrove.store.journal.tables.entries import EntryTables, Outcome
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.rows import Rows


class Ledger:
    """The tables as the writer sees them; what they hold is always the state after the last transaction."""

    def __init__(self, connection: sqlite3.Connection, head: Head, entries: EntryTables, files: FileMarks) -> None:
        self._files = files
        self._connection = connection
        self._head = head
        self._entries = entries

    @property
    def keeps_others_waiting(self) -> bool:
        """Never: nobody else writes the file."""
        return False

    def release(self) -> None:
        """Let others write again."""

    @property
    def unfinished(self) -> Unfinished:
        """Calls that have not ended yet, and calls whose outcome is unknown."""
        return self._entries.unfinished

    def announce(self, going_on: Resumption) -> None:
        """Keep what a log that is opened says first, sealed with this machine's key."""
        if going_on.records or not self._entries.is_sealed(self._head):
            self._connection.execute("BEGIN IMMEDIATE")
            _, head = self._entries.announce(self._connection, self._head, going_on.records, going_on.after)
            self._commit(head)
        self._files.settle()
        self._tell_outside()

    def write(self, group: Sequence[Rows]) -> list[Outcome]:
        """Keep a group; for each entry its sealed audit record, or why it was refused.

        Raises Stalled where somebody else holds the store; a commit into files that nobody finds again is refused.
        """
        before, floor = self.unfinished.copy(), self._head.floor
        try:
            self._begin()
            outcomes, head = self._entries.keep(self._connection, self._head, group)
            self._commit(head)
            self._files.settle()
            if self._files.lost:
                return [Gone() for _ in group]
        except Gone:
            return [Gone() for _ in group]
        except Stalled:
            raise
        except sqlite3.Error as error:
            self._roll_back(before)
            return [_refusal(error) for _ in group]
        except BaseException:
            self._roll_back(before)
            raise
        self._tell_outside()
        if self._head.floor != floor:
            compact(self._connection)
            self._files.settle()
        return outcomes

    def look(self, *, thoroughly: bool) -> None:
        """Find out whether it could be written, thoroughly by writing; raises OSError, if it is held Stalled."""
        try:
            self._look(thoroughly=thoroughly)
        except sqlite3.Error as error:
            raise _refusal(error) from None

    def _look(self, *, thoroughly: bool) -> None:
        self._begin()
        try:
            if thoroughly:
                self._head.write(self._connection)
                self._connection.execute("COMMIT")
                self._files.settle()
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _begin(self) -> None:
        if self._files.are_lost():
            raise Gone
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Stalled from None
            raise

    def _commit(self, head: Head) -> None:
        head = self._entries.write_head(self._connection, head)
        self._connection.execute("COMMIT")
        self._head = head

    def _tell_outside(self) -> None:
        self._entries.tell_outside(self._connection, self._head)

    def _roll_back(self, unfinished: Unfinished) -> None:
        self.unfinished.take_back(unfinished)
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._files.settle()


def _refusal(error: sqlite3.Error) -> OSError:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return OSError(errno.ENOSPC, "no room for the store: free some space on its disk")
    return OSError(errno.EIO, f"the store cannot be written: {error}")
