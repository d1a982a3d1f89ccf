"""Several processes on one database: each has the whole tree, and none of them loses or repeats anything."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio
import httpx2
import psycopg
import pytest

from grove_kit import Hand, ManualClock, hand
from services.postgres import Postgres
from services.proxy import Proxy
from store_kit import portrait, stored
from toolgrove import Grove
from toolgrove.events import Event, TreeChanged
from toolgrove.store.audit import AuditQuery
from toolgrove.tools.sample import DOCUMENT
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio
ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"a": 1}}


@asynccontextmanager
async def replicas(*addresses: str, **workspace: Any) -> AsyncIterator[list[Grove]]:
    """One project, opened once for each address."""
    settings = {"concurrency": "node", **workspace}
    with anyio.fail_after(2 * DEADLINE):
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(Grove(stored(one, **settings))) for one in addresses]


async def children(grove: Grove) -> int:
    return int((await (await hand(grove, "ann")).ok("get_node", nodeId="root"))["childrenCount"])


async def told(grove: Grove) -> dict[str, str]:
    """Everything that agents can read there, once it has caught up."""
    following = grove._tree_tools.following
    assert following is not None
    await following.catch_up()
    return await portrait(grove)


async def test_a_change_in_one_replica_shows_in_the_other_with_its_event(database: str) -> None:
    async with replicas(database, database) as (one, two):
        heard: list[Event] = []
        two.listen(heard.append)
        made = await (await hand(one, "ann")).ok("add_child", **ADD)
        await eventually(lambda: any(isinstance(event, TreeChanged) for event in heard))
        (event,) = [event for event in heard if isinstance(event, TreeChanged)]
        assert (event.agent, event.tool, event.elsewhere) == ("ann", "add_child", True)
        assert made["nodeId"] in event.node_ids
        assert await children(two) == 1
        (record,) = (await two.audit_log.records(AuditQuery(tool="add_child"))).records
        assert record["callId"] == event.call_id


async def test_all_that_a_workspace_holds_reaches_the_other_replica(database: str) -> None:
    async with replicas(database, database) as (one, two):
        ann, bob = await hand(one, "ann"), await hand(two, "bob")
        steps: list[tuple[Hand, str, dict[str, Any]]] = [
            (ann, "import_merge", {"json": copy.deepcopy(DOCUMENT), "strategy": "upsert", "matchBy": "nodeId"}),
            (bob, "bookmark", {"nodeId": "kitchen", "label": "x"}),
            (ann, "snapshot_create", {"label": "s"}),
            (bob, "tag_node", {"nodeId": "shed", "tags": ["red"]}),
            (ann, "expand_node", {"nodeId": "house"}),
            (ann, "snapshot_create", {"label": "t"}),
            (bob, "remove_node", {"nodeId": "house"}),
            (ann, "snapshot_delete", {"snapshotId": "s2"}),
            (bob, "undo", {}),
            (ann, "update_payload_property", {"nodeId": "shed", "propertyName": "n", "newValue": 2}),
            (ann, "undo", {}),
            (ann, "redo", {}),
            (bob, "move_node", {"nodeId": "shed", "newParentId": "kitchen"}),
            (ann, "add_child", ADD),
            (ann, "snapshot_restore", {"snapshotId": "s1"}),
        ]
        for who, tool, arguments in steps:
            await who.ok(tool, **arguments)
            assert await told(one) == await told(two), tool
        async with replicas(database) as (three,):
            assert await told(three) == await told(one)


async def test_writers_at_two_replicas_lose_nothing_and_repeat_nothing(database: str) -> None:
    async with replicas(database, database) as groves:

        async def write(grove: Grove, name: str) -> None:
            agent = await grove.agent(name)
            for at in range(10):
                version = (await agent.call("get_node", {"nodeId": "root"}))["version"]
                form = {**ADD, "versionToken": version, "idempotencyKey": f"{at}"}
                answer = await agent.call("add_child", form)
                while answer.get("error", {}).get("code") == "conflict":
                    form["versionToken"] = (await agent.call("get_node", {"nodeId": "root"}))["version"]
                    answer = await agent.call("add_child", form)
                assert "error" not in answer, answer

        async with anyio.create_task_group() as group:
            for grove, name in zip(groves, ("ann", "bob"), strict=True):
                for _ in range(2):  # with the same keys: one of the two is a retry while the first still runs
                    group.start_soon(write, grove, name)
        one, two = groves
        assert await told(one) == await told(two)
        assert await children(one) == await children(two) == 20
        assert (await two.audit_log.verify()).breach is None


async def test_a_retry_at_another_replica_has_one_effect_also_while_the_first_still_runs(database: str) -> None:
    async with replicas(database, database) as groves:
        answers: list[dict[str, Any]] = []

        async def ask(grove: Grove) -> None:
            ann = await hand(grove, "ann")
            answers.append(await ann.ok("add_child", **ADD, versionToken=await ann.version(), idempotencyKey="k"))

        async with anyio.create_task_group() as group:
            for grove in groves:
                group.start_soon(ask, grove)
        assert answers[0] == answers[1]
        for grove in groves:
            following = grove._tree_tools.following
            assert following is not None
            await following.catch_up()
            assert await children(grove) == 1


async def test_nobody_reads_his_own_past_at_another_replica(postgres: Postgres, database: str) -> None:
    with Proxy(postgres.port) as proxy:
        slow = database.replace(f":{postgres.port}/", f":{proxy.port}/")
        async with replicas(database, slow) as (one, two):
            ann, there = await hand(one, "ann"), await two.agent("ann")
            version = (await ann.ok("add_child", **ADD))["version"]
            assert (await there.call("get_node", {"nodeId": "n1"}, at_least=version))["nodeId"] == "n1"
            proxy.hold()
            newer = (await ann.ok("add_child", **ADD))["version"]
            refusal = (await there.call("get_node", {"nodeId": "n2"}, at_least=newer))["error"]
            assert (refusal["code"], refusal["reason"]) == ("conflict", "replica_behind")
            assert refusal["retryAfter"] > 0
            await eventually(lambda: two.troubles)
            assert await children(two) == 1
            proxy.resume()
            await eventually(lambda: not two.troubles)
            assert (await there.call("get_node", {"nodeId": "n2"}, at_least=newer))["nodeId"] == "n2"


async def test_a_change_in_tree_mode_that_rests_on_an_older_version_stays_a_conflict(database: str) -> None:
    async with replicas(database, database, concurrency="tree") as (one, two):
        ann, bob = await hand(one, "ann"), await hand(two, "bob")
        version = await bob.version()
        await ann.ok("add_child", **ADD, versionToken=version)
        refusal = await bob.refused("add_child", **ADD, versionToken=version)
        assert (refusal["code"], refusal["changedNodeIds"]) == ("conflict", ["n1"])


async def test_a_replica_whose_connections_were_cut_catches_up_with_all_that_it_missed(
    postgres: Postgres, database: str
) -> None:
    with Proxy(postgres.port) as proxy:
        shaky = database.replace(f":{postgres.port}/", f":{proxy.port}/")
        async with replicas(database, shaky) as (one, two):
            ann = await hand(one, "ann")
            for _ in range(3):
                proxy.cut()
                await ann.ok("add_child", **ADD)
            await eventually(lambda: two._workspace.revision == one._workspace.revision)
            assert await told(one) == await told(two)


async def test_a_replica_that_missed_more_than_is_kept_reads_all_of_it_anew(postgres: Postgres, database: str) -> None:
    schema = database.rpartition("=")[2]
    async with replicas(database, database) as (one, two):
        ann = await hand(one, "ann")
        await ann.ok("add_child", **ADD)
        await eventually(lambda: two._workspace.revision == one._workspace.revision)
        following = two._tree_tools.following
        assert following is not None
        async with following._one:  # it cannot look meanwhile
            await ann.ok("add_child", **ADD)
            postgres.ask(f"DELETE FROM {schema}.entry")
            await ann.ok("add_child", **ADD)
        await eventually(lambda: two._workspace.revision == one._workspace.revision)
        assert await told(one) == await told(two)


async def test_a_process_that_fell_silent_while_it_held_the_store_holds_nobody_up(
    postgres: Postgres, database: str
) -> None:
    head = f"SELECT * FROM {database.rpartition('=')[2]}.head FOR UPDATE"
    async with replicas(database) as (one,):
        silent = psycopg.connect(postgres.address(), application_name="toolgrove")
        with suppress(psycopg.OperationalError), silent, silent.pipeline():
            silent.execute("BEGIN")  # then it says neither that this was all nor what comes next
            silent.execute(head.encode()).fetchone()
            await (await hand(one, "ann")).ok("add_child", **ADD)


async def test_history_is_forgotten_alike_in_every_replica(database: str) -> None:
    async with replicas(database, database, limits={"history": 5}) as (one, two):
        ann, bob = await hand(one, "ann"), await hand(two, "bob")
        for at in range(12):
            who = ann if at % 3 else bob
            await told(one if at % 3 else two)
            await who.ok("update_payload_property", nodeId="root", propertyName="at", newValue=at)
            if at == 4:
                await ann.ok("snapshot_create", label="x")
        assert await told(one) == await told(two)


async def test_a_watcher_at_one_replica_hears_of_a_change_at_the_other(database: str) -> None:
    async with replicas(database, database) as (one, two):
        heard: list[str] = []
        two._tree_tools.watches.add("root", lambda: heard.append("changed"))
        await (await hand(one, "ann")).ok("add_child", **ADD)
        await eventually(lambda: heard == ["changed"])


async def test_a_replica_that_has_not_looked_for_a_while_catches_up_before_it_answers(database: str) -> None:
    clock = ManualClock()
    async with replicas(database) as (one,), AsyncExitStack() as stack:
        two = await stack.enter_async_context(Grove(stored(database, concurrency="node"), clock=clock))
        following = two._tree_tools.following
        assert following is not None
        await (await hand(one, "ann")).ok("add_child", **ADD)
        clock.now += 1.5
        assert await children(two) == 1


async def test_the_metrics_count_changes_that_were_run_again(database: str) -> None:
    async with replicas(database, database) as (one, two):
        following = two._tree_tools.following
        assert following is not None
        ann, bob = await hand(one, "ann"), await hand(two, "bob")
        await ann.ok("add_child", **ADD)
        await ann.ok("add_child", **ADD)
        await following.catch_up()
        async with anyio.create_task_group() as group, following._one:  # it cannot look meanwhile
            await ann.ok("tag_node", nodeId="n1", tags=["red"])
            tagging = partial(bob.ok, "tag_node", nodeId="n2", tags=["blue"], versionToken=await bob.version())
            group.start_soon(tagging)
            await eventually(lambda: two.change_reruns)
        assert await told(one) == await told(two)
        transport = httpx2.ASGITransport(app=two.asgi_app(anonymous=True))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            assert f"toolgrove_change_reruns_total {two.change_reruns}.0" in (await http.get("/metrics")).text
