"""Tokens in the state file."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping

from toolgrove.store.state.sqlite.deeds import note
from toolgrove.store.state.sqlite.file import StateFile
from toolgrove.store.state.tokens import made, token_deed, told_until
from toolgrove.types import Clock, SystemClock


class SqliteTokens:
    """Tokens in the state file; one that another process issues or revokes counts at once."""

    def __init__(self, state: StateFile, clock: Clock | None = None) -> None:
        self._state = state
        self._clock = clock or SystemClock()

    def issue(self, holder: str, *, by: str = "", replace: bool = False, lifetime: float | None = None) -> str:
        """Make a token, shown this once; the holder's others stay good, unless it is to replace them."""
        token, kept = made()
        now = self._clock.wall()
        until = None if lifetime is None else now + lifetime
        with self._state.writing() as connection:
            others = connection.execute("SELECT hash FROM tokens WHERE holder = ?", (holder,)).fetchall()
            for (other,) in others if replace else ():
                self._drop(connection, other, by)
            connection.execute("INSERT INTO tokens (holder, hash, expires_at) VALUES (?, ?, ?)", (holder, kept, until))
            note(connection, token_deed("made", holder, kept, by=by, at=now, **told_until(until)))
        return token

    def holders(self, *, also_expired: bool = False) -> Mapping[str, str]:
        """Whose each token is, by the hash under which it is kept; one whose time is over is nobody's."""
        good = "WHERE ? OR expires_at IS NULL OR expires_at > ?"
        with self._state.reading() as connection:
            rows = connection.execute(
                f"SELECT hash, holder FROM tokens {good} ORDER BY holder, hash",  # noqa: S608
                (also_expired, self._clock.wall()),
            )
            return dict(rows.fetchall())

    def expiries(self) -> Mapping[str, float]:
        """When each token is void that is so by itself, by its hash."""
        with self._state.reading() as connection:
            found = connection.execute("SELECT hash, expires_at FROM tokens WHERE expires_at IS NOT NULL")
            return dict(found.fetchall())

    def revoke(self, kept: str, *, by: str = "") -> None:
        """Make the token with this hash void."""
        with self._state.writing() as connection:
            self._drop(connection, kept, by)

    def unused(self) -> Collection[str]:
        """The hashes of those that nobody came with yet."""
        with self._state.reading() as connection:
            return {kept for (kept,) in connection.execute("SELECT hash FROM tokens WHERE used_at IS NULL")}

    def use(self, kept: str, *, source: str) -> None:
        """Note that somebody came with a token; only the first time counts."""
        now = self._clock.wall()
        with self._state.writing() as connection:
            found = connection.execute(
                "SELECT holder FROM tokens WHERE hash = ? AND used_at IS NULL", (kept,)
            ).fetchone()
            if found is not None:
                connection.execute("UPDATE tokens SET used_at = ? WHERE hash = ?", (now, kept))
                deed = token_deed("first_used", found[0], kept, by=found[0], at=now, **{"from": source})
                note(connection, deed)

    def _drop(self, connection: sqlite3.Connection, kept: str, by: str) -> None:
        found = connection.execute("SELECT holder FROM tokens WHERE hash = ?", (kept,)).fetchone()
        if found is not None:
            connection.execute("DELETE FROM tokens WHERE hash = ?", (kept,))
            note(connection, token_deed("revoked", found[0], kept, by=by, at=self._clock.wall()))
