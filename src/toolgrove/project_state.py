"""What a project keeps between runs besides its workspace: pins, the inbox of approvals, tokens, logins, and deeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from toolgrove.call.inbox import Inbox
from toolgrove.config import Config
from toolgrove.events import Event
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


class ProjectState:
    """The state in a file, which is opened at its first use, or in memory where there is no file."""

    pins: Pins
    approvals: Inbox
    tokens: Tokens
    logins: Logins
    deeds: Deeds

    def __init__(
        self, path: Path | None, clock: Clock | None = None, *, publish: Callable[[Event], None] = lambda event: None
    ) -> None:
        clock = clock or SystemClock()
        kept: Approvals
        self._file = None if path is None else StateFile(path, clock)
        if self._file is None:
            self.deeds = deeds = MemoryDeeds()
            self.pins, self.tokens, kept = MemoryPins(clock, deeds), MemoryTokens(clock, deeds), MemoryApprovals(deeds)
            self.logins = MemoryLogins(clock, deeds)
        else:
            self.deeds = SqliteDeeds(self._file)
            self.pins, self.tokens = SqlitePins(self._file, clock), SqliteTokens(self._file, clock)
            self.logins = SqliteLogins(self._file, clock)
            kept = SqliteApprovals(self._file)
        self.approvals = Inbox(kept, clock, publish=publish)

    @classmethod
    def of(cls, config: Config, *, make: bool = False) -> ProjectState:
        """The state without its project running; a file is made only to `make` something, not for looking."""
        file = config.state_file
        return cls(file if file is not None and (make or file.exists()) else None)

    @property
    def is_kept(self) -> bool:
        """Whether there is something from before."""
        return self._file is not None and self._file.path.exists()

    @property
    def is_lost(self) -> bool:
        """Whether its file was deleted, replaced or overwritten while it was open."""
        return self._file is not None and self._file.is_lost

    def look(self) -> None:
        """See whether its file is still there; the log hears of it once if not."""
        if self._file is not None:
            self._file.look()

    def __enter__(self) -> Self:
        if self._file is not None:
            self._file.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
