"""The inbox: one decision per request, one use per decision, however many ask at once."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from grove_kit import ManualClock
from toolgrove.events import ApprovalDecided, ApprovalRequested, Event
from toolgrove.store.approvals import (
    AlreadyDecided,
    Approval,
    ApprovalNotFound,
    Approvals,
    Inbox,
    InboxFull,
    MemoryApprovals,
    OwnApproval,
    Request,
)
from toolgrove.store.sqlite_approvals import SqliteApprovals
from toolgrove.store.state import StateFile

pytestmark = pytest.mark.anyio
ASKED = Request(
    agent="coder",
    tool="shop_order",
    arguments={"id": 7, "note": "[secret TOKEN]"},
    arguments_hash="args",
    definition={"name": "shop_order"},
    definition_hash="def",
    rule="HTTP POST",
    receipt="r1",
    sends={"method": "POST", "url": "https://shop.example/orders/7?key=[secret TOKEN]"},
)


class Desk:
    """An inbox with its clock and what it told."""

    def __init__(self, approvals: Approvals) -> None:
        self.clock = ManualClock()
        self.events: list[Event] = []
        self.inbox = Inbox(approvals, self.clock, emit=self.events.append, lifetime=600, max_pending=3)

    async def claim(self, asked: Request = ASKED) -> Approval | None:
        return await self.inbox.claim(*asked.key)


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    if request.param == "memory":
        yield Desk(MemoryApprovals())
        return
    with StateFile(tmp_path / "state.db") as state:
        yield Desk(SqliteApprovals(state))


async def test_a_request_waits_with_all_that_a_person_needs(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    assert await desk.inbox.get(asked.id) == asked
    assert asked.request == ASKED
    assert (asked.state, asked.expires_at - asked.requested_at) == ("pending", 600)
    assert [a.id for a in await desk.inbox.list("pending")] == [asked.id]
    assert desk.events == [
        ApprovalRequested(
            approval_id=asked.id,
            tool="shop_order",
            agent="coder",
            rule="HTTP POST",
            receipt="r1",
            timestamp=desk.clock.wall(),
        )
    ]


async def test_the_same_call_waits_once(desk: Desk) -> None:
    first = await desk.inbox.request(ASKED)
    desk.clock.now += 10
    again = await desk.inbox.request(replace(ASKED, receipt="r2"))
    assert again == first
    others = [
        replace(ASKED, agent="other"),
        replace(ASKED, arguments_hash="others"),
        replace(ASKED, definition_hash="changed"),
    ]
    ids = {(await desk.inbox.request(other)).id for other in others}
    assert len({first.id, *ids}) == 4
    assert len(desk.events) == 4


async def test_ids_cannot_be_guessed(desk: Desk) -> None:
    ids = [(await desk.inbox.request(replace(ASKED, agent=f"agent{number}"))).id for number in range(30)]
    assert len(set(ids)) == 30
    assert all(len(one) >= 24 for one in ids)


async def test_nothing_is_claimed_before_a_decision(desk: Desk) -> None:
    await desk.inbox.request(ASKED)
    assert await desk.claim() is None


async def test_an_approval_is_used_once(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    await desk.inbox.decide(asked.id, approve=True, by="grace", reason="fine")
    claimed = await desk.claim()
    assert claimed is not None
    assert (claimed.state, claimed.decided_by, claimed.reason) == ("used", "grace", "fine")
    assert await desk.claim() is None
    assert (await desk.inbox.get(asked.id)).state == "used"
    fresh = await desk.inbox.request(ASKED)
    assert fresh.id != asked.id


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, agent="other"),
        replace(ASKED, tool="shop_cancel"),
        replace(ASKED, arguments_hash="others"),
        replace(ASKED, definition_hash="changed"),
    ],
)
async def test_an_approval_is_for_this_agent_these_arguments_and_this_definition(desk: Desk, other: Request) -> None:
    asked = await desk.inbox.request(ASKED)
    await desk.inbox.decide(asked.id, approve=True, by="grace")
    assert await desk.claim(other) is None
    assert await desk.claim() is not None


async def test_a_rejection_is_told_once(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    await desk.inbox.decide(asked.id, approve=False, by="grace", reason="too dear")
    told = await desk.claim()
    assert told is not None
    assert (told.state, told.reason) == ("rejected", "too dear")
    assert await desk.claim() is None
    assert (await desk.inbox.get(asked.id)).state == "rejected"


async def test_a_double_click_is_one_decision(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    first = await desk.inbox.decide(asked.id, approve=True, by="grace")
    assert await desk.inbox.decide(asked.id, approve=True, by="grace") == first
    assert await desk.claim() is not None
    await desk.inbox.decide(asked.id, approve=True, by="grace")
    assert await desk.claim() is None
    assert [event.approved for event in desk.events if isinstance(event, ApprovalDecided)] == [True]


async def test_the_first_decision_stands(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    await desk.inbox.decide(asked.id, approve=False, by="grace")
    for by in ("grace", "ada"):
        with pytest.raises(AlreadyDecided, match="already rejected by grace"):
            await desk.inbox.decide(asked.id, approve=True, by=by)
    assert (await desk.inbox.get(asked.id)).state == "rejected"


@pytest.mark.parametrize("by", ["coder", ""])
async def test_an_agent_cannot_decide_about_its_own_call(desk: Desk, by: str) -> None:
    asked = await desk.inbox.request(ASKED)
    with pytest.raises(OwnApproval):
        await desk.inbox.decide(asked.id, approve=True, by=by)
    assert await desk.claim() is None


async def test_an_id_that_is_not_there_is_said_to_be_missing(desk: Desk) -> None:
    with pytest.raises(ApprovalNotFound, match="'toolgrove approvals' lists what waits"):
        await desk.inbox.decide("ap_x", approve=True, by="grace")
    with pytest.raises(ApprovalNotFound):
        await desk.inbox.get("ap_x")


async def test_what_nobody_decides_expires(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    desk.clock.now += 599
    assert (await desk.inbox.get(asked.id)).state == "pending"
    desk.clock.now += 1
    assert (await desk.inbox.get(asked.id)).state == "expired"
    assert await desk.inbox.list("pending") == []
    with pytest.raises(AlreadyDecided, match="has expired; the agent must make its call again"):
        await desk.inbox.decide(asked.id, approve=True, by="grace")
    assert (await desk.inbox.request(ASKED)).id != asked.id


async def test_an_approval_that_is_not_used_in_time_expires(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    desk.clock.now += 599
    await desk.inbox.decide(asked.id, approve=True, by="grace")  # the agent has the whole time again
    desk.clock.now += 599
    assert (await desk.inbox.get(asked.id)).state == "approved"
    desk.clock.now += 1
    assert (await desk.inbox.get(asked.id)).state == "expired"
    assert await desk.claim() is None


async def test_an_agent_cannot_flood_the_inbox(desk: Desk) -> None:
    for number in range(3):
        await desk.inbox.request(replace(ASKED, arguments_hash=str(number)))
    with pytest.raises(InboxFull):
        await desk.inbox.request(ASKED)
    assert await desk.inbox.request(replace(ASKED, agent="other"))
    assert await desk.inbox.request(replace(ASKED, arguments_hash="0"))
    desk.clock.now += 600
    assert await desk.inbox.request(ASKED)


async def test_old_approvals_are_dropped(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    desk.clock.now += 31 * 86_400
    await desk.inbox.request(replace(ASKED, agent="other"))
    assert asked.id not in [approval.id for approval in await desk.inbox.list()]


async def test_many_who_claim_at_once_get_one_run(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    await desk.inbox.decide(asked.id, approve=True, by="grace")
    claimed: list[Approval | None] = []

    async def claim() -> None:
        claimed.append(await desk.claim())

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(claim)
    assert sum(one is not None for one in claimed) == 1


async def test_many_who_decide_at_once_make_one_decision(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    refused: list[str] = []

    async def decide(by: str, approve: bool) -> None:
        try:
            await desk.inbox.decide(asked.id, approve=approve, by=by)
        except AlreadyDecided as error:
            refused.append(error.message)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(decide, f"person{number}", number % 2 == 0)
    assert len(refused) == 9
    assert len([event for event in desk.events if isinstance(event, ApprovalDecided)]) == 1


CLAIM = """
import json, sys
from pathlib import Path
import anyio
from toolgrove.store.approvals import Inbox
from toolgrove.store.sqlite_approvals import SqliteApprovals
from toolgrove.store.state import StateFile
from toolgrove.types import SystemClock

