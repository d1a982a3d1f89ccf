"""One history: a change is kept only on the very change that it was made on, and a version names one state for ever."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import anyio
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove_kit import ManualClock
from store_kit import Scribe, portrait, stored
from toolgrove import Grove
from toolgrove.store.audit import AuditQuery
from toolgrove.store.journal import Behind, JournalEntry, MemoryJournal
from toolgrove.store.journal.postgres.journal import PostgresJournal
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.tree.history import Lineage, change_id
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio


# What a lineage remembers ---------------------------------------------------------------------------


class NaiveLineage:
    """Every change by itself, in a list."""

    def __init__(self, start: str) -> None:
        self.changes = [start]

    def term_of(self, number: int) -> str | None:
        """The term of the first change with at least that number."""
        numbers = [(int(one.split("-")[1]), one.split("-")[0]) for one in self.changes]
        if number < numbers[0][0]:
            return None
        return next((term for at, term in numbers if at >= number), None)


@given(st.lists(st.tuples(st.sampled_from("ABCD"), st.integers(1, 3), st.booleans())))
def test_a_lineage_tells_the_term_of_each_number_as_a_list_of_all_changes_does(
    steps: list[tuple[str, int, bool]],
) -> None:
    start = change_id("a" * 12, 7)
    lineage, naive, serial = Lineage(start), NaiveLineage(start), 0
    for letter, gap, takes_back in steps:
        if takes_back and len(naive.changes) > 1:
            naive.changes.pop()
            lineage.drop_to(naive.changes[-1])
            continue
        newest_term, number = naive.changes[-1].split("-")
        serial += 1
        # A term goes on, or a new one begins: an old one never comes back.
        term = newest_term if letter == "A" else f"{serial:012x}"
        change = change_id(term, int(number) + gap)
        naive.changes.append(change)
        lineage.append(change)
        assert lineage.last == change
        top = int(number) + gap
        assert [lineage.term_at(at) for at in range(5, top + 3)] == [naive.term_of(at) for at in range(5, top + 3)]


# What a journal takes -------------------------------------------------------------------------------


class Replica:
    """A process that makes changes, hands them over in groups, and takes them back when they are refused."""

    def __init__(self, journal: PostgresJournal) -> None:
        self.journal = journal
        self.scribe = Scribe()
        self.made: list[JournalEntry] = []

    async def hand_over(self) -> list[tuple[JournalEntry, bool]]:
        """Append all that was made, in its order, at once; for each whether it was kept."""
        entries, self.made = self.made, []
        kept = [True] * len(entries)

        async def append(at: int) -> None:
            try:
                await self.journal.append(entries[at])
            except Behind:
                kept[at] = False

        async with anyio.create_task_group() as group:
            for at in range(len(entries)):
                group.start_soon(append, at)
        return list(zip(entries, kept, strict=True))

    async def catch_up(self) -> None:
        """Stand where the journal stands."""
        self.scribe = Scribe(await self.journal.read())


@pytest.mark.parametrize("seed", range(6))
async def test_an_entry_is_kept_only_on_the_history_that_it_was_made_on(database: str, seed: int) -> None:
    draw = random.Random(seed)
    address = DatabaseAddress.of(database)
    replicas = [Replica(PostgresJournal(address, ManualClock())) for _ in range(3)]
    for one in replicas:
        one.scribe.go_on(await one.journal.open())
    newest, kept_ids = replicas[0].scribe.workspace.newest, []
    for _ in range(60):
        one = draw.choice(replicas)
        match draw.choice(["make", "make", "make", "hand over", "catch up"]):
            case "make":
                one.made.append(one.scribe.change({"n": draw.randrange(100)}))
            case "catch up":
                one.made.clear()
                await one.catch_up()
            case "hand over":
                for entry, kept in await one.hand_over():
                    assert entry.effects is not None
                    assert kept == (entry.effects.parent == newest), "only what rests on the newest change"
                    if kept:
                        newest = entry.effects.id
                        kept_ids.append(newest)
    saved = await replicas[0].journal.read()
    assert saved.lineage.last == newest
    assert not await replicas[0].journal.missing(kept_ids)
    assert saved.mark.nodes == 1 + len(kept_ids), "each kept change added one node"
    for one in replicas:
        await one.journal.close()


async def test_nothing_that_rests_on_a_refused_entry_is_taken_though_the_numbers_agree(database: str) -> None:
    address = DatabaseAddress.of(database)
    one, two = (Replica(PostgresJournal(address, ManualClock())) for _ in range(2))
    for replica in (one, two):
        replica.scribe.go_on(await replica.journal.open())
    one.made = [one.scribe.change(), one.scribe.change()]
    two.made = [two.scribe.change()]
    assert [kept for _, kept in await two.hand_over()] == [True]
    assert [kept for _, kept in await one.hand_over()] == [False, False]
    one.made = [one.scribe.change()]
    assert [kept for _, kept in await one.hand_over()] == [False], "nor is what comes in a later group"
    for replica in (one, two):
        await replica.journal.close()


async def test_in_memory_too(tmp_path: Any) -> None:
    journal, one, two = MemoryJournal(ManualClock()), Scribe(), Scribe()
    await journal.open()
    first, second, others = one.change(), one.change(), two.change()
    await journal.append(others)
    for entry in (first, second):
        with pytest.raises(Behind):
            await journal.append(entry)
    await journal.close()


# Replicas at work -----------------------------------------------------------------------------------


@asynccontextmanager
async def replicas(*addresses: str, clock: ManualClock | None = None, **workspace: Any) -> AsyncIterator[list[Grove]]:
    """One project, opened once for each address."""
    with anyio.fail_after(3 * DEADLINE):
        async with AsyncExitStack() as stack:
            groves = [Grove(stored(one, **workspace), clock=clock) for one in addresses]
            yield [await stack.enter_async_context(grove) for grove in groves]


async def caught_up(grove: Grove) -> dict[str, str]:
    """Everything that agents can read there, once it has caught up."""
    following = grove._tree_tools.following
    assert following is not None
    await following.catch_up()
    return await portrait(grove)


@contextmanager
def head_held(database: str) -> Iterator[None]:
    """Nobody else can commit meanwhile."""
    address = DatabaseAddress.of(database)
    with psycopg.connect(address.libpq, autocommit=False) as connection:
        connection.execute(f"SELECT * FROM {address.schema}.head FOR UPDATE")
        yield
        connection.rollback()


@pytest.mark.parametrize("concurrency", ["tree", "node"])
@pytest.mark.parametrize("seed", range(4))
async def test_two_replicas_that_meet_at_the_head_lose_nothing(database: str, concurrency: str, seed: int) -> None:
    """Each replica has several changes of drawn kinds under way when the others' come in between."""
    draw = random.Random(seed)
    async with replicas(database, database, concurrency=concurrency) as groves:
        ann = await groves[0].agent("ann")
        places = []
        for _ in range(4):
            version = (await ann.call("get_node", {"nodeId": "root"}))["version"]
            form = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"v": 0}, "versionToken": version}
            places.append((await ann.call("add_child", form))["nodeId"])
        for grove in groves:
            await caught_up(grove)
        added: list[tuple[str, str]] = []
        values: dict[str, list[tuple[int, int]]] = {place: [] for place in places}
        serial = iter(range(1, 1_000))

        async def one_call(grove: Grove) -> None:
            agent, place = await grove.agent(draw.choice(["ann", "bob"])), draw.choice(places)
            read = await agent.call("get_node", {"nodeId": place})
            token, was, value = read["version"], read["payload"]["v"], next(serial)
            match draw.choice(["add", "set", "set", "bookmark"]):
                case "add":
                    form = {"parentNodeId": place, "payloadType": "T", "payloadProps": {"v": value}}
                    answer = await agent.call("add_child", {**form, "versionToken": token})
                    if "error" not in answer:
                        added.append((answer["nodeId"], place))
                case "set":
                    form = {"nodeId": place, "patch": {"v": value}, "versionToken": token}
                    answer = await agent.call("update_payload", form)
                    if "error" not in answer:
                        values[place].append((was, value))
                case _:
                    label = {"nodeId": place, "label": f"l{value}", "versionToken": token}
                    answer = await agent.call("bookmark", label)
            assert answer.get("error", {}).get("code", "conflict") == "conflict", answer

        for _ in range(6):
            async with anyio.create_task_group() as group:
                with head_held(database):
                    for _ in range(8):
                        group.start_soon(one_call, draw.choice(groves))
                        await anyio.lowlevel.checkpoint()
        one, two = [await caught_up(grove) for grove in groves]
        assert one == two
        async with replicas(database, concurrency=concurrency) as (fresh,):
            assert await caught_up(fresh) == one
        for node_id, place in added:
            found = await ann.call("get_node", {"nodeId": node_id})
            assert found.get("parentId") == place, f"{node_id} was acknowledged below {place}: {found}"
        assert len({node_id for node_id, _ in added}) == len(added), "no id is given twice"
        for place, steps in values.items():
            befores = [was for was, _ in steps]
            assert len(set(befores)) == len(befores), f"two changes of {place} replaced the same value: {steps}"


