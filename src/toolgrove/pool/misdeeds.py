"""What servers of the pool do against the protocol and are forgiven: counted, and logged once."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Literal

log = logging.getLogger("toolgrove.pool")
Misdeed = Literal["stray_line", "unreadable", "wrong_id", "repeated_answer"]
_WORDS: dict[Misdeed, str] = {
    "stray_line": "writes lines to its output that are no messages",
    "unreadable": "writes lines to its output that begin like JSON and are not",
    "wrong_id": "answers requests that nobody made",
    "repeated_answer": "answers a request twice",
}


class Misdeeds:
    """Counts by server and kind, across all connections to it."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, Misdeed]] = Counter()

    def note(self, server: str, kind: Misdeed) -> None:
        """Count one; the log hears of the first."""
        self._counts[server, kind] += 1
        if self._counts[server, kind] == 1:
            log.warning("server %s %s; what follows of this kind is only counted.", server, _WORDS[kind])

    def counts(self) -> Iterator[tuple[tuple[str, str], int]]:
        """How often each server did what."""
        yield from self._counts.items()
