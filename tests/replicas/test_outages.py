"""Clients at work while replicas, the database and the network come and go."""

from __future__ import annotations

import re
import signal
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from replicas.fleet import Fleet, Replica, fleet_of
from replicas.writers import AGENTS, writing
from services.postgres import Postgres
from services.proxy import Proxy
from waiting import DEADLINE, eventually
from web.gateway import call

pytestmark = [pytest.mark.anyio, pytest.mark.services]
_CALLS = re.compile(r'^toolgrove_calls_total\{agent="(\w+)"', re.MULTILINE)


async def agents_at(fleet: Fleet, replica: Replica) -> set[str]:
    """Whose calls a replica has answered."""
    async with fleet.http("operator", replica) as http:
        return set(_CALLS.findall((await http.get("/metrics")).text))


async def test_a_rolling_restart_fails_no_call(fleet: Fleet) -> None:
    with anyio.fail_after(2 * DEADLINE):
        async with writing(fleet) as writers:
            for replica in fleet.replicas:
                replica.signal()
                await fleet.until(replica, up=False)
                await writers.more()
                replica.signal()  # HAProxy has looked: no need to wait for the rest of the ten minutes
                assert await replica.ended() == 0
                await writers.more()
                await anyio.to_thread.run_sync(replica.start)
                await fleet.until(replica, up=True)
                await writers.more()
        assert writers.broken == {}
        assert writers.refusals == []
        assert any(writer.sessions > 1 for writer in writers.every)


async def test_a_killed_replica_fails_its_calls_in_flight_alone_and_each_retry_has_one_effect(fleet: Fleet) -> None:
    with anyio.fail_after(2 * DEADLINE):
        async with writing(fleet) as writers:
            elsewhere = await agents_at(fleet, fleet.two)
            fleet.one.signal(signal.SIGKILL)
            await fleet.one.ended()
            await fleet.until(fleet.one, up=False)
            await writers.more()
            broken = {node: [*why] for node, why in writers.broken.items()}
            await anyio.to_thread.run_sync(fleet.one.start)
            await fleet.until(fleet.one, up=True)
            await writers.more()
        assert elsewhere & set(AGENTS)
        assert [writer.node for writer in writers.every if writer.broken and writer.agent in elsewhere] == []
        # A call that is repeated at once can meet another connection that is dying; later than that none is lost.
        assert writers.broken == broken
        assert {node: why for node, why in broken.items() if len(why) > 2} == {}
        assert writers.refusals == []


async def test_without_the_database_changes_are_refused_for_a_while_and_nothing_is_lost(
    fleet: Fleet, postgres: Postgres
) -> None:
    with anyio.fail_after(2 * DEADLINE):
        async with writing(fleet) as writers:
            postgres.kill()
            for replica in fleet.replicas:
                await fleet.until(replica, up=False)
                # Until its writer has noticed that the connection is gone, the store only does not answer.
                await eventually(partial(fleet.is_troubled_by, replica, "store_unreachable"))
            async with fleet.http("planter") as http:  # HAProxy knows none that is ready, and asks one all the same
                told = await call(http, "planter", "get_node", {"nodeId": "bed"})
                # One that does not know yet whether its last COMMIT was kept tells no guess.
                if "error" in told:
                    assert told["error"]["reason"] == "journal_unavailable"
                else:
                    assert told["childrenCount"] == len(writers.every)
            await writers.refused()
            await anyio.to_thread.run_sync(postgres.start)
            for replica in fleet.replicas:
                await fleet.until(replica, up=True)
            await writers.more()
        assert writers.broken == {}
        assert {refusal["reason"] for refusal in writers.refusals} == {"journal_unavailable"}
        assert all(refusal["retryAfter"] > 0 for refusal in writers.refusals)


async def test_a_replica_that_is_cut_off_from_the_database_turns_unready_and_refuses_changes(
    tmp_path: Path, project: dict[str, Any], postgres: Postgres
) -> None:
    add = {"parentNodeId": "bed", "payloadType": "Note", "idempotencyKey": "partition"}
    with (
        anyio.fail_after(2 * DEADLINE),
        Proxy(postgres.port) as proxy,
        fleet_of(tmp_path, project, postgres.port, proxy.port) as fleet,
    ):
        async with fleet.http("agent0", fleet.two) as there, writing(fleet, AGENTS[:8]) as writers:
            elsewhere = await agents_at(fleet, fleet.one)
            proxy.hold()
            await fleet.until(fleet.two, up=False)
            version = writers.every[0].version
            refused = (await call(there, "agent0", "add_child", {**add, "versionToken": version}))["error"]
            assert refused["code"] in ("internal", "conflict")
            assert refused["retryAfter"] > 0
            await writers.more(elsewhere)  # a call whose COMMIT is on its way waits until it knows what became of it
            proxy.resume()
            await fleet.until(fleet.two, up=True)
            await writers.more()
