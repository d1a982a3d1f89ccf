"""A store in a database: one schema holds journal and state, so a move is one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice

from toolgrove.store.moving.journal_tables import TABLES, Row, Table
from toolgrove.store.moving.state_contents import StateContents
from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import Connection, connect, unavailable
from toolgrove.store.postgres.migrating import current, opened
from toolgrove.store.state import Moment
from toolgrove.store.state.deeds import read_deed
from toolgrove.store.state.postgres.approvals import ApprovalRows
from toolgrove.store.state.postgres.logins import every_login, put_login
from toolgrove.store.state.postgres.pins import put_pin, read_pins

_MANY = 1_000
_PATIENT = (
    "SELECT set_config('statement_timeout', '0', false), set_config('idle_in_transaction_session_timeout', '0', false)"
)
_ALIVE = "SELECT count(*) FROM replica WHERE seen > clock_timestamp() - interval '15 seconds'"
_COUNTERS = {"idempotency": "number", "expanded": "place"}


class PostgresPlace:
    """The schema of a project."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        self._connection: Connection | None = None

    @property
    def told(self) -> str:
        """What it is called, without its password."""
        return self._address.told

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Have it at one moment; no gateway may be at work in it."""
        with connect(self._address) as connection, unavailable(self._address):
            if not current(connection, self._address):
                raise ValueError(
                    f"{self.told} is empty or of an older version; `toolgrove migrate {self.told}` brings it up to date"
                )
            connection.execute(_PATIENT)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            alive = connection.execute(_ALIVE).fetchone()
            if alive != (0,):
                raise ValueError(
                    f"{self.told} is in use: stop its gateways first, and wait 15 seconds if one was killed"
                )
            self._connection = connection
            yield

    @contextmanager
    def entering(self) -> Iterator[None]:
        """Fill it in one transaction, while nobody else can begin to use it."""
        with opened(self._address) as connection, unavailable(self._address):
            self._connection = connection
            connection.execute(_PATIENT)
            with connection.transaction():
                connection.execute("LOCK TABLE head, tokens, deeds IN EXCLUSIVE MODE")
                full = [table.name for table in TABLES if next(self.rows(table), None) is not None]
                if full or not self.state().is_empty:
                    raise ValueError(
                        f"{self.told} is not empty ({', '.join(full or ['state'])}), and only an empty store can be "
                        "filled: name another schema"
                    )
                yield
                for table, column in _COUNTERS.items():
                    connection.execute(_set_counter(table, column).encode())

    def rows(self, table: Table) -> Iterator[Row]:
        """Every row, in order; what is large comes in pieces."""
        with self._open.cursor(name="rows") as cursor:
            cursor.itersize = _MANY
            yield from cursor.execute(table.select.encode())

    def put(self, table: Table, rows: Iterable[Row]) -> None:
        """Fill a table."""
        marks = ", ".join(["%s"] * table.width)
        text = f"INSERT INTO {table.name} ({table.columns}) OVERRIDING SYSTEM VALUE VALUES ({marks})"  # noqa: S608
        remaining = iter(rows)
        with self._open.cursor() as cursor:
            while some := list(islice(remaining, _MANY)):
                cursor.executemany(text.encode(), some)

    def state(self) -> StateContents:
        """What people decided."""
        connection = self._open
        pins, met = read_pins(connection)
        deeds = connection.execute("SELECT number, body FROM deeds ORDER BY number").fetchall()
        tokens = connection.execute(
            'SELECT hash, holder, used_at, expires_at FROM tokens ORDER BY hash COLLATE "C"'
        ).fetchall()
        return StateContents(
            pins=tuple(pins[key] for key in sorted(pins)),
            met=tuple(sorted(met)),
            approvals=tuple(ApprovalRows(connection).all()),
            tokens=tuple((kept, holder, used, ends) for kept, holder, used, ends in tokens),
            logins=tuple(every_login(connection)),
            deeds=tuple((number, read_deed(json.loads(body))) for number, body in deeds),
        )

    def put_state(self, contents: StateContents) -> None:
        """Write it, in the same transaction as the rest."""
        connection = self._open
        for pin in contents.pins:
            put_pin(connection, pin)
        for approval in contents.approvals:
            ApprovalRows(connection).put(approval)
        for login in contents.logins:
            put_login(connection, login)
        bodies = [(json.dumps(asdict(deed)),) for _, deed in contents.deeds]
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO met (server) VALUES (%s)", [(server,) for server in contents.met])
            cursor.executemany(
                "INSERT INTO tokens (hash, holder, used_at, expires_at) VALUES (%s, %s, %s, %s)", contents.tokens
            )
            cursor.executemany("INSERT INTO deeds (body) VALUES (%s)", bodies)

    def now(self) -> Moment:
        """The time by the database, which is both clocks of its approvals."""
        row = self._open.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        assert row is not None  # noqa: S101  (a SELECT of one value)
        return Moment(row[0], row[0])

    @property
    def _open(self) -> Connection:
        assert self._connection is not None  # noqa: S101  (asked for within leaving or entering)
        return self._connection


def _set_counter(table: str, column: str) -> str:
    last = f"coalesce(max({column}), 0) + 1"
    return f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), {last}, false) FROM {table}"  # noqa: S608
