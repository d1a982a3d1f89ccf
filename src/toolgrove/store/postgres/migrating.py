"""Bringing a project's schema to the newest version, by whichever process comes first.

A schema may be newer than this process: it is used all the same as long as it says that this version may still write.
"""

from __future__ import annotations

import hashlib
import logging

import psycopg
from psycopg import sql

from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import Connection, connect, unavailable
from toolgrove.store.postgres.migrations import steps
from toolgrove.store.unusable import StoreUnusable

log = logging.getLogger("toolgrove.store")
_VERSION = "SELECT max(number) FROM schema_steps"
_HAS_HEAD = 2
_ALONE = "LOCK TABLE head IN ACCESS EXCLUSIVE MODE"
"""Whoever writes takes the head first: so a step does too, and neither waits for the other for ever."""
_OLDEST = "SELECT oldest FROM head"
_TABLE = """
CREATE TABLE IF NOT EXISTS schema_steps (
    number integer PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now()
)
"""


def opened(address: DatabaseAddress) -> Connection:
    """A connection to a schema of the newest version; what is missing is made, if the role may."""
    connection = connect(address)
    try:
        migrate(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


def migrate(connection: Connection, address: DatabaseAddress) -> int:
    """Take the steps that the schema has not seen; how many these were. Two who come at once take turns."""
    known = len(steps())
    with unavailable(address):
        version = _version(connection, address)
        _refuse_newer(connection, address, version)
        if version >= known:
            return 0
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(address, "migrations"),))
                if not _exists(connection, address):  # IF NOT EXISTS asks for the right to create even where one exists
                    connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
                connection.execute(_TABLE)
                version = _version(connection, address)
                _refuse_newer(connection, address, version)
                if version >= _HAS_HEAD:
                    connection.execute(_ALONE)
                for step in steps()[version:]:
                    connection.execute(step.sql.encode())
                    connection.execute(
                        "INSERT INTO schema_steps (number, name) VALUES (%s, %s)", (step.number, step.name)
                    )
        except psycopg.errors.InsufficientPrivilege:
            raise StoreUnusable(
                where=address.told,
                problem=f"has version {version} of {known}, and this role may not change tables",
                advice="Run `toolgrove migrate` with an address of the role that owns the schema.",
            ) from None
    log.info("The database %s was brought to version %d.", address.told, known)
    return known - version


def current(connection: Connection, address: DatabaseAddress) -> bool:
    """Whether the schema is of this version or a newer one; StoreUnusable if this one may not write that any more."""
    with unavailable(address):
        version = _version(connection, address)
        _refuse_newer(connection, address, version)
    return version >= len(steps())


def grant(connection: Connection, address: DatabaseAddress, role: str) -> None:
    """Give a role the rights that serving needs, now and after later steps: to read and write rows, nothing else."""
    names = {"schema": sql.Identifier(address.schema), "role": sql.Identifier(role)}
    with unavailable(address), connection.transaction():
        for statement in (
            "GRANT USAGE ON SCHEMA {schema} TO {role}",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
            "GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT USAGE ON SEQUENCES TO {role}",
            "REVOKE INSERT, UPDATE, DELETE ON {schema}.schema_steps FROM {role}",
        ):
            connection.execute(sql.SQL(statement).format(**names))


def lock_key(address: DatabaseAddress, what: str) -> int:
    """The number of an advisory lock of one project: the database has one space of them for all."""
    digest = hashlib.sha256(f"toolgrove/{address.schema}/{what}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _exists(connection: Connection, address: DatabaseAddress) -> bool:
    found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (address.schema,))
    return found.fetchone() is not None


def _version(connection: Connection, address: DatabaseAddress) -> int:
    name = sql.SQL("{}.schema_steps").format(sql.Identifier(address.schema)).as_string(connection)
    if connection.execute("SELECT to_regclass(%s)", (name,)).fetchone() == (None,):
        return 0
    row = connection.execute(_VERSION).fetchone()
    return int(row[0] or 0) if row is not None else 0


def _refuse_newer(connection: Connection, address: DatabaseAddress, version: int) -> None:
    known = len(steps())
    if version <= known:
        return
    row = connection.execute(_OLDEST).fetchone()
    if row is None or int(row[0]) > known:
        raise StoreUnusable(
            where=address.told,
            problem=f"has version {version}, and this version of Toolgrove knows versions up to {known}",
            advice="Update Toolgrove, or name another schema.",
        )