async def test_a_list_that_was_made_while_a_change_was_under_way_is_not_shown_once_another_came_first(
    database: str,
) -> None:
    """What was found in a tree that was taken back must not come back under the number of another change."""
    wanted = {"path": "v", "op": "gt", "value": -1}
    order = {"rootId": "root", "predicates": wanted, "sortBy": {"path": "v", "direction": "asc"}, "limit": 200}
    async with replicas(database, database, concurrency="node") as groves:
        agents = [await grove.agent("ann") for grove in groves]
        place = (await add(groves[0], 0))["nodeId"]
        looks: list[tuple[int, dict[str, Any]]] = []
        for value in range(1, 16):
            for grove in groves:
                await caught_up(grove)

            async def change(at: int, value: int = value) -> None:
                """Of two at the same place, one comes first, and the other is told of a conflict."""
                token = (await agents[at].call("get_node", {"nodeId": place}))["version"]
                form = {"parentNodeId": place, "payloadType": "T", "payloadProps": {"v": value + at / 10}}
                await agents[at].call("add_child", {**form, "versionToken": token})

            async def look(at: int) -> None:
                looks.append((at, await agents[at].call("search_advanced", order)))

            async with anyio.create_task_group() as group:
                with head_held(database):
                    for at in (0, 1):
                        group.start_soon(change, at)
                        await anyio.wait_all_tasks_blocked()
                        group.start_soon(look, at)
                        await anyio.wait_all_tasks_blocked()
        for grove in groves:
            await caught_up(grove)
        last = (await agents[0].call("search_advanced", order))["items"]
        for at, answer in looks:
            later = await agents[at].call("changes_since", {"version": answer["version"], "limit": 200})
            since = {node_id for commit in later["items"] for node_id in commit["nodeIds"]}
            shown, there = ([(hit["nodeId"], hit["payload"]) for hit in hits] for hits in (answer["items"], last))
            assert shown == [one for one in there if one[0] not in since], "what was there at that version"


