"""What a project keeps between runs besides its workspace: pins, the inbox of approvals, tokens, logins, and deeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from toolgrove.call.inbox import Inbox
from toolgrove.config import Config
from toolgrove.database import database_of
from toolgrove.events import Event
from toolgrove.store.postgres import DatabaseAddress, needing_psycopg
from toolgrove.store.state import (
    Approvals,
    Deeds,
    Logins,
    MemoryApprovals,
    MemoryDeeds,
    MemoryLogins,
    MemoryPins,
    MemoryTokens,
    Pins,
    SqliteApprovals,
    SqliteDeeds,
    SqliteLogins,
    SqlitePins,
    SqliteTokens,
    StateFile,
    Tokens,
)
from toolgrove.types import Clock, SystemClock

if TYPE_CHECKING:
    from toolgrove.store.state.postgres import StateDatabase


class ProjectState:
    """The state in a file or a database, which is opened at its first use, or in memory where there is neither."""

    pins: Pins
    approvals: Inbox
    tokens: Tokens
    logins: Logins
    deeds: Deeds

    def __init__(
        self,
        path: Path | None,
        clock: Clock | None = None,
        *,
        database: DatabaseAddress | None = None,
        publish: Callable[[Event], None] = lambda event: None,
    ) -> None:
        """`clock` is the system's if none is given; a database then goes by its own."""
        self._file: StateFile | None = None
        self._database: StateDatabase | None = None
        kept: Approvals
        if database is not None:
            clock, kept = self._in_database(database, clock)
        elif path is not None:
            clock = clock or SystemClock()
            self._file = StateFile(path, clock)
            self.deeds = SqliteDeeds(self._file)
            self.pins, self.tokens = SqlitePins(self._file, clock), SqliteTokens(self._file, clock)
            self.logins = SqliteLogins(self._file, clock)
            kept = SqliteApprovals(self._file)
        else:
            clock = clock or SystemClock()
            self.deeds = deeds = MemoryDeeds()
            self.pins, self.tokens, kept = MemoryPins(clock, deeds), MemoryTokens(clock, deeds), MemoryApprovals(deeds)
            self.logins = MemoryLogins(clock, deeds)
        self.approvals = Inbox(kept, clock, publish=publish)

    def _in_database(self, address: DatabaseAddress, clock: Clock | None) -> tuple[Clock, Approvals]:
        postgres = needing_psycopg("toolgrove.store.state.postgres", where=address.told)
        state: StateDatabase = postgres.StateDatabase(address, clock)
        self._database = state
        self.deeds = postgres.PostgresDeeds(state)
        self.pins, self.tokens = postgres.PostgresPins(state, clock), postgres.PostgresTokens(state, clock)
        self.logins = postgres.PostgresLogins(state, clock)
        return clock or state.clock, postgres.PostgresApprovals(state)

    @classmethod
    def of(cls, config: Config, *, make: bool = False) -> ProjectState:
        """The state without its project running; a file is made only to `make` something, not for looking."""
        file = config.state_file
        return cls(file if file is not None and (make or file.exists()) else None, database=database_of(config))

    @property
    def is_kept(self) -> bool:
        """Whether there is something from before."""
        return self._database is not None or (self._file is not None and self._file.path.exists())

    @property
    def is_lost(self) -> bool:
        """Whether its file was deleted, replaced or overwritten while it was open."""
        return self._file is not None and self._file.is_lost

    def look(self) -> None:
        """See whether its file is still there; the log hears of it once if not."""
        if self._file is not None:
            self._file.look()

    def __enter__(self) -> Self:
        for kept in (self._file, self._database):
            if kept is not None:
                kept.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file, or of the database."""
        for kept in (self._file, self._database):
            if kept is not None:
                kept.close()
