"""A connection that answers short questions beside the writer; a lost one is made anew."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from socket import SHUT_RDWR, socket
from typing import TypeVar

import psycopg

from toolgrove.store.journal.journal import Diverged, Stalled
from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.journal.tables.encoding import Damaged
from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import DatabaseUnavailable, LeadsElsewhere, connect

log = logging.getLogger("toolgrove.store")
Answer = TypeVar("Answer")


class PostgresReader:
    """Answers one question at a time, from any thread."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._tables: PostgresTables | None = None
        self._is_closed = False

    def ask(self, question: Callable[[PostgresTables], Answer]) -> Answer:
        """The answer; raises Stalled where none can be reached, and Diverged where it is another project's database."""
        with self._lock:
            for is_last in (False, True):
                is_new = self._tables is None
                if self._is_closed:
                    raise Stalled
                try:
                    self._tables = self._tables or PostgresTables(connect(self._address))
                    return question(self._tables)
                except LeadsElsewhere as problem:
                    raise Diverged(str(problem)) from None
                except (psycopg.Error, DatabaseUnavailable, Damaged) as problem:
                    self._drop()
                    if is_new or is_last:
                        log.debug("the database cannot be asked now: %s", problem)
                        raise Stalled from None
        raise Stalled

    def cut(self) -> None:
        """End the connection of a question that nobody answers; who asks next gets another."""
        tables = self._tables
        if tables is not None and self._lock.locked():
            with suppress(OSError, psycopg.Error), socket(fileno=os.dup(tables.connection.fileno())) as line:
                line.shutdown(SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connection; a question that nobody answers ends with it."""
        self._is_closed = True
        self.cut()
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._tables is not None:
            with suppress(psycopg.Error):
                self._tables.connection.close()
            self._tables = None