async def set_back(database: str, *, keep: bool = False) -> str:
    """Copy the whole store away, or put the copy back in its place: what an operator's restore does."""
    address = DatabaseAddress.of(database)
    with psycopg.connect(address.libpq, autocommit=False) as connection:
        connection.execute(f"SET search_path = {address.schema}")
        copies = f"{address.schema}_copy"
        tables = [
            row[0]
            for row in connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename IN "
                "('head', 'node', 'journal', 'entry', 'audit', 'audit_body', 'idempotency', 'fold', 'view', "
                "'expanded', 'bookmark', 'snapshot')",
                (address.schema,),
            )
        ]
        if keep:
            connection.execute(f"CREATE SCHEMA {copies}")
        for table in tables:
            if keep:
                connection.execute(f"CREATE TABLE {copies}.{table} AS TABLE {table}")
                continue
            columns = ", ".join(
                row[0]
                for row in connection.execute(
                    "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
                    "AND is_generated = 'NEVER'",
                    (address.schema, table),
                )
            )
            connection.execute(f"DELETE FROM {table}")
            statement = (
                f"INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM {copies}.{table}"
            )
            connection.execute(statement)
        connection.commit()
    return copies


async def add(grove: Grove, value: int) -> dict[str, Any]:
    agent = await grove.agent("ann")
    version = (await agent.call("get_node", {"nodeId": "root"}))["version"]
    form = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"v": value}, "versionToken": version}
    answer: dict[str, Any] = await agent.call("add_child", form)
    return answer