class Clock(SystemClock):
    wall = staticmethod(lambda: float(sys.argv[2]))

async def main(state):
    inbox = Inbox(SqliteApprovals(state), Clock())
    sys.stdin.readline()
    claimed = [await inbox.claim("coder", "shop_order", str(n), "def") for n in range(20)]
    print(json.dumps([one is not None for one in claimed]))

with StateFile(Path(sys.argv[1])) as state:
    anyio.run(main, state)
"""


async def test_an_approval_is_used_by_one_of_many_processes(tmp_path: Path) -> None:
    with StateFile(tmp_path / "state.db") as state:
        desk = Desk(SqliteApprovals(state))
        desk.inbox = Inbox(SqliteApprovals(state), desk.clock, max_pending=100)
        for number in range(20):
            asked = await desk.inbox.request(replace(ASKED, arguments_hash=str(number)))
            await desk.inbox.decide(asked.id, approve=True, by="grace")
    arguments = [sys.executable, "-c", CLAIM, str(tmp_path / "state.db"), str(desk.clock.wall())]
    processes = [
        subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    answers = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        answers.append(json.loads(out))
    assert [sum(column) for column in zip(*answers, strict=True)] == [1] * 20


async def test_a_decision_of_another_process_is_told_when_it_is_used(tmp_path: Path) -> None:
    with StateFile(tmp_path / "state.db") as here, StateFile(tmp_path / "state.db") as there:
        gateway, command_line = Desk(SqliteApprovals(here)), Desk(SqliteApprovals(there))
        asked = await gateway.inbox.request(ASKED)
        await command_line.inbox.decide(asked.id, approve=True, by="grace", reason="fine")
        assert await gateway.claim() is not None
        decided = [event for event in gateway.events if isinstance(event, ApprovalDecided)]
        assert [(event.approval_id, event.approved, event.by) for event in decided] == [(asked.id, True, "grace")]


async def test_approvals_of_an_older_state_file_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with StateFile(path) as state:
        asked = await Desk(SqliteApprovals(state)).inbox.request(ASKED)
    older = sqlite3.connect(path)
    older.execute("ALTER TABLE approvals DROP COLUMN sends")
    older.execute("PRAGMA user_version = 1")
    older.close()
    for _ in range(2):
        with StateFile(path) as state:
            found = await Desk(SqliteApprovals(state)).inbox.get(asked.id)
            assert found.request == replace(ASKED, sends=None)
