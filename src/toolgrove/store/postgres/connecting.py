"""Connections to a project's database: bounded in time, and failing with words for an operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.project import OtherProject
from toolgrove.store.unusable import StoreUnusable

Connection = psycopg.Connection[tuple[Any, ...]]
DEFAULTS: Mapping[str, Any] = {
    "connect_timeout": 3,
    "tcp_user_timeout": 4000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "target_session_attrs": "read-write",
}
"""What an address that does not say so means: soon to notice a dead server, and never a standby."""
STATEMENT_MS = 10_000
LOCK_MS = 5_000


_PROJECT = "SELECT body::json ->> 'project' FROM head"


class DatabaseUnavailable(OSError):
    """The database cannot be used now; what was asked of it in this transaction did not happen."""

    def __init__(self, address: DatabaseAddress, problem: object) -> None:
        super().__init__(f"The database {address.told} cannot be used: {_one_line(problem)}")


class LeadsElsewhere(DatabaseUnavailable):
    """The address leads to the database of another project."""

    def __init__(self, address: DatabaseAddress, found: OtherProject) -> None:
        super().__init__(address, found)
        self.found = found


def settings(address: DatabaseAddress) -> dict[str, Any]:
    """What psycopg's `connect` is given, sync or async; TLS and certificates are libpq's own options."""
    try:
        given = conninfo_to_dict(address.libpq)
    except psycopg.ProgrammingError:  # its words repeat the address, password and all
        raise StoreUnusable(
            where=address.told,
            problem="has an address that libpq cannot read",
            advice="See 'Connection URIs' and the parameter key words in PostgreSQL's documentation.",
        ) from None
    return {**DEFAULTS, "application_name": "toolgrove", **given}


def session(address: DatabaseAddress) -> tuple[str, list[str]]:
    """The statement that prepares a connection: our schema, and no statement or lock that takes for ever."""
    wanted = {
        "search_path": address.schema,
        "statement_timeout": str(STATEMENT_MS),
        "lock_timeout": str(LOCK_MS),
        "idle_in_transaction_session_timeout": str(STATEMENT_MS),
        "synchronous_commit": "on",
        "client_encoding": "UTF8",
        "timezone": "UTC",
    }
    calls = ", ".join("set_config(%s, %s, false)" for _ in wanted)
    return f"SELECT {calls}", [part for pair in wanted.items() for part in pair]


def connect(address: DatabaseAddress) -> Connection:
    """A connection in autocommit, prepared; `with connection.transaction()` begins one. DatabaseUnavailable if none."""
    with unavailable(address):
        connection: Connection = psycopg.connect(autocommit=True, **settings(address))
        try:
            connection.execute(*_prepared(address))
            _see_whose(connection, address)
        except BaseException:
            connection.close()
            raise
        return connection


def _see_whose(connection: Connection, address: DatabaseAddress) -> None:
    """Look whether it is the database of the project that is expected there."""
    if address.expected.known is None:
        return
    row = None
    with suppress(psycopg.errors.UndefinedTable):
        row = connection.execute(_PROJECT).fetchone()
    found = None if row is None else row[0]
    known = address.expected.refuses(found)
    if known is not None:
        raise LeadsElsewhere(
            address, OtherProject(where=address.told, project=found or "that has no name", known=known)
        )


def _prepared(address: DatabaseAddress) -> tuple[bytes, list[str]]:
    statement, values = session(address)
    return statement.encode(), values


@contextmanager
def unavailable(address: DatabaseAddress) -> Iterator[None]:
    """Whatever psycopg raises inside, as a DatabaseUnavailable."""
    try:
        yield
    except psycopg.Error as error:
        raise DatabaseUnavailable(address, error) from error


def _one_line(problem: object) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0] if lines else type(problem).__name__
