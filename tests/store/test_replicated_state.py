"""What people decide at one replica reaches the others: approvals, tokens, pins, and the record of each deed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest

from faults.kit import Journal, fake, granted
from grove_kit import config
from pool.test_approvals import ASKED
from services.postgres import Postgres
from services.proxy import Proxy
from toolgrove import Grove
from toolgrove.events import ApprovalDecided, ApprovalRequested, ApprovalRevoked, Event, PoolChanged
from toolgrove.store.audit import AuditQuery
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.state import Approval, hashed
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio
Pair = tuple[Grove, Grove]


@pytest.fixture
async def pair(database: str, tmp_path: Path) -> AsyncIterator[Pair]:
    """Two replicas of one project."""
    async with AsyncExitStack() as stack:
        groves = []
        for _ in range(2):
            settings = config(
                agents={"ann": {"role": "editor"}}, workspace={"store": database}, state=str(tmp_path / "both")
            )
            groves.append(await stack.enter_async_context(Grove(settings)))
        yield groves[0], groves[1]


async def test_who_waits_at_one_replica_is_woken_by_a_decision_at_the_other(pair: Pair) -> None:
    here, there = pair
    events: list[Event] = []
    there.listen(events.append)
    asked = await here.approvals.request(ASKED)
    await eventually(lambda: [one for one in events if isinstance(one, ApprovalRequested)])
    with anyio.fail_after(DEADLINE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(here.approvals.wait, asked, DEADLINE)
            await there.approvals.decide(asked.id, approve=True, by="grace", lasts="1h")
    heard: list[Event] = []
    here.listen(heard.append)
    await there.approvals.revoke(asked.id, by="grace")
    await eventually(lambda: [one for one in heard if isinstance(one, ApprovalRevoked)])
    assert len([one for one in events if isinstance(one, ApprovalDecided)]) == 1


async def test_a_token_of_one_replica_is_good_at_the_other_until_it_is_revoked(pair: Pair) -> None:
    here, there = pair
    made = hashed(here.tokens.issue("ann"))
    await eventually(lambda: made in there.tokens.holders())
    there.tokens.revoke(made)
    await eventually(lambda: made not in here.tokens.holders())


async def test_a_pin_accepted_at_one_replica_is_accepted_at_the_other(pair: Pair) -> None:
    here, there = pair
    here.pins.saw("wiki", "search", "h" * 64, {"name": "search"})
    await eventually(lambda: "search" in there.pins.of("wiki"))
    there.pins.accept("wiki", "search", "h" * 64, by="grace")
    await eventually(lambda: here.pins.of("wiki")["search"].state == "pinned")


async def test_a_tool_that_is_accepted_at_one_replica_is_given_to_agents_at_the_other(
    database: str, tmp_path: Path
) -> None:
    async def tools(grove: Grove) -> set[str]:
        return {tool.name for tool in (await grove.agent("ann")).granted}

    with anyio.fail_after(2 * DEADLINE):
        async with AsyncExitStack() as stack:
            here, there = [
                await stack.enter_async_context(
                    Grove(
                        config(
                            agents={"ann": {"role": "editor", "tools": ["*"]}},
                            workspace={"store": database},
                            state=str(tmp_path / "both"),
                            mcpServers={"up": fake()},
                            pins="ask",
                            startupBudget=DEADLINE,
                        )
                    )
                )
                for _ in range(2)
            ]
            await eventually(lambda: there.pins.of("up"))
            assert "up_echo" not in await tools(there)
            pin = here.pins.of("up")["echo"]
            heard: list[Event] = []
            there.listen(heard.append)
            here.pins.accept("up", "echo", pin.seen_hash, by="grace")
            await eventually(lambda: [one for one in heard if isinstance(one, PoolChanged)])

            async def given() -> bool:
                return "up_echo" in await tools(there)

            await eventually(given)


async def test_what_was_decided_is_put_on_record_once(pair: Pair) -> None:
    here, there = pair
    for number in range(5):
        (here, there)[number % 2].tokens.issue("ann", by=f"person{number}")

    async def recorded() -> list[str]:
        found = (await here.audit_log.records(AuditQuery(tool="token.made", limit=100))).records
        return sorted(one["by"] for one in found)

    async def all_recorded() -> bool:
        return len(await recorded()) >= 5

    await eventually(all_recorded)
    for one in pair:
        await one.recorder.collect()
    assert await recorded() == [f"person{number}" for number in range(5)]


async def test_a_replica_that_lost_the_database_answers_from_its_copy_and_hears_again(
    pair: Pair, postgres: Postgres
) -> None:
    here, there = pair
    made = hashed(here.tokens.issue("ann"))
    await eventually(lambda: made in there.tokens.holders())
    postgres.stop()
    assert made in there.tokens.holders()
    postgres.start()

    async def issued() -> str | None:
        try:
            return hashed(here.tokens.issue("ann"))
        except OSError:
            return None

    later: list[str] = []

    async def is_issued() -> bool:
        later.extend(filter(None, [await issued()]))
        return bool(later)

    await eventually(is_issued)
    await eventually(lambda: later[0] in there.tokens.holders())


async def test_the_claim_of_a_replica_that_is_gone_is_settled_by_another(
    database: str, postgres: Postgres, tmp_path: Path
) -> None:
    with Proxy(postgres.port) as proxy:
        shaky = database.replace(f":{postgres.port}/", f":{proxy.port}/")
        async with AsyncExitStack() as stack:
            here, there = [
                await stack.enter_async_context(Grove(config(workspace={"store": store}, state=str(tmp_path / "both"))))
                for store in (shaky, database)
            ]
            asked = await here.approvals.request(ASKED)
            await here.approvals.decide(asked.id, approve=True, by="grace")
            assert await here.approvals.claim(ASKED, "c1") is not None
            assert await there.approvals.abandoned() == []
            proxy.close()

            async def is_settled() -> bool:
                return (await there.approvals.get(asked.id)).state == "unknown"

            await eventually(is_settled)


async def test_an_approval_is_used_up_in_the_transaction_that_keeps_the_change(
    database: str, postgres: Postgres, tmp_path: Path
) -> None:
    agents = {"ann": {"role": "editor", "tools": ["*"], "approve": ["add_child"]}}
    change = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}}
    settings = config(agents=agents, workspace={"store": database, "payloadTypes": {"T": {}}}, state=str(tmp_path))
    async with Grove(settings) as grove:
        ann = await grove.agent("ann")
        change["versionToken"] = (await ann.call("get_node", {"nodeId": "root"}))["version"]
        waiting = (await ann.call("add_child", change))["error"]["approvalId"]
        await grove.approvals.decide(waiting, approve=True, by="grace")
        assert "nodeId" in await ann.call("add_child", change)
        assert (await grove.approvals.get(waiting)).state == "used"
    schema = DatabaseAddress.of(database).schema
    same = f"SELECT approvals.xmin = journal.xmin FROM {schema}.approvals, {schema}.journal"
    assert postgres.ask(same) == [(True,)]


@asynccontextmanager
async def held(postgres: Postgres, database: str) -> AsyncIterator[None]:
    """Have nobody write to the journal meanwhile."""
    head = f"SELECT * FROM {DatabaseAddress.of(database).schema}.head FOR UPDATE"
    with psycopg.connect(postgres.address()) as other:
        other.execute(head.encode())
        yield


async def taken_for_gone(there: Grove) -> Approval:
    """Wait for the claim of a replica, and settle it elsewhere as if that replica was gone."""

    async def claimed() -> bool:
        return bool(await there.approvals.list("claimed"))

    await eventually(claimed)
    (one,) = await there.approvals.list("claimed")
    await there.approvals.release(one, "approved" if one.request.is_ours else "unknown")
    return one


async def test_a_replica_that_was_wrongly_taken_for_gone_changes_nothing_by_the_approval_that_it_lost(
    database: str, postgres: Postgres, tmp_path: Path
) -> None:
    agents = {"ann": {"role": "editor", "tools": ["*"], "approve": ["add_child"]}}
    kept = {"store": database, "payloadTypes": {"T": {}}, "concurrency": "node"}
    change: dict[str, Any] = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}}
    answers: list[dict[str, Any]] = []

    async def add(grove: Grove) -> None:
        ann = await grove.agent("ann")
        version = (await ann.call("get_node", {"nodeId": "root"}))["version"]
        answers.append(await ann.call("add_child", {**change, "versionToken": version}))

    async def children(grove: Grove) -> int:
        return int((await (await grove.agent("ann")).call("get_node", {"nodeId": "root"}))["childrenCount"])

    with anyio.fail_after(2 * DEADLINE):
        async with AsyncExitStack() as stack:
            here, there = [
                await stack.enter_async_context(
                    Grove(config(agents=agents, workspace=kept, state=str(tmp_path / "both")))
                )
                for _ in range(2)
            ]
            await add(here)
            waiting = answers.pop()["error"]["approvalId"]
            await here.approvals.decide(waiting, approve=True, by="grace")
            async with anyio.create_task_group() as tasks, held(postgres, database):
                tasks.start_soon(add, here)
                await taken_for_gone(there)
            error = answers.pop()["error"]
            assert (error["reason"], error["approvalId"]) == ("approval_taken_back", waiting)
            assert "Nothing was changed" in error["message"]
            assert await children(here) == 0
            assert (await there.approvals.get(waiting)).state == "approved"
            await add(there)
            assert "nodeId" in answers.pop()
            assert (await here.approvals.get(waiting)).state == "used"
            await add(here)
            assert answers.pop()["error"]["reason"] == "approval_required"
            assert await children(there) == 1
            found = (await here.audit_log.records(AuditQuery(tool="add_child", limit=100))).records
            assert [one["outcome"] for one in found if one.get("approval")] == ["success"]


async def test_a_call_that_lost_its_approval_before_it_left_is_not_sent(
    database: str, postgres: Postgres, tmp_path: Path
) -> None:
    journal = Journal(tmp_path / "sent")
    settings = [
        config(
            agents={"ann": {"role": "editor", "tools": ["*"], "approve": ["up_erase"]}},
            workspace={"store": database},
            state=str(tmp_path / "both"),
            mcpServers={"up": fake(journal=journal)},
            startupBudget=DEADLINE,
        )
        for _ in range(2)
    ]
    answers: list[dict[str, Any]] = []
    with anyio.fail_after(2 * DEADLINE):
        async with Grove(settings[0]) as here, Grove(settings[1]) as there:
            ann = await granted(here, "up_erase", name="ann")

            async def erase() -> None:
                answers.append(await ann.call("up_erase"))

            await erase()
            waiting = answers.pop()["error"]["approvalId"]
            await here.approvals.decide(waiting, approve=True, by="grace")
            async with anyio.create_task_group() as tasks, held(postgres, database):
                tasks.start_soon(erase)
                await taken_for_gone(there)
            assert answers.pop()["error"]["reason"] == "approval_taken_back"
            assert journal.received("tools/call", "erase") == 0
            assert (await here.approvals.get(waiting)).state == "unknown"
