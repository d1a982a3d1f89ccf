"""Tokens in the project's database."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from toolgrove.store.postgres.connecting import Connection
from toolgrove.store.state.postgres.copies import Copy
from toolgrove.store.state.postgres.database import StateDatabase
from toolgrove.store.state.postgres.deeds import note
from toolgrove.store.state.tokens import made, token_deed, told_until
from toolgrove.types import Clock

_ALL = 'SELECT hash, holder, used_at, expires_at FROM tokens ORDER BY holder COLLATE "C", hash COLLATE "C"'
Row = tuple[str, str, float | None, float | None]


class PostgresTokens:
    """Tokens that every replica shares; one that another issues or revokes counts as soon as that is told."""

    def __init__(self, state: StateDatabase, clock: Clock | None = None) -> None:
        self._state = state
        self._clock = clock or state.clock
        self.copy: Copy[list[Row]] = Copy(state, "tokens", _read)

    def issue(self, holder: str, *, by: str = "", replace: bool = False, lifetime: float | None = None) -> str:
        """Make a token, shown this once; the holder's others stay good, unless it is to replace them."""
        token, kept = made()
        now = self._clock.wall()
        until = None if lifetime is None else now + lifetime
        with self.copy.changing() as connection:
            others = connection.execute("SELECT hash FROM tokens WHERE holder = %s", (holder,)).fetchall()
            for (other,) in others if replace else ():
                self._drop(connection, other, by)
            connection.execute(
                "INSERT INTO tokens (holder, hash, expires_at) VALUES (%s, %s, %s)", (holder, kept, until)
            )
            note(connection, token_deed("made", holder, kept, by=by, at=now, **told_until(until)))
        return token

    def holders(self, *, also_expired: bool = False) -> Mapping[str, str]:
        """Whose each token is, by the hash under which it is kept; one whose time is over is nobody's."""
        now = self._clock.wall()
        return {
            kept: whose for kept, whose, _, ends in self.copy.latest() if also_expired or ends is None or ends > now
        }

    def expiries(self) -> Mapping[str, float]:
        """When each token is void that is so by itself, by its hash."""
        return {kept: ends for kept, _, _, ends in self.copy.latest() if ends is not None}

    def revoke(self, kept: str, *, by: str = "") -> None:
        """Make the token with this hash void."""
        with self.copy.changing() as connection:
            self._drop(connection, kept, by)

    def unused(self) -> Collection[str]:
        """The hashes of those that nobody came with yet."""
        return {kept for kept, _, used, _ in self.copy.latest() if used is None}

    def use(self, kept: str, *, source: str) -> None:
        """Note that somebody came with a token; only the first time counts, at whichever replica."""
        now = self._clock.wall()
        with self.copy.changing() as connection:
            found = connection.execute(
                "UPDATE tokens SET used_at = %s WHERE hash = %s AND used_at IS NULL RETURNING holder", (now, kept)
            ).fetchone()
            if found is not None:
                note(connection, token_deed("first_used", found[0], kept, by=found[0], at=now, **{"from": source}))

    def _drop(self, connection: Connection, kept: str, by: str) -> None:
        found = connection.execute("DELETE FROM tokens WHERE hash = %s RETURNING holder", (kept,)).fetchone()
        if found is not None:
            note(connection, token_deed("revoked", found[0], kept, by=by, at=self._clock.wall()))


def _read(connection: Connection) -> list[Row]:
    return [(kept, holder, used, ends) for kept, holder, used, ends in connection.execute(_ALL.encode())]
