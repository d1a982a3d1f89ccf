"""Following the state: what another replica changed is heard of at once, and found within a second if it is not."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import psycopg
from psycopg import sql

from toolgrove.store.postgres.connecting import session, settings
from toolgrove.store.postgres.presence import BEAT, HOLD, STAY
from toolgrove.store.state.postgres.copies import Copy
from toolgrove.store.state.postgres.database import StateDatabase, channel
from toolgrove.store.state.postgres.members import Member
from toolgrove.store.state.postgres.project_files import ProjectFiles

log = logging.getLogger("toolgrove.store")
Connection = psycopg.AsyncConnection[tuple[Any, ...]]
POLL = 1.0
"""Seconds after which it looks though nobody told of a change."""
PATIENCE = 3.0
"""Seconds that one look may take before the connection counts as lost."""
_AGAIN = 0.5
_NUMBERS = "SELECT kind, number FROM state_change"


class Following:
    """Renews the copies and tells which kind changed, over a connection of its own."""

    def __init__(
        self,
        state: StateDatabase,
        copies: Sequence[Copy[Any]],
        member: Member,
        files: ProjectFiles,
        heard: Callable[[str], Awaitable[None]],
    ) -> None:
        self._state, self._copies, self._member, self._files, self._heard = state, copies, member, files, heard
        self._known: dict[str, int] = {}
        self._stayed = -math.inf

    async def begin(self) -> None:
        """Read the copies, which answer from memory from now on."""
        for copy in self._copies:
            await anyio.to_thread.run_sync(copy.renew)
            copy.followed(True)

    async def run(self) -> None:
        """Follow until cancelled; a database that is away is tried again and again."""
        told = False
        while True:
            try:
                with anyio.fail_after(PATIENCE * 2):
                    connection = await self._connected()
                told = False
                try:
                    await self._follow(connection)
                finally:
                    with anyio.CancelScope(shield=True):
                        await connection.close()
            except (psycopg.Error, OSError, TimeoutError) as problem:
                if not told:
                    log.warning("Changes of other replicas are not heard just now: %s", type(problem).__name__)
                told = True
                await anyio.sleep(_AGAIN)

    def end(self) -> None:
        """Let the copies ask the database again, and be gone."""
        for copy in self._copies:
            copy.followed(False)
        with suppress(OSError):
            self._member.leave()

    async def _connected(self) -> Connection:
        address = self._state.address
        connection: Connection = await psycopg.AsyncConnection.connect(autocommit=True, **settings(address))
        try:
            statement, values = session(address)
            await connection.execute(statement.encode(), values)
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel(address))))
            await connection.execute(HOLD, (self._member.id,))
            self._member.came()
            self._stayed = -math.inf
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _follow(self, connection: Connection) -> None:
        while True:
            with anyio.fail_after(PATIENCE):
                await self._stay(connection)
                await self._files.look(connection)
                cursor = await connection.execute(_NUMBERS)
                numbers: dict[str, int] = dict(list(await cursor.fetchall()))
            changed = [kind for kind, number in numbers.items() if self._known.get(kind) != number]
            self._known = numbers
            await self._renew(changed)
            async for _ in connection.notifies(timeout=POLL, stop_after=1):
                pass

    async def _stay(self, connection: Connection) -> None:
        if time.monotonic() - self._stayed >= BEAT:
            await connection.execute(STAY, (self._member.id,))
            self._stayed = time.monotonic()

    async def _renew(self, changed: Sequence[str]) -> None:
        for copy in self._copies:
            if copy.kind in changed:
                await anyio.to_thread.run_sync(copy.renew)
        for kind in changed:
            await self._heard(kind)
