"""What a project keeps between runs besides its workspace: pins, the inbox of approvals, tokens, logins, and deeds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
import anyio.to_thread

from toolgrove.call.inbox import Inbox
from toolgrove.config import Config
from toolgrove.database import database_of
from toolgrove.events import Event
from toolgrove.store.postgres import DatabaseAddress, needing_psycopg
from toolgrove.store.state import (
    Approvals,
    Deeds,
    Handoffs,
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
    from toolgrove.store.state.postgres import Following, Member, PostgresHandoffs, ProjectFiles, StateDatabase


SETTLE = 1.0
"""How many seconds pass between two looks for claims of replicas that are gone."""


async def _again_and_again(settle: Callable[[], Awaitable[None]]) -> None:
    while True:
        await anyio.sleep(SETTLE)
        await settle()


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
        self._member: Member | None = None
        self._files: ProjectFiles | None = None
        self._handoffs: PostgresHandoffs | None = None
        self._judged: Callable[[], None] = lambda: None
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
        member = self._member
        self.approvals = (
            Inbox(kept, clock, publish=publish)
            if member is None
            else Inbox(kept, clock, publish=publish, claimant=lambda: member.number, is_other_alive=member.is_alive)
        )

    def _in_database(self, address: DatabaseAddress, clock: Clock | None) -> tuple[Clock, Approvals]:
        postgres = needing_psycopg("toolgrove.store.state.postgres", where=address.told)
        state: StateDatabase = postgres.StateDatabase(address, clock)
        self._database, self._member = state, postgres.Member(state)
        self._files = postgres.ProjectFiles(state, self._member)
        self._handoffs = postgres.PostgresHandoffs(state, self._member)
        self.deeds = postgres.PostgresDeeds(state)
        self.pins, self.tokens = postgres.PostgresPins(state, clock), postgres.PostgresTokens(state, clock)
        self.logins = postgres.PostgresLogins(state, clock)
        return clock or state.clock, postgres.PostgresApprovals(state)

    @classmethod
    def of(cls, config: Config, *, make: bool = False) -> ProjectState:
        """The state without its project running; a file is made only to `make` something, not for looking."""
        file = config.state_file
        return cls(file if file is not None and (make or file.exists()) else None, database=database_of(config))

    def belong(self, project: str) -> None:
        """Have the state file say of which project it is, also one that is not there yet."""
        if self._file is not None:
            self._file.belong(project)

    @property
    def is_kept(self) -> bool:
        """Whether there is something from before."""
        return self._database is not None or (self._file is not None and self._file.path.exists())

    @property
    def handoffs(self) -> Handoffs | None:
        """Takes answers to the replica that asked; None for a state of this machine alone."""
        return self._handoffs

    @property
    def newer_file(self) -> str | None:
        """The hash of the newest project file that a replica has taken, where this process runs by another."""
        return None if self._files is None else self._files.newer

    async def took(self, digest: str, *, changed: bool) -> None:
        """Tell other replicas by which project file this one runs from now on."""
        files = self._files
        if files is not None:
            await anyio.to_thread.run_sync(partial(files.take, digest, changed=changed))

    @property
    def is_lost(self) -> bool:
        """Whether its file was deleted, replaced or overwritten while it was open."""
        return self._file is not None and self._file.is_lost

    def look(self) -> None:
        """See whether its file is still there; the log hears of it once if not."""
        if self._file is not None:
            self._file.look()

    @asynccontextmanager
    async def following(self, settle: Callable[[], Awaitable[None]], judged: Callable[[], None]) -> AsyncIterator[None]:
        """Hear meanwhile what other replicas change, and settle what those left that are gone.

        `judged` is called when a definition may have been accepted or refused.

        A state of this machine alone has no replicas.
        """
        if self._database is None or self._member is None or self._files is None:
            yield
            return
        postgres = needing_psycopg("toolgrove.store.state.postgres", where=self._database.address.told)
        self._judged = judged
        copies = [
            kept.copy
            for kept in (self.pins, self.tokens)
            if isinstance(kept, postgres.PostgresPins | postgres.PostgresTokens)
        ]
        following: Following = postgres.Following(self._database, copies, self._member, self._files, self._heard)
        await following.begin()
        await self.approvals.heard()  # what comes after this is news
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(following.run)
            tasks.start_soon(_again_and_again, settle)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(following.end)

    async def _heard(self, kind: str) -> None:
        if kind == "approvals":
            await self.approvals.heard()
        elif kind == "pins":
            self._judged()
        elif kind == "handoffs" and self._handoffs is not None:
            self._handoffs.heard()

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
