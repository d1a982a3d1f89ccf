"""The state in a database that is killed, cut off or slow: whole or not at all, and never guessed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from grove_kit import ManualClock
from pool.test_approvals import ASKED
from services.postgres import Postgres
from services.proxy import Proxy
from toolgrove.call.inbox import Inbox
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.postgres.migrating import lock_key
from toolgrove.store.state import StateAway, StateBusy, hashed
from toolgrove.store.state.postgres import PostgresApprovals, PostgresTokens, StateDatabase
from toolgrove.store.state.postgres.time import DatabaseClock


@pytest.fixture
def proxy(postgres: Postgres) -> Iterator[Proxy]:
    with Proxy(postgres.port) as proxy:
        yield proxy


def through(proxy: Proxy, address: str) -> DatabaseAddress:
    there = DatabaseAddress.of(address)
    libpq = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?sslmode=disable&gssencmode=disable"
    return replace(there, libpq=libpq)


def test_a_killed_database_refuses_and_all_is_there_when_it_is_back(database: str, postgres: Postgres) -> None:
    clock = ManualClock()
    with StateDatabase(DatabaseAddress.of(database), clock) as state:
        tokens = PostgresTokens(state, clock)
        made = hashed(tokens.issue("ann"))
        postgres.kill()
        with pytest.raises(StateAway, match="nothing was changed"):
            tokens.issue("bob")
        with pytest.raises(StateAway, match="a moment ago"):  # whoever comes next need not wait for a timeout
            tokens.issue("bob")
        postgres.start()
        clock.now += 2
        assert tokens.holders() == {made: "ann"}
        assert set(tokens.holders().values()) == {"ann"}
        tokens.issue("bob")
        assert set(tokens.holders().values()) == {"ann", "bob"}


def test_a_server_that_came_back_is_not_noticed(database: str, postgres: Postgres) -> None:
    with StateDatabase(DatabaseAddress.of(database)) as state:
        tokens = PostgresTokens(state)
        tokens.issue("ann")
        assert tokens.holders()
        postgres.restart()
        tokens.issue("bob")
        assert set(tokens.holders().values()) == {"ann", "bob"}


def test_a_connection_lost_within_the_commit_is_asked_about(database: str, proxy: Proxy) -> None:
    with StateDatabase(through(proxy, database)) as state:
        tokens = PostgresTokens(state)
        tokens.issue("ann")
        proxy.cut_after_sending(b"COMMIT")
        tokens.issue("bob")  # it was committed, so it is no failure
        assert sorted(tokens.holders().values()) == ["ann", "bob"]


def test_a_connection_lost_before_the_commit_leaves_nothing(database: str, proxy: Proxy) -> None:
    with StateDatabase(through(proxy, database)) as state:
        tokens = PostgresTokens(state)
        tokens.issue("ann")
        proxy.cut_after_sending(b"INSERT INTO deeds")
        with pytest.raises(StateAway, match="nothing was changed"):
            tokens.issue("bob")
        assert sorted(tokens.holders().values()) == ["ann"]


def test_who_waits_too_long_for_its_turn_hears_that_trying_again_is_safe(database: str, postgres: Postgres) -> None:
    address = DatabaseAddress.of(database)
    with StateDatabase(address) as state, psycopg.connect(postgres.address()) as other:
        with state.reading() as reader:
            reader.execute("SELECT 1")
        with state.writing("tokens") as connection:
            connection.execute("SET lock_timeout = 50")
        other.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(address, "state"),))
        with pytest.raises(StateBusy, match="trying again is safe"):
            PostgresTokens(state).issue("ann")


@pytest.mark.anyio
async def test_replicas_whose_clocks_differ_agree_on_when_something_was_decided(database: str) -> None:
    class Fast(ManualClock):
        def wall(self) -> float:
            return super().wall() + 90_000.0

    address = DatabaseAddress.of(database)
    slow, fast = ManualClock(), Fast()
    slow.now = 77.0
    with StateDatabase(address, slow) as here, StateDatabase(address, fast) as there:
        asking = Inbox(PostgresApprovals(here), here.clock)
        deciding = Inbox(PostgresApprovals(there), there.clock)
        asked = await asking.request(ASKED)
        await deciding.decide(asked.id, approve=True, by="grace")
        assert (await asking.get(asked.id)).state == "approved"
        assert await asking.claim(ASKED, "c1") is not None


def test_the_databases_clock_runs_on_between_two_looks() -> None:
    clock = ManualClock()
    shared = DatabaseClock(clock)
    assert shared.wall() == clock.wall()
    shared.heard(5_000.0)
    clock.now += 3
    assert (shared.wall(), shared.monotonic()) == (5_003.0, 5_003.0)
