"""What a server writes to its error output: into our log, bounded, scrubbed and one line at a time."""

from __future__ import annotations

import codecs
import logging
from collections.abc import Callable

from toolgrove.budgets import RefillingBudget
from toolgrove.notation.unseen_text import blanked
from toolgrove.pool.secrets import Secrets
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.pool")
LINES = 5.0
BURST = 50.0
MAX_LINE = 2_000
MAX_HELD = 64 * 1024


class ErrorOutput:
    """Logs a few lines a second; the rest is counted and dropped."""

    def __init__(
        self, server: str, secrets: Secrets, clock: Clock, keep: Callable[[str], object] = lambda line: None
    ) -> None:
        self._server = server
        self._secrets = secrets
        self._keep = keep
        self._room = RefillingBudget(LINES, burst=BURST, monotonic=clock.monotonic)
        self._dropped = 0
        self._held = ""
        self._restart(skipping=False)

    def _restart(self, *, skipping: bool) -> None:
        """Begin anew; in the middle of a line the rest of it could be the rest of a secret."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._scrubber = self._secrets.stream()
        self._skipping = skipping
        self._held = ""

    def feed(self, data: bytes) -> None:
        """Log the lines that are complete now."""
        if self._skipping:
            _, newline, data = data.partition(b"\n")
            if not newline:
                return
            self._skipping = False
        if not self._room.has():
            self._dropped += data.count(b"\n") + 1
            self._restart(skipping=not data.endswith(b"\n"))
            return
        self._tell_dropped()
        self._log(self._scrubber.feed(self._decoder.decode(data)))

    def end(self) -> None:
        """Log the last line, and how many were dropped."""
        self._log(self._scrubber.end() + "\n")
        self._tell_dropped()

    def _tell_dropped(self) -> None:
        if self._dropped:
            log.info("server %s: %d more lines were dropped", self._server, self._dropped)
            self._dropped = 0

    def _log(self, text: str) -> None:
        *lines, self._held = (self._held + text).split("\n")
        for line in lines:
            self._one(line)
        if len(self._held) > MAX_HELD:
            self._one(self._held)
            self._restart(skipping=True)

    def _one(self, line: str) -> None:
        shown = blanked(line[:MAX_LINE]).rstrip()
        if not shown:
            return
        self._keep(shown)
        if not self._room.take():
            self._dropped += 1
            return
        log.info("server %s: %s", self._server, shown)
