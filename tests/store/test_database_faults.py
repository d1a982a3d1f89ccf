"""A database that is killed, cut off, busy or elsewhere: what was answered is what happened, and reads go on."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest

from grove_kit import Hand, ManualClock, hand
from pool.http.test_http_calls import certificate
from services.postgres import Postgres
from services.proxy import Proxy
from store_kit import stored
from toolgrove import Grove
from toolgrove.store.journal.postgres.following import read_all
from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.journal.tables.stall import PATIENCE
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.postgres.connecting import connect
from toolgrove.store.postgres.presence import BEAT
from toolgrove.store.unusable import StoreUnusable
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio
ASLEEP = "WHERE wait_event = 'PgSleep'"
ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"a": 1}}
SABOTAGE = """
CREATE SEQUENCE {schema}.tries;
CREATE FUNCTION {schema}.sabotage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('{schema}.tries') <= {times} THEN {deed}; END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER sabotage AFTER INSERT ON {schema}.journal DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION {schema}.sabotage()
"""
"""Does something at COMMIT, the first times; a sequence counts also what is rolled back."""


@asynccontextmanager
async def opened(address: str, **options: Any) -> AsyncIterator[tuple[Grove, Hand]]:
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(stored(address, concurrency="node"), **options) as grove:
            yield grove, await hand(grove, "ann")


async def children(reader: Hand, node: str = "root") -> int:
    return int((await reader.ok("get_node", nodeId=node))["childrenCount"])


async def all_is_well(grove: Grove, address: str, count: int) -> None:
    """In this process and in the next one there are so many nodes, and the audit log is whole."""
    assert await children(await hand(grove, "ann")) == count
    assert (await grove.audit_log.verify()).breach is None
    assert grove.troubles == ()
    async with opened(address) as (_, again):
        assert await children(again) == count


def sabotaged(postgres: Postgres, address: str, deed: str, times: int) -> None:
    schema = DatabaseAddress.of(address).schema
    with psycopg.connect(postgres.address(), autocommit=True) as connection:
        connection.execute(SABOTAGE.format(schema=schema, deed=deed, times=times).encode())


async def test_a_commit_whose_answer_was_lost_is_looked_up_and_found(postgres: Postgres, database: str) -> None:
    with Proxy(postgres.port) as proxy:
        through = database.replace(str(postgres.port), str(proxy.port))
        async with opened(through) as (grove, ann):
            await ann.ok("add_child", **ADD)
            proxy.cut_after_sending(b"COMMIT")
            await ann.ok("add_child", **ADD)
            await all_is_well(grove, database, 2)


async def test_a_commit_that_died_with_its_connection_is_looked_up_and_made_again(
    postgres: Postgres, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(database) as (grove, ann):
        sabotaged(postgres, database, "PERFORM pg_terminate_backend(pg_backend_pid())", times=1)
        await ann.ok("add_child", **ADD)
        await all_is_well(grove, database, 1)
    assert "The connection was cut in the middle of COMMIT; nothing of it was kept." in caplog.messages


@pytest.mark.parametrize("state", ["serialization_failure", "deadlock_detected"])
async def test_a_transaction_that_lost_a_race_is_tried_again(postgres: Postgres, database: str, state: str) -> None:
    async with opened(database) as (grove, ann):
        sabotaged(postgres, database, f"RAISE {state}", times=2)
        await ann.ok("add_child", **ADD)
        await all_is_well(grove, database, 1)


async def test_an_error_that_stays_refuses_the_change_and_leaves_nothing_of_it(
    postgres: Postgres, database: str
) -> None:
    async with opened(database) as (grove, ann):
        sabotaged(postgres, database, "RAISE disk_full", times=1)
        refusal = await ann.refused("add_child", **ADD)
        assert refusal["reason"] == "journal_unavailable"
        assert grove.troubles == ("store_unwritable",)
        await ann.ok("add_child", **ADD)
        await all_is_well(grove, database, 1)


async def test_a_killed_database_refuses_changes_answers_reads_and_nothing_is_lost(
    postgres: Postgres, database: str
) -> None:
    clock = ManualClock()
    async with opened(database, clock=clock) as (grove, ann):
        await ann.ok("add_child", **ADD)
        postgres.kill()
        answers: list[dict[str, Any]] = []

        async def write() -> None:
            answers.append(await ann("add_child", **ADD, versionToken=await ann.version()))

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await eventually(lambda: grove.troubles == ("store_unreachable",))
            assert await children(ann) == 1
            clock.now += PATIENCE
        (refusal,) = [answer["error"] for answer in answers]
        assert refusal["reason"] == "journal_unavailable"
        assert refusal["retryAfter"] >= 2
        assert "The database does not answer" in refusal["message"]
        assert "safe to repeat the call" in refusal["message"]
        postgres.start()
        await eventually(lambda: grove.healthy)
        await ann.ok("add_child", **ADD)
        await all_is_well(grove, database, 2)


async def test_only_a_change_that_may_have_been_kept_waits_for_a_database_that_is_away(
    postgres: Postgres, database: str
) -> None:
    clock = ManualClock()
    with Proxy(postgres.port) as proxy:
        through = database.replace(str(postgres.port), str(proxy.port))
        async with opened(through, clock=clock) as (grove, ann):
            places = [(await ann.ok("add_child", **ADD))["nodeId"] for _ in range(2)]
            sabotaged(postgres, database, f"PERFORM pg_sleep({DEADLINE})", times=1)
            version = await ann.version()
            answers: dict[str, dict[str, Any]] = {}

            async def write(place: str) -> None:
                answers[place] = await ann("add_child", **{**ADD, "parentNodeId": place}, versionToken=version)

            async with anyio.create_task_group() as group:
                for place in places:
                    group.start_soon(write, place)
                    await eventually(lambda: postgres.ask(f"SELECT pid FROM pg_stat_activity {ASLEEP}"))
                await anyio.wait_all_tasks_blocked()
                proxy.hold()
                proxy.cut()
                await eventually(lambda: grove.troubles == ("store_unreachable",))
                try:
                    clock.now += PATIENCE
                    await eventually(lambda: answers)
                    assert answers.keys() == {places[1]}
                finally:
                    postgres.ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity {ASLEEP}")
                    proxy.resume()
            assert [answers[place]["error"]["reason"] for place in places] == 2 * ["journal_unavailable"]
            assert [await children(ann, place) for place in places] == [0, 0]
            await eventually(lambda: grove.healthy)
            await all_is_well(grove, database, 2)


async def test_a_write_that_waits_for_a_database_goes_on_when_it_is_back(postgres: Postgres, database: str) -> None:
    async with opened(database, clock=ManualClock()) as (grove, ann):
        version = await ann.version()
        postgres.stop()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: ann.ok("add_child", **ADD, versionToken=version, idempotencyKey="k"))
            await eventually(lambda: grove.troubles == ("store_unreachable",))
            postgres.start()
        await ann.ok("add_child", **ADD, idempotencyKey="k")
        await all_is_well(grove, database, 1)


async def test_a_head_that_somebody_holds_is_told_and_the_write_goes_on_when_it_is_free(
    postgres: Postgres, database: str
) -> None:
    schema = DatabaseAddress.of(database).schema
    async with opened(database, clock=ManualClock()) as (grove, ann):
        with psycopg.connect(postgres.address()) as other:
            other.execute(f"SELECT 1 FROM {schema}.head FOR UPDATE".encode())
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: ann.ok("add_child", **ADD))
                await eventually(lambda: grove.troubles == ("store_unreachable",))
                other.rollback()
        await eventually(lambda: grove.healthy)
        await all_is_well(grove, database, 1)


@asynccontextmanager
async def frozen(postgres: Postgres, proxy: Proxy, schema: str) -> AsyncIterator[None]:
    """Every process of the database stands still."""
    pid = postgres.pid
    workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    processes = [pid, *map(int, workers)]
    for one in processes:
        os.kill(one, signal.SIGSTOP)
    try:
        yield
    finally:
        for one in processes:
            os.kill(one, signal.SIGCONT)


@asynccontextmanager
async def head_held(postgres: Postgres, proxy: Proxy, schema: str) -> AsyncIterator[None]:
    with psycopg.connect(postgres.address()) as other:
        other.execute(f"SELECT 1 FROM {schema}.head FOR UPDATE".encode())
        yield
        other.rollback()


@asynccontextmanager
async def parted(postgres: Postgres, proxy: Proxy, schema: str) -> AsyncIterator[None]:
    """Nothing comes through."""
    proxy.hold()
    try:
        yield
    finally:
        proxy.resume()


@asynccontextmanager
async def cut_off(postgres: Postgres, proxy: Proxy, schema: str) -> AsyncIterator[None]:
    """Open connections are cut, and new ones come nowhere."""
    proxy.hold()
    proxy.cut()
    try:
        yield
    finally:
        proxy.resume()


@pytest.mark.parametrize("fault", [frozen, head_held, parted, cut_off])
async def test_whatever_keeps_a_database_from_answering_is_told_as_that(
    postgres: Postgres, database: str, fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """And never as a program that has locked a file."""
    clock, schema = ManualClock(), DatabaseAddress.of(database).schema
    caplog.set_level(logging.DEBUG)
    with Proxy(postgres.port) as proxy:
        through = database.replace(str(postgres.port), str(proxy.port))
        async with opened(through, clock=clock) as (grove, ann):
            version, answers = await ann.version(), []

            async def write() -> None:
                answers.append(await ann("add_child", **ADD, versionToken=version))

            async with anyio.create_task_group() as group, fault(postgres, proxy, schema):
                group.start_soon(write)
                await eventually(lambda: grove.troubles != ())
                troubles = grove.troubles
                clock.now += PATIENCE
                refusal = await ann.refused("add_child", **ADD, versionToken=version)
            assert troubles == ("store_unreachable",)
            assert refusal["message"].startswith("The database does not answer, so nothing was changed")
            await eventually(lambda: grove.healthy)
            await all_is_well(grove, database, sum("error" not in answer for answer in answers))
    assert "another program" not in caplog.text.lower()


async def test_a_project_goes_on_at_the_next_address_when_one_is_gone(postgres: Postgres, database: str) -> None:
    with Proxy(postgres.port) as first, Proxy(postgres.port) as second:
        both = database.replace(f":{postgres.port}/", f":{first.port},127.0.0.1:{second.port}/")
        async with opened(both) as (grove, ann):
            await ann.ok("add_child", **ADD)
            first.close()
            await ann.ok("add_child", **ADD)
            await all_is_well(grove, database, 2)


async def test_a_database_that_is_not_there_is_named_without_its_password(postgres: Postgres, database: str) -> None:
    postgres.stop()
    address = database.replace("postgres@", "postgres:hunter2@")
    with pytest.raises(StoreUnusable) as refusal:
        async with Grove(stored(address)):
            pass
    assert "Check that the database runs" in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


async def test_a_row_that_was_changed_by_hand_is_noticed(postgres: Postgres, database: str) -> None:
    schema = DatabaseAddress.of(database).schema
    async with opened(database) as (_, ann):
        await ann.ok("add_child", **ADD)
    postgres.ask(f"UPDATE {schema}.node SET body = replace(body, 'T', 'U')")
    with pytest.raises(StoreUnusable, match="is damaged: a row of the table 'node' fails its checksum"):
        async with Grove(stored(database)):
            pass


async def test_an_audit_record_that_was_altered_in_the_database_is_found(postgres: Postgres, database: str) -> None:
    schema = DatabaseAddress.of(database).schema
    async with opened(database) as (grove, ann):
        await ann.ok("add_child", **ADD)
        assert (await grove.audit_log.verify()).breach is None
        postgres.ask(f"UPDATE {schema}.audit SET line = replace(line, 'ann', 'bob') WHERE number = 1")
        breach = (await grove.audit_log.verify()).breach
        assert breach is not None
        assert breach.problem == "the record was altered"


async def test_all_that_a_group_of_calls_leaves_is_kept_in_one_transaction(postgres: Postgres, database: str) -> None:
    schema = DatabaseAddress.of(database).schema
    async with opened(database, clock=ManualClock()) as (grove, ann):
        for _ in range(3):
            await ann.ok("add_child", **ADD)
        version = await ann.version()
        with psycopg.connect(postgres.address()) as other:
            other.execute(f"SELECT 1 FROM {schema}.head FOR UPDATE".encode())
            async with anyio.create_task_group() as group:
                for number in (1, 2, 3):
                    change = {"nodeId": f"n{number}", "tags": ["red"], "versionToken": version}
                    group.start_soon(partial(ann.ok, "tag_node", **change, idempotencyKey=f"k{number}"))
                await eventually(lambda: grove.troubles == ("store_unreachable",))
                other.rollback()
    tables = {"journal": "revision", "entry": "revision", "idempotency": "number"}
    last = [f"SELECT xmin::text FROM {schema}.{name} ORDER BY {by} DESC LIMIT 3" for name, by in tables.items()]
    audited = f"SELECT xmin::text FROM {schema}.audit WHERE operation = 'tag_node'"
    found = [sorted(postgres.ask(question)) for question in (*last, audited)]
    assert [len(rows) for rows in found] == [3, 3, 3, 3]
    assert all(rows == found[0] for rows in found)
    assert len(set(found[0])) < 3  # the first may be on its way alone; those behind it share one


async def test_reads_go_on_while_the_databases_disk_is_slow_and_the_change_is_kept_once(
    postgres: Postgres, database: str
) -> None:
    async with opened(database, clock=ManualClock()) as (grove, ann):
        await ann.ok("add_child", **ADD)
        sabotaged(postgres, database, "PERFORM pg_sleep(2)", 1)
        answers: list[dict[str, Any]] = []

        async def write() -> None:
            answers.append(await ann.ok("add_child", **ADD, idempotencyKey="k"))

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await eventually(lambda: grove.troubles == ("store_unreachable",))
            assert answers == []
            assert (await ann.ok("get_node", nodeId="n1"))["nodeId"] == "n1"
        assert [answer["nodeId"] for answer in answers] == ["n2"]
        await eventually(lambda: grove.healthy)
        await all_is_well(grove, database, 2)


async def test_a_database_without_a_connection_to_spare_refuses_and_is_used_again_when_it_has_one(
    postgres: Postgres, database: str
) -> None:
    schema = DatabaseAddress.of(database).schema
    role = f"few_{schema}"
    postgres.ask(f"CREATE ROLE {role} LOGIN")
    postgres.ask(f"GRANT CREATE ON DATABASE postgres TO {role}")
    clock = ManualClock()
    async with opened(postgres.address(schema, user=role), clock=clock) as (grove, ann):
        await ann.ok("add_child", **ADD)
        postgres.ask(f"ALTER ROLE {role} CONNECTION LIMIT 0")
        postgres.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", role)
        clock.now += BEAT  # it looks at once
        await eventually(lambda: grove.troubles)
        assert await children(ann) == 1
        version = await ann.version()
        async with anyio.create_task_group() as group:
            group.start_soon(partial(ann.ok, "add_child", **ADD, versionToken=version, idempotencyKey="k"))
            postgres.ask(f"ALTER ROLE {role} CONNECTION LIMIT -1")
        await eventually(lambda: grove.healthy)
        await all_is_well(grove, postgres.address(schema, user=role), 2)


async def test_tls_is_libpqs_and_a_certificate_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    ours, key = certificate(tmp_path / "ours", "localhost")
    theirs, _ = certificate(tmp_path / "theirs", "localhost")
    server = Postgres()
    try:
        server.certify(ours, key)
        server.start()
        address = f"postgresql://postgres:s3cret@localhost:{server.port}/postgres?schema=t&hostaddr=127.0.0.1"
        with pytest.raises(StoreUnusable, match="certificate verify failed") as caught:
            async with opened(f"{address}&sslmode=verify-full&sslrootcert={theirs}"):
                pass
        assert "s3cret" not in str(caught.value)
        async with opened(f"{address}&sslmode=verify-full&sslrootcert={ours}") as (_, ann):
            await ann.ok("add_child", **ADD)
            talk = "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = %s"
            assert server.ask(talk, "toolgrove") == [(True,)]
    finally:
        server.close()


async def test_a_tree_may_take_longer_to_read_than_a_writer_may_be_silent(postgres: Postgres, database: str) -> None:
    async with opened(database) as (_, ann):
        items = [{"nodeId": f"i{at}", "payloadType": "T", "payload": {}} for at in range(500)]
        await ann.ok("import_merge", json={"items": items}, strategy="upsert")
    with connect(DatabaseAddress.of(database)) as connection:
        tables = PostgresTables(connection)
        tables.execute("SET idle_in_transaction_session_timeout = 1")
        _, saved = read_all(tables)
        assert saved.revision == 1