@pytest.mark.parametrize("lost", [1, 3])
@pytest.mark.parametrize("others", [0, 1, 5])
async def test_a_replica_outside_of_the_stored_history_stops_says_so_and_goes_on_from_what_is_stored(
    database: str, lost: int, others: int
) -> None:
    """`others` are changes that the store takes after it was set back, as many as were lost or not."""
    clock = ManualClock()
    async with replicas(database, database, clock=clock) as (one, two):
        kept = [await add(one, at) for at in range(3)]
        await caught_up(two)
        await set_back(database, keep=True)
        gone = [await add(one, at) for at in range(10, 10 + lost)]
        await caught_up(two)
        calls = [one["callId"] for one in (await one.audit_log.records(AuditQuery(tool="add_child"))).records[-lost:]]
        await set_back(database)
        if others:
            async with replicas(database) as (third,):
                for at in range(others):
                    assert "error" not in await add(third, 100 + at)
        agents = [await grove.agent("ann") for grove in (one, two)]
        await eventually(lambda: all("store_diverged" in grove.troubles for grove in (one, two)))
        refused = [await agent.call("get_node", {"nodeId": "root"}) for agent in agents]
        for answer in refused:
            error = answer.get("error", {})
            assert (error.get("code"), error.get("reason")) == ("internal", "store_diverged"), answer
            assert error["retryAfter"] > 0
        clock.now += 1.0
        await eventually(lambda: not one.troubles and not two.troubles)
        assert one.divergences == two.divergences == 1
        shown = [await caught_up(grove) for grove in (one, two)]
        assert shown[0] == shown[1]
        async with replicas(database) as (fresh,):
            assert await caught_up(fresh) == shown[0]
        for agent in agents:
            assert (await agent.call("get_node", {"nodeId": kept[-1]["nodeId"]}))["payload"] == {"v": 2}
            for answer in gone:
                form = {"parentNodeId": "root", "payloadType": "T", "versionToken": answer["version"]}
                error = (await agent.call("add_child", form))["error"]
                assert (error["code"], error["reason"]) == ("conflict", "version_lost")
                read = await agent.call("get_node", {"nodeId": "root"}, at_least=answer["version"])
                assert read["error"]["reason"] == "version_lost", "and it is not waited for"
                changes = await agent.call("changes_since", {"version": answer["version"]})
                assert changes["error"]["reason"] == "version_lost"
            assert "error" not in await agent.call("get_node", {"nodeId": "root"}, at_least=kept[-1]["version"])
        fresh_ids = set()
        for grove in (one, two):
            fresh_ids.add((await add(grove, 7))["nodeId"])
            await caught_up(two)
        assert fresh_ids.isdisjoint(answer["nodeId"] for answer in gone), "an id that was given out stays taken"
        proof = await one.audit_log.verify()
        assert proof.breach is None
        assert proof.breaks, "the log says that records of it are gone"
        records = (await one.audit_log.records(AuditQuery(tool="store.diverged"))).records
        assert len(records) == 2, "one of each replica"
        for record in records:
            told = record["details"]
            assert told["count"] == lost
            assert told["versions"] == [answer["version"] for answer in gone]
            assert told["callIds"] == calls


