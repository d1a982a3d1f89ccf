"""The project files by which the replicas run: all should have the one that was taken last."""

from __future__ import annotations

import logging
from typing import Any

import psycopg

from toolgrove.store.postgres.presence import ALIVE
from toolgrove.store.state.postgres.database import StateDatabase
from toolgrove.store.state.postgres.members import Member

log = logging.getLogger("toolgrove.store")
Connection = psycopg.AsyncConnection[tuple[Any, ...]]
_RUNS_BY = "INSERT INTO replica (id, file) VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET file = excluded.file"
_TAKE = "INSERT INTO project_file (digest) VALUES (%s) ON CONFLICT (digest) DO UPDATE SET taken = clock_timestamp()"
# Who starts with a file that others have left behind does not make it the newest again.
_START = f"{_TAKE} WHERE NOT EXISTS (SELECT 1 FROM replica WHERE id <> %s AND file <> %s AND id IN ({ALIVE}))"  # noqa: S608  our own words
_SAME = "UPDATE replica SET file = %s WHERE id = %s AND file IS DISTINCT FROM %s"
_NEWEST = (
    f"SELECT digest FROM project_file WHERE digest IN (SELECT file FROM replica WHERE id IN ({ALIVE})) "  # noqa: S608  our own words
    "ORDER BY taken DESC LIMIT 1"
)


class ProjectFiles:
    """Knows the newest file that a process which is there runs by, and whether this one's is another."""

    def __init__(self, state: StateDatabase, member: Member) -> None:
        self._state, self._member = state, member
        self._own: str | None = None
        self._newest: str | None = None

    @property
    def newer(self) -> str | None:
        """The hash of the newest file, where this process runs by another."""
        return None if self._own is None or self._newest == self._own else self._newest

    def take(self, digest: str, *, changed: bool) -> None:
        """This process runs by a file from now on: it started with it, or the file `changed` under it."""
        self._own = self._newest = digest
        with self._state.writing("files") as connection:
            connection.execute(_RUNS_BY, (self._member.id, digest))
            if changed:
                connection.execute(_TAKE, (digest,))
            else:
                connection.execute(_START.encode(), (digest, self._member.id, digest))

    async def look(self, connection: Connection) -> None:
        """Find out which one is the newest."""
        if self._own is None:
            return
        await connection.execute(_SAME, (self._own, self._member.id, self._own))
        row = await (await connection.execute(_NEWEST.encode())).fetchone()
        before, self._newest = self.newer, self._own if row is None else str(row[0])
        if self.newer is not None and self.newer != before:
            log.warning(
                "The project file here (SHA-256 %s) is not the newest one that a replica has taken (%s).",
                self._own,
                self.newer,
            )
