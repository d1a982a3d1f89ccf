"""Logins to servers in the project's database."""

from __future__ import annotations

import json
from dataclasses import asdict

from toolgrove.store.postgres.connecting import Connection
from toolgrove.store.state.logins import Login, login_deed
from toolgrove.store.state.postgres.database import StateDatabase
from toolgrove.store.state.postgres.deeds import note
from toolgrove.types import Clock


class PostgresLogins:
    """Logins that every replica shares; one that another makes or renews counts at once."""

    def __init__(self, state: StateDatabase, clock: Clock | None = None) -> None:
        self._state = state
        self._clock = clock or state.clock

    def of(self, server: str) -> Login | None:
        """The login to a server, if there is one."""
        with self._state.reading() as connection:
            return _found(connection, server)

    def begin(self, login: Login, *, by: str = "") -> None:
        """Keep a login that a person made, in the place of the one before."""
        with self._state.writing("logins") as connection:
            put_login(connection, login)
            note(connection, login_deed("made", login.server, by=by, at=self._clock.wall()))

    def renew(self, old: Login, new: Login) -> Login | None:
        """Put a renewed login in the place of the old one, unless that is gone; what is kept now."""
        with self._state.writing("logins") as connection:
            if _found(connection, old.server) == old:
                put_login(connection, new)
            return _found(connection, old.server)

    def forget(self, server: str, *, by: str = "") -> Login | None:
        """Drop the login to a server, and give back what was dropped."""
        with self._state.writing("logins") as connection:
            login = _found(connection, server)
            if login is not None:
                connection.execute("DELETE FROM logins WHERE server = %s", (server,))
                note(connection, login_deed("forgotten", server, by=by, at=self._clock.wall()))
        return login


def _found(connection: Connection, server: str) -> Login | None:
    row = connection.execute("SELECT body FROM logins WHERE server = %s", (server,)).fetchone()
    return None if row is None else Login(**json.loads(row[0]))


def put_login(connection: Connection, login: Login) -> None:
    """Keep a login in the place of the one before."""
    connection.execute(
        "INSERT INTO logins (server, body) VALUES (%s, %s) ON CONFLICT (server) DO UPDATE SET body = excluded.body",
        (login.server, json.dumps(asdict(login))),
    )


def every_login(connection: Connection) -> list[Login]:
    """Every login, by its server."""
    rows = connection.execute("SELECT body FROM logins ORDER BY server").fetchall()
    return [Login(**json.loads(body)) for (body,) in rows]
