"""Whether a file that several processes write was overwritten: a change of it that no transaction can have made."""

from __future__ import annotations

import sqlite3
import time
from math import inf

from toolgrove.store.file_contents import FileContents

_BELIEVED = 10.0
"""Seconds in which whoever wrote may still bring its log into the file."""


class SharedContents:
    """Believes changes of the file for a while after another process wrote: it brings its log into the file later."""

    def __init__(self, connection: sqlite3.Connection, contents: FileContents) -> None:
        self._connection = connection
        self._contents = contents
        self._version = self._seen()
        self._heard_at = -inf

    def settle(self) -> None:
        """Take what the file holds now as ours, after we wrote it."""
        self._contents.settle()

    def are_foreign(self) -> bool:
        """Whether it holds something that neither we nor a transaction of others put there."""
        self._hear()
        if not self._contents.are_foreign():
            return False
        self._hear()  # somebody may have written in between
        if time.monotonic() - self._heard_at > _BELIEVED:
            return True
        self._contents.settle()
        return False

    def _hear(self) -> None:
        version = self._seen()
        if version != self._version:
            self._version, self._heard_at = version, time.monotonic()

    def _seen(self) -> int:
        """Another number whenever somebody else has written."""
        try:
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:  # who needs the file hears what is wrong with it
            return -1
        return int(version)

    def close(self) -> None:
        """Let go of the file, after every connection to it is closed."""
        self._contents.close()
