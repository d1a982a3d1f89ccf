"""A schema that a newer version has changed: who may still write goes on, who is too old writes nothing more."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.to_thread
import psycopg
import pytest

from grove_kit import config, hand
from services.postgres import Postgres
from toolgrove import Grove
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.postgres.migrating import opened
from toolgrove.store.postgres.migrations import steps, version
from toolgrove.store.unusable import StoreUnusable
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio
ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"a": 1}}
HEAD_BEFORE = {
    *("epoch", "secret", "revision", "mark", "audit_number", "audit_hash", "audit_floor", "audit_floor_number"),
    *("audit_body_bytes", "audit_seal", "audit_days"),
}
"""The fields of a head that a process from before there were identities can read; any other ends its transaction."""
BEFORE = (
    "INSERT INTO journal (revision, base, body, crc) VALUES (1000, 999, '[]', 0)",
    "UPDATE state_changes SET number = number + 1 WHERE kind = 'tokens'",
)
"""What such a process says in each change of the tree, and in each of the state."""


def settings(database: str) -> Any:
    agents = {"ann": {"role": "editor", "tools": ["*"]}}
    return config(agents=agents, workspace={"store": database, "concurrency": "node"})


def taken_over(postgres: Postgres, schema: str, oldest: int) -> int:
    """Have a newer version change the schema, as a step of its migrations does; how many records there are by then."""
    with psycopg.connect(postgres.address()) as connection:
        connection.execute(f"SET search_path TO {schema}".encode())
        connection.execute("UPDATE head SET oldest = %s", (oldest,))
        connection.execute("INSERT INTO schema_steps (number, name) VALUES (%s, 'more')", (version() + 1,))
        row = connection.execute("SELECT count(*) FROM audit").fetchone()
        assert row is not None
        return int(row[0])


async def test_a_replica_that_is_too_old_for_the_schema_writes_nothing_more_and_says_why(
    postgres: Postgres, database: str
) -> None:
    schema = DatabaseAddress.of(database).schema
    tables = ("audit", "journal", "node", "idempotency", "tokens", "deeds")
    refusals: list[dict[str, Any]] = []

    def rows() -> dict[str, object]:
        return {name: postgres.ask(f"SELECT * FROM {schema}.{name}") for name in tables}

    async def add(grove: Grove) -> None:
        ann = await grove.agent("ann")
        while not refusals:
            at = (await ann.call("get_node", {"nodeId": "root"}))["version"]
            told = await ann.call("add_child", {**ADD, "versionToken": at})
            if told.get("error", {}).get("code", "conflict") != "conflict":
                refusals.append(told["error"])

    with anyio.fail_after(2 * DEADLINE):
        async with Grove(settings(database)) as grove:
            ann = await hand(grove, "ann")
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(add, grove)
                await ann.ok("add_child", **ADD)
                records = await anyio.to_thread.run_sync(taken_over, postgres, schema, version() + 1)
            before = rows()
            assert postgres.ask(f"SELECT count(*) FROM {schema}.audit") == [(records,)]
            assert refusals[0]["retryAfter"], refusals[0]
            assert "newer version" in refusals[0]["message"]
            await eventually(lambda: grove.troubles == ("version_outdated",))
            assert (await ann("add_child", **ADD))["error"]["reason"] == "journal_unavailable"
            with pytest.raises(OSError, match="newer Toolgrove"):
                grove.tokens.issue("ann", by="test")
            assert rows() == before
        assert rows() == before
        with pytest.raises(StoreUnusable, match="Update Toolgrove"):
            async with Grove(settings(database)):
                pass


async def test_a_step_of_the_schema_waits_for_who_is_writing_and_neither_fails(
    postgres: Postgres, database: str
) -> None:
    address = DatabaseAddress.of(database)
    with anyio.fail_after(DEADLINE), psycopg.connect(postgres.address()) as writer:
        writer.execute(f"CREATE SCHEMA {address.schema}; SET search_path TO {address.schema}".encode())
        writer.execute("CREATE TABLE schema_steps (number integer PRIMARY KEY, name text NOT NULL)")
        for step in steps()[:-1]:
            writer.execute(step.sql.encode())
            writer.execute("INSERT INTO schema_steps VALUES (%s, %s)", (step.number, step.name))
        writer.commit()
        async with anyio.create_task_group() as tasks:
            writer.execute("SELECT * FROM head FOR UPDATE")
            tasks.start_soon(anyio.to_thread.run_sync, lambda: opened(address).close())
            await eventually(lambda: postgres.ask("SELECT 1 FROM pg_locks WHERE NOT granted"))
            writer.execute("UPDATE journal SET base = base")
            writer.commit()
    assert postgres.ask(f"SELECT max(number) FROM {address.schema}.schema_steps") == [(version(),)]


async def test_a_replica_that_may_still_write_goes_on_and_starts_again(postgres: Postgres, database: str) -> None:
    async with Grove(settings(database)) as grove:
        ann = await hand(grove, "ann")
        await ann.ok("add_child", **ADD)
        taken_over(postgres, DatabaseAddress.of(database).schema, version())
        await ann.ok("add_child", **ADD)
        grove.tokens.issue("ann", by="test")
        async with Grove(settings(database)) as again:
            await (await hand(again, "ann")).ok("add_child", **ADD)
        assert grove.troubles == ()


async def test_a_process_from_before_there_were_versions_of_writers_can_write_nothing(
    postgres: Postgres, database: str
) -> None:
    schema = DatabaseAddress.of(database).schema
    async with Grove(settings(database)) as grove:
        await (await hand(grove, "ann")).ok("add_child", **ADD)
    fields = {row[0] for row in postgres.ask(f"SELECT json_object_keys(body::json) FROM {schema}.head")}
    assert fields - HEAD_BEFORE
    for statement in BEFORE:
        with psycopg.connect(postgres.address()) as connection:
            connection.execute(f"SET search_path TO {schema}".encode())
            with pytest.raises(psycopg.Error):
                connection.execute(statement.encode())
