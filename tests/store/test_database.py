"""The database of a project: its address, its versions, and who may do what in it."""

import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from services.postgres import Postgres
from toolgrove.store.postgres import DatabaseAddress, needing_psycopg
from toolgrove.store.postgres.connecting import DatabaseUnavailable, connect, settings
from toolgrove.store.postgres.migrating import grant, migrate, opened
from toolgrove.store.postgres.migrations import steps
from toolgrove.store.unusable import StoreUnusable


def test_an_address_is_read_as_libpq_reads_it_and_never_shown_with_its_password() -> None:
    address = DatabaseAddress.of(
        "postgresql://app:s3cret%40x@db1:5433,db2/grove?sslmode=verify-full&schema=team_a&connect_timeout=9"
    )
    given = settings(address)
    assert (given["host"], given["port"], given["dbname"]) == ("db1,db2", "5433,", "grove")
    assert (given["password"], given["sslmode"], given["connect_timeout"]) == ("s3cret@x", "verify-full", "9")
    assert address.schema == "team_a"
    assert address.told == "postgresql://db1:5433,db2/grove?schema=team_a"
    assert "s3cret" not in repr(address)


def test_projects_that_name_no_schema_have_one_each() -> None:
    names = {
        DatabaseAddress.of("postgresql://db/grove", project=name).schema for name in ("default", "Ops Team", "ops")
    }
    assert names == {"toolgrove_default", "toolgrove_ops_team", "toolgrove_ops"}


@pytest.mark.parametrize(
    "text", ["mysql://db/grove", "postgresql://db/grove?schema=A-b", "postgresql://db/x?schema=a&schema=b"]
)
def test_an_address_that_cannot_be_right_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"postgresql://|schema"):
        DatabaseAddress.of(text)


def test_an_option_that_libpq_does_not_know_is_refused_without_repeating_the_password() -> None:
    with pytest.raises(StoreUnusable) as caught:
        settings(DatabaseAddress.of("postgresql://app:s3cret@db/grove?colour=blue"))
    assert "s3cret" not in str(caught.value)
    assert "libpq cannot read" in str(caught.value)


def test_without_psycopg_one_hears_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreUnusable, match=r"pip install 'toolgrove\[postgres\]'"):
        needing_psycopg("toolgrove.store.postgres.connecting", where="postgresql://db/grove")


def test_a_database_that_is_not_there_is_said_to_be_unavailable() -> None:
    with pytest.raises(DatabaseUnavailable, match=r"postgresql://127\.0\.0\.1:1/grove\?schema=x cannot be used"):
        connect(DatabaseAddress.of("postgresql://127.0.0.1:1/grove?schema=x"))


def test_processes_that_open_an_empty_schema_at_once_migrate_it_once(database: str, postgres: Postgres) -> None:
    address = DatabaseAddress.of(database)
    with ThreadPoolExecutor(4) as pool:
        for connection in pool.map(opened, [address] * 4):
            connection.close()
    taken = postgres.ask(f"SELECT number FROM {address.schema}.schema_steps ORDER BY number")
    assert taken == [(step.number,) for step in steps()]
    with opened(address) as connection:
        assert migrate(connection, address) == 0


def test_a_schema_of_a_newer_version_is_refused(database: str, postgres: Postgres) -> None:
    address = DatabaseAddress.of(database)
    opened(address).close()
    postgres.ask(f"INSERT INTO {address.schema}.schema_steps (number, name) VALUES (9000, 'later')")
    with pytest.raises(StoreUnusable, match=r"has version 9000.*Update Toolgrove"):
        opened(address)


def test_the_applications_role_reads_and_writes_rows_and_can_change_nothing_else(
    database: str, postgres: Postgres
) -> None:
    address = DatabaseAddress.of(database)
    role = f"app_{address.schema}"
    postgres.ask(f"CREATE ROLE {role} LOGIN")
    app = DatabaseAddress.of(postgres.address(address.schema, user=role))
    with pytest.raises(StoreUnusable, match=r"may not change tables.*toolgrove migrate"):
        opened(app)
    with opened(address) as owner:
        grant(owner, address, role)
    with opened(app) as connection:
        connection.execute("INSERT INTO tokens (hash, holder) VALUES ('h', 'ann')")
        connection.execute("INSERT INTO deeds (body) VALUES ('{}')")
        for forbidden in ("DROP TABLE tokens", "CREATE TABLE more ()", "DELETE FROM schema_steps", "TRUNCATE tokens"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(forbidden.encode())


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_the_server_of_the_tests_keeps_what_was_committed_when_it_is_killed(
    end: str, database: str, postgres: Postgres
) -> None:
    address = DatabaseAddress.of(database)
    with opened(address) as connection:
        connection.execute("INSERT INTO tokens (hash, holder) VALUES ('h', 'ann')")
        getattr(postgres, end)()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(DatabaseUnavailable):
        connect(address)
    postgres.start()
    with connect(address) as connection:
        assert connection.execute("SELECT holder FROM tokens").fetchall() == [("ann",)]
