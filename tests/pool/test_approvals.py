"""The inbox: one decision per request, one use per decision, however many ask at once."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import anyio
import pytest

from grove_kit import ManualClock
from services.state import STATES, state_database
from toolgrove.call.inbox import Inbox
from toolgrove.errors import AlreadyDecided, ApprovalNotFound, InboxFull, InvalidArgument, NotRevocable, OwnApproval
from toolgrove.events import ApprovalDecided, ApprovalRequested, ApprovalRevoked, Event
from toolgrove.store.state import Approval, ApprovalRequest, Approvals, MemoryApprovals, SqliteApprovals, StateFile
from toolgrove.store.state.postgres import PostgresApprovals

pytestmark = pytest.mark.anyio
ASKED = ApprovalRequest(
    agent="coder",
    tool="shop_order",
    arguments={"id": 7, "note": "[secret TOKEN]"},
    arguments_hash="args",
    definition={"name": "shop_order"},
    definition_hash="def",
    rule="HTTP POST",
    receipt="r1",
    chain=("coder",),
    sends={"method": "POST", "url": "https://shop.example/orders/7?key=[secret TOKEN]"},
    run_id="r-1",
    parent_call_id="c-1",
)


class Desk:
    """An inbox with its clock and what it told."""

    def __init__(self, approvals: Approvals) -> None:
        self.approvals = approvals
        self.clock = ManualClock()
        self.events: list[Event] = []
        self.inbox = Inbox(approvals, self.clock, publish=self.events.append, lifetime=600, max_pending=3)

    async def claim(self, asked: ApprovalRequest = ASKED) -> Approval | None:
        return await self.inbox.claim(asked, "c1")


@pytest.fixture(params=STATES)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    if request.param == "memory":
        yield Desk(MemoryApprovals())
        return
    if request.param == "postgres":
        with state_database(request) as shared:
            yield Desk(PostgresApprovals(shared))
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
            chain=ASKED.chain,
            run_id="r-1",
            parent_call_id="c-1",
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
    assert (claimed.state, claimed.decided_by, claimed.reason) == ("claimed", "grace", "fine")
    assert await desk.claim() is None
    await desk.inbox.settle(claimed, "used")
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
        replace(ASKED, chain=("boss", "coder")),
        replace(ASKED, footprint_hash="more"),
    ],
)
async def test_an_approval_is_for_this_chain_these_arguments_this_definition_and_this_effect(
    desk: Desk, other: ApprovalRequest
) -> None:
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
    with pytest.raises(ApprovalNotFound, match="'toolgrove approvals' lists what is waiting"):
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
from toolgrove.call.inbox import Inbox
from toolgrove.store.state import ApprovalRequest, SqliteApprovals, StateFile
from toolgrove.types import SystemClock

class Clock(SystemClock):
    wall = staticmethod(lambda: float(sys.argv[2]))
    monotonic = staticmethod(lambda: float(sys.argv[3]))

async def main(state):
    inbox = Inbox(SqliteApprovals(state), Clock())
    sys.stdin.readline()
    asked = [
        ApprovalRequest(
            agent="coder",
            chain=("coder",),
            tool="shop_order",
            arguments={},
            arguments_hash=str(number),
            definition={},
            definition_hash="def",
            rule="",
        )
        for number in range(20)
    ]
    claimed = [await inbox.claim(one, "c1") for one in asked]
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
    arguments = [
        sys.executable,
        "-c",
        CLAIM,
        str(tmp_path / "state.db"),
        *map(str, (desk.clock.wall(), desk.clock.monotonic())),
    ]
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


@pytest.mark.parametrize("version", [1, 2])
async def test_approvals_of_an_older_state_file_are_found_again_and_must_be_asked_for_anew(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "state.db"
    with StateFile(path) as state:
        asked = await Desk(SqliteApprovals(state)).inbox.request(ASKED)
    later = ["chain", "effect", "footprint_hash", "monotonic", "lasts", "uses", "call_id", "process", "replaces"]
    older = sqlite3.connect(path)
    for column in (*later, "earlier", "run_id", "parent_call_id", "asked_by", *(["sends"] if version == 1 else [])):
        older.execute(f"ALTER TABLE approvals DROP COLUMN {column}")
    for column in ("refused_hash", "refused_by"):
        older.execute(f"ALTER TABLE pins DROP COLUMN {column}")
    older.execute("DROP TABLE met")
    older.execute("DROP TABLE tokens")
    older.execute("CREATE TABLE tokens (holder TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE) WITHOUT ROWID")
    older.execute("DROP TABLE deeds")
    older.execute("DROP TABLE logins")
    older.execute("DROP TABLE project")
    older.execute(f"PRAGMA user_version = {version}")
    older.close()
    for _ in range(2):
        with StateFile(path) as state:
            found = await Desk(SqliteApprovals(state)).inbox.get(asked.id)
            asked_then = replace(ASKED, chain=("coder",), run_id="", parent_call_id=None)
            assert found.request == replace(asked_then, sends=None if version == 1 else ASKED.sends)
            assert found.state == "expired"


async def test_who_acts_as_the_agent_is_named_until_the_agent_asks_itself(desk: Desk) -> None:
    by_a_person = replace(ASKED, asked_by="operator")
    first = await desk.inbox.request(by_a_person)
    assert (await desk.inbox.get(first.id)).request == by_a_person
    assert (await desk.inbox.request(ASKED)).id == first.id
    for request in (ASKED, by_a_person):
        assert (await desk.inbox.request(request)).request.asked_by is None
    assert (await desk.inbox.get(first.id)).request == ASKED


async def test_asking_again_takes_the_place_of_what_would_have_changed_something_else(desk: Desk) -> None:
    first = await desk.inbox.request(ASKED)
    second = await desk.inbox.request(replace(ASKED, footprint_hash="more"))
    assert (second.replaces, (await desk.inbox.get(first.id)).state) == (first.id, "expired")
    await desk.inbox.decide(second.id, approve=True, by="grace")
    third = await desk.inbox.request(ASKED)
    assert (third.replaces, third.state) == (second.id, "pending")
    assert await desk.claim(replace(ASKED, footprint_hash="more")) is None


async def test_a_rejection_is_told_whatever_the_call_would_change_by_now(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    await desk.inbox.decide(asked.id, approve=False, by="grace")
    told = await desk.claim(replace(ASKED, footprint_hash="more"))
    assert told is not None
    assert told.state == "rejected"


async def test_nobody_in_the_chain_decides(desk: Desk) -> None:
    asked = await desk.inbox.request(replace(ASKED, chain=("boss", "coder")))
    with pytest.raises(OwnApproval):
        await desk.inbox.decide(asked.id, approve=True, by="boss")


# For a while ---------------------------------------------------------------------------------------


async def test_a_standing_approval_lets_any_arguments_through_until_it_expires(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    decided = await desk.inbox.decide(asked.id, approve=True, by="grace", lasts="1h")
    assert decided.lasts == "1h"
    for number in range(3):
        desk.clock.now += 1_199
        used = await desk.inbox.claim(
            replace(ASKED, arguments_hash=str(number), footprint_hash=str(number)), f"c{number}"
        )
        assert used is not None
        assert (used.id, used.state, used.uses, used.call_id) == (asked.id, "approved", number + 1, f"c{number}")
    desk.clock.now += 3
    assert (await desk.inbox.get(asked.id)).state == "expired"
    assert await desk.claim() is None
    assert [event.lasts for event in desk.events if isinstance(event, ApprovalDecided)] == ["1h"]


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, agent="other", chain=("other",)),
        replace(ASKED, tool="shop_cancel"),
        replace(ASKED, definition_hash="changed"),
        replace(ASKED, chain=("boss", "coder")),
    ],
)
async def test_a_standing_approval_is_for_one_tool_as_it_was_and_one_chain(desk: Desk, other: ApprovalRequest) -> None:
    asked = await desk.inbox.request(ASKED)
    await desk.inbox.decide(asked.id, approve=True, by="grace", lasts="8h")
    assert await desk.claim(other) is None


async def test_what_waited_when_a_standing_approval_served_it_no_longer_waits(desk: Desk) -> None:
    other = replace(ASKED, arguments_hash="other")
    first, second = await desk.inbox.request(ASKED), await desk.inbox.request(other)
    await desk.inbox.decide(first.id, approve=True, by="grace", lasts="15m")
    assert await desk.claim(other) is not None
    assert (await desk.inbox.get(second.id)).state == "expired"


async def test_a_revoked_approval_lets_nothing_through(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    with pytest.raises(NotRevocable, match="is still waiting; reject it instead"):
        await desk.inbox.revoke(asked.id, by="grace")
    await desk.inbox.decide(asked.id, approve=True, by="grace", lasts="8h")
    for _ in range(2):
        assert (await desk.inbox.revoke(asked.id, by="ada")).state == "revoked"
    assert await desk.claim() is None
    assert [event.by for event in desk.events if isinstance(event, ApprovalRevoked)] == ["ada"]
    with pytest.raises(AlreadyDecided):
        await desk.inbox.decide(asked.id, approve=True, by="grace")


async def test_an_approval_for_one_run_can_be_revoked_until_it_is_used(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    await desk.inbox.decide(asked.id, approve=True, by="grace")
    assert await desk.claim() is not None
    with pytest.raises(NotRevocable, match="is claimed"):
        await desk.inbox.revoke(asked.id, by="grace")


async def test_a_rejection_cannot_stand_for_a_while(desk: Desk) -> None:
    asked = await desk.inbox.request(ASKED)
    with pytest.raises(InvalidArgument, match="reject without 'for'"):
        await desk.inbox.decide(asked.id, approve=False, by="grace", lasts="1h")


# A clock that is set -------------------------------------------------------------------------------


class Settable(ManualClock):
    """A wall clock that somebody sets, beside one that only runs on."""

    ahead = 0.0

    def wall(self) -> float:
        return super().wall() + self.ahead


@pytest.mark.parametrize("lasts", [None, "1h"])
@pytest.mark.parametrize("back", [-60.0, -300.0, -86_400.0])
async def test_a_clock_that_is_set_back_stretches_no_approval(
    desk: Desk, back: float, lasts: Literal["1h"] | None
) -> None:
    clock = desk.clock = Settable()
    desk.inbox = Inbox(desk.approvals, clock)
    asked = await desk.inbox.request(ASKED)
    await desk.inbox.decide(asked.id, approve=True, by="grace", lasts=lasts)
    clock.now += 600
    clock.ahead = back
    assert (await desk.inbox.get(asked.id)).state == ("approved" if back > -600 else "expired")
    clock.now += 3_000
    assert (await desk.inbox.get(asked.id)).state == "expired"
    assert await desk.claim() is None
    fresh = await desk.inbox.request(ASKED)
    await desk.inbox.decide(fresh.id, approve=True, by="grace")
    assert await desk.claim() is not None


async def test_after_a_restart_a_clock_from_before_the_decision_does_not_bring_it_back(tmp_path: Path) -> None:
    with StateFile(tmp_path / "state.db") as state:
        desk = Desk(SqliteApprovals(state))
        asked = await desk.inbox.request(ASKED)
        await desk.inbox.decide(asked.id, approve=True, by="grace", lasts="8h")
    with StateFile(tmp_path / "state.db") as state:
        again = Desk(SqliteApprovals(state))
        again.clock.now = 10.0  # another machine's uptime, and a wall clock that stands before the decision
        assert (await again.inbox.get(asked.id)).state == "expired"
        assert await again.claim() is None
