"""Handoffs through the project's database, so that no replica needs to know where another is.

Who got an answer writes a row, who holds the call takes it and adds the outcome, and the first one deletes it. Whether
the row was taken decides: an answer that was not, and now is deleted, has no effect.
"""

from __future__ import annotations

import secrets
from contextlib import suppress

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from toolgrove.store.state.handoffs import GoOn, HandoffLost
from toolgrove.store.state.postgres.database import StateDatabase
from toolgrove.store.state.postgres.members import Member

WITHIN = 600.0
"""Seconds after which nobody waits for the outcome any more."""
LOOK = 1.0
"""Seconds after which one who waits looks whether the other replica is still there."""
_SWEEP = f"DELETE FROM handoff WHERE at < clock_timestamp() - interval '{2 * WITHIN} seconds'"  # noqa: S608  our own words
_PUT = "INSERT INTO handoff (id, holder, agent, answer) VALUES (%s, %s, %s, %s)"
_WAITS = "SELECT 1 FROM handoff WHERE id = %s AND outcome IS NULL"
_END = "DELETE FROM handoff WHERE id = %s RETURNING taken, outcome"
_MINE = "SELECT id, taken FROM handoff WHERE holder = %s"
_TAKE = "UPDATE handoff SET taken = true WHERE holder = %s AND NOT taken RETURNING id, agent, answer"
_TELL = "UPDATE handoff SET outcome = %s WHERE id = %s"


class PostgresHandoffs:
    """Rows that two replicas pass to each other."""

    def __init__(self, state: StateDatabase, member: Member) -> None:
        self._state, self._member = state, member
        self._news = anyio.Event()
        self._under_way: dict[str, anyio.CancelScope] = {}

    @property
    def here(self) -> str:
        return self._member.id

    def heard(self) -> None:
        """Somebody wrote, took or deleted a row."""
        self._news.set()
        self._news = anyio.Event()

    async def hand(self, holder: str, agent: str, answer: str) -> str | None:
        try:
            if await to_thread.run_sync(self._member.is_there, holder):
                return await self._handed(secrets.token_hex(16), holder, agent, answer)
        except OSError:
            raise HandoffLost from None
        return None

    async def follow(self, go_on: GoOn) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                news = self._news
                try:
                    await self._look(go_on, tasks)
                except OSError:
                    await anyio.sleep(LOOK)
                else:
                    await news.wait()

    async def _handed(self, number: str, holder: str, agent: str, answer: str) -> str | None:
        taken, outcome = True, None
        try:
            await to_thread.run_sync(self._put, number, holder, agent, answer)
            with anyio.move_on_after(WITHIN):
                await self._wait(number, holder)
        finally:
            with anyio.CancelScope(shield=True), suppress(OSError):
                taken, outcome = await to_thread.run_sync(self._end, number)
        if taken and outcome is None:
            raise HandoffLost
        return outcome

    async def _wait(self, number: str, holder: str) -> None:
        """Until there is an outcome, or there will be none; a database that is away is tried again."""
        while True:
            news = self._news
            with suppress(OSError):
                if await to_thread.run_sync(self._is_over, number, holder):
                    return
            with anyio.move_on_after(LOOK):
                await news.wait()

    async def _look(self, go_on: GoOn, tasks: TaskGroup) -> None:
        """Begin with the answers that are new, and stop where nobody waits any more."""
        mine = await to_thread.run_sync(self._mine)
        for number in self._under_way.keys() - mine.keys():
            self._under_way[number].cancel()
        if not all(mine.values()):
            for number, agent, answer in await to_thread.run_sync(self._take):
                tasks.start_soon(self._go_on, number, go_on, agent, answer)

    async def _go_on(self, number: str, go_on: GoOn, agent: str, answer: str) -> None:
        with anyio.CancelScope() as scope:
            self._under_way[number] = scope
            try:
                await self._tell(number, await go_on(agent, answer))
            finally:
                del self._under_way[number]

    async def _tell(self, number: str, outcome: str) -> None:
        while True:
            try:
                await to_thread.run_sync(self._write, number, outcome)
                return
            except OSError:
                await anyio.sleep(LOOK)

    def _put(self, number: str, holder: str, agent: str, answer: str) -> None:
        with self._state.writing("handoffs") as connection:
            connection.execute(_SWEEP.encode())
            connection.execute(_PUT, (number, holder, agent, answer))

    def _is_over(self, number: str, holder: str) -> bool:
        with self._state.reading() as connection:
            waits = connection.execute(_WAITS, (number,)).fetchone() is not None
        return not (waits and self._member.is_there(holder))

    def _end(self, number: str) -> tuple[bool, str | None]:
        """Delete the row; whether it was taken, and the outcome."""
        with self._state.writing("handoffs") as connection:
            row = connection.execute(_END, (number,)).fetchone()
        return (True, None) if row is None else (row[0], row[1])

    def _mine(self) -> dict[str, bool]:
        """The rows for this replica, and whether it took them."""
        with self._state.reading() as connection:
            return dict(list(connection.execute(_MINE, (self.here,)).fetchall()))

    def _take(self) -> list[tuple[str, str, str]]:
        with self._state.writing("handoffs") as connection:
            return [(number, agent, said) for number, agent, said in connection.execute(_TAKE, (self.here,)).fetchall()]

    def _write(self, number: str, outcome: str) -> None:
        with self._state.writing("handoffs") as connection:
            connection.execute(_TELL, (outcome, number))