async def test_a_version_of_another_replica_is_never_answered_with_an_older_tree(database: str) -> None:
    """Changes of the second replica are taken back again and again, so that its own count runs ahead."""
    draw = random.Random(5)
    async with replicas(database, database, concurrency="node") as (one, two):
        ann, bob = await one.agent("ann"), await two.agent("bob")
        place = (await add(one, 0))["nodeId"]
        await caught_up(two)

        async def disturb() -> None:
            token = (await bob.call("get_node", {"nodeId": "root"}))["version"]
            form = {"parentNodeId": "root", "payloadType": "T", "versionToken": token}
            await bob.call("add_child", form)

        for value in range(1, 25):
            async with anyio.create_task_group() as group:
                for _ in range(draw.randrange(4)):
                    group.start_soon(disturb)
                token = (await ann.call("get_node", {"nodeId": place}))["version"]
                form = {"nodeId": place, "patch": {"v": value}, "versionToken": token}
                answer = await ann.call("update_payload", form)
                if "error" in answer:
                    continue
                read = await bob.call("get_node", {"nodeId": place}, at_least=answer["version"])
                assert read.get("error", {}).get("reason") == "replica_behind" or read["payload"]["v"] == value


async def test_versions_of_an_older_copy_are_refused_after_a_restore_in_a_file_too(tmp_path: Any) -> None:
    place = tmp_path / "grove.db"
    async with Grove(stored(place)) as grove:
        first = await add(grove, 1)
    copy = place.read_bytes()
    async with Grove(stored(place)) as grove:
        lost = [await add(grove, at) for at in (2, 3)]
    place.write_bytes(copy)
    async with Grove(stored(place)) as grove:
        assert "error" not in await add(grove, 9)
        agent = await grove.agent("ann")
        for answer in lost:
            form = {"parentNodeId": "root", "payloadType": "T", "versionToken": answer["version"]}
            assert (await agent.call("add_child", form))["error"]["reason"] == "version_lost"
        stale = {"parentNodeId": "root", "payloadType": "T", "versionToken": first["version"]}
        assert (await agent.call("add_child", stale))["error"]["reason"] == "stale_version"


async def test_a_change_that_others_outran_again_and_again_comes_before_them_the_next_time(database: str) -> None:
    slow, quick = (Replica(PostgresJournal(DatabaseAddress.of(database), ManualClock())) for _ in range(2))
    for one in (slow, quick):
        one.scribe.go_on(await one.journal.open())
    outrun = slow.scribe.change()._replace(overdue=True)
    quick.made = [quick.scribe.change()]
    assert [kept for _, kept in await quick.hand_over()] == [True]
    with pytest.raises(Behind):
        await slow.journal.append(outrun)
    quick.made = [quick.scribe.change()]
    answers: list[bool] = []

    async def hurry() -> None:
        answers.extend(kept for _, kept in await quick.hand_over())

    async with anyio.create_task_group() as group:
        group.start_soon(hurry)
        await slow.catch_up()
        await slow.journal.append(slow.scribe.change()._replace(overdue=True))
    assert answers == [False], "who would have been quicker had to wait"
    for one in (slow, quick):
        await one.journal.close()


async def test_others_are_not_kept_waiting_for_one_who_does_not_come_back(database: str) -> None:
    gone, other = (Replica(PostgresJournal(DatabaseAddress.of(database), ManualClock())) for _ in range(2))
    for one in (gone, other):
        one.scribe.go_on(await one.journal.open())
    other.made = [other.scribe.change()]
    assert [kept for _, kept in await other.hand_over()] == [True]
    with pytest.raises(Behind):
        await gone.journal.append(gone.scribe.change()._replace(overdue=True))
    other.made = [other.scribe.change()]
    assert [kept for _, kept in await other.hand_over()] == [True]
    for one in (gone, other):
        await one.journal.close()
