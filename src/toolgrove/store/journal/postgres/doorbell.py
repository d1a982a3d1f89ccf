"""The doorbell: rings when another process has written, and now and then all the same, since a notice may be lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

import psycopg

from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import DatabaseUnavailable, connect

log = logging.getLogger("toolgrove.store")
POLL = 0.4
"""Seconds after which it rings though nobody said anything."""
QUESTION = "served? "
"""How a notice begins that asks which tree is served."""


def channel(address: DatabaseAddress) -> str:
    """Where the processes of a project tell each other that they wrote."""
    return f"toolgrove.{address.schema}"


class Doorbell:
    """Listens in a thread on a connection of its own; one that was lost is made anew, and rings.

    Somebody may also ask which tree is served: `asked` is called with what the answer must name.
    """

    def __init__(
        self, address: DatabaseAddress, own: str, ring: Callable[[], object], asked: Callable[[str], object]
    ) -> None:
        self._address = address
        self._own = own
        self._ring = ring
        self._asked = asked
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="toolgrove-doorbell", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop listening; the thread is gone a moment later."""
        self._ended.set()
        self._thread.join(2 * POLL)

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                with connect(self._address) as connection:
                    PostgresTables(connection).execute(f'LISTEN "{channel(self._address)}"')
                    self._tell()
                    self._listen(connection)
            except (psycopg.Error, DatabaseUnavailable) as error:
                log.debug("other processes cannot be heard: %s", error)
            self._tell()
            self._ended.wait(POLL)

    def _listen(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        while not self._ended.is_set():
            heard = [notice.payload for notice in connection.notifies(timeout=POLL, stop_after=1)]
            for question in [one for one in heard if one.startswith(QUESTION)]:
                with suppress(RuntimeError):  # the loop has ended
                    self._asked(question.removeprefix(QUESTION))
            if not heard or heard != [self._own]:
                self._tell()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._ring()
