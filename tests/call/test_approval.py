"""A call that needs an approval: held back, asked for, run once, and refused where nobody can be asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import anyio
import pytest

from grove_kit import ManualClock, config, hand, recording
from toolgrove import Grove
from toolgrove.call import Chain
from toolgrove.call.approval import MAX_ARGUMENTS, ApprovalStep
from toolgrove.call.audit import AuditStep
from toolgrove.call.inbox import Inbox
from toolgrove.errors import UpstreamFailed
from toolgrove.events import ApprovalDecided, ApprovalRequested, Event, Listeners
from toolgrove.store.journal import MemoryJournal
from toolgrove.store.state import ApprovalTable, MemoryApprovals
from toolgrove.types import Annotations, Call, Caller, Client, Result, Tool, ToolSpec

pytestmark = pytest.mark.anyio
T = TypeVar("T")


class Shop:
    """A source that counts what really happens."""

    name = "shop"

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.down = False

    async def call(self, call: Call) -> Result:
        self.sent.append(dict(call.arguments))
        if self.down:
            raise UpstreamFailed("The shop is down.", reason="unreachable")
        return {"status": 201}


class Breakable(MemoryApprovals):
    """Approvals on a disk that may be full."""

    full = False

    async def transact(self, work: Callable[[ApprovalTable], T]) -> T:
        if self.full:
            raise OSError(28, "No space left on device", "/srv/secret/place/state.db")
        return await super().transact(work)


class Person:
    """Whoever sits at the agent's client."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        raise AssertionError("no progress here")

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        self.asked.append(message)
        answer = self.answer
        return await answer() if callable(answer) else answer


SPEC = ToolSpec(
    name="shop_order",
    description="Orders.",
    input_schema={"type": "object"},
    output_schema={},
    annotations=Annotations(),
    source="shop",
)


class Bench:
    """The chain that matters here, over a shop."""

    def __init__(self, *, ask_client: bool = False) -> None:
        self.clock = ManualClock()
        self.journal = MemoryJournal(self.clock)
        self.events: list[Event] = []
        self.records = Breakable()
        self.listeners = Listeners()
        self.listeners.add(self.events.append)
        self.inbox = Inbox(self.records, self.clock, publish=self.listeners.publish, lifetime=600, max_pending=5)
        self.shop = Shop()
        self.tool = Tool(spec=SPEC, source=self.shop, mutates=True, kind="http", definition="d1")
        approval = ApprovalStep(
            self.inbox,
            scrub=lambda value: json.loads(json.dumps(value).replace("canary", "[secret KEY]")),
            ask_client=lambda agent: ask_client and agent == "coder",
        )
        self.chain = Chain((AuditStep(self.journal, self.clock, self.listeners, recording()), approval), self.shop.call)

    async def call(
        self,
        *,
        agent: str = "coder",
        chain: tuple[str, ...] = (),
        rule: str | None = "HTTP POST",
        client: Client | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        call = Call(
            id="c1",
            name="shop_order",
            tool=self.tool,
            arguments=arguments,
            caller=Caller(agent=agent, session=agent, chain=chain, role="editor"),
            approval=rule,
            receipt="r1",
            client=client,
        )
        return await self.chain(call)

    async def refused(self, **arguments: Any) -> dict[str, Any]:
        error: dict[str, Any] = (await self.call(**arguments))["error"]
        return error

    async def approved(self, **arguments: Any) -> None:
        error = await self.refused(**arguments)
        await self.inbox.decide(error["approvalId"], approve=True, by="grace")


async def test_a_call_without_a_rule_asks_nobody() -> None:
    bench = Bench()
    assert await bench.call(rule=None, id=1) == {"status": 201}
    assert await bench.inbox.list() == []


@pytest.mark.requirement("CALL-003-05")
async def test_a_call_that_needs_an_approval_is_held_back_and_says_how_to_go_on() -> None:
    bench = Bench()
    error = await bench.refused(id=1)
    assert (error["code"], error["reason"]) == ("forbidden", "approval_required")
    assert error["approvalId"] in error["message"]
    assert error["expiresAt"] == "2027-01-15T08:26:40+00:00"
    assert bench.shop.sent == []
    [waiting] = await bench.inbox.list("pending")
    assert waiting.id == error["approvalId"]
    assert waiting.request.arguments == {"id": 1}
    assert waiting.request.definition["description"] == "Orders."
    assert (waiting.request.agent, waiting.request.rule, waiting.request.receipt) == ("coder", "HTTP POST", "r1")
    assert await bench.refused(id=1) == error


async def test_an_approved_call_runs_once() -> None:
    bench = Bench()
    await bench.approved(id=1)
    assert await bench.call(id=1) == {"status": 201}
    assert (await bench.refused(id=1))["reason"] == "approval_required"
    assert bench.shop.sent == [{"id": 1}]


async def test_the_record_of_a_call_names_the_approval_that_it_used_and_who_gave_it() -> None:
    bench = Bench()
    await bench.approved(id=1)
    [given] = await bench.inbox.list("approved")
    await bench.call(id=1)
    asked, ran = bench.journal.audit
    assert ("approval" in asked, ran["approval"]) == (False, {"id": given.id, "by": "grace"})


async def test_an_approval_is_used_up_even_by_a_call_that_fails() -> None:
    bench = Bench()
    await bench.approved(id=1)
    bench.shop.down = True
    assert (await bench.refused(id=1))["reason"] == "unreachable"
    bench.shop.down = False
    assert (await bench.refused(id=1))["reason"] == "approval_required"
    assert len(bench.shop.sent) == 1


async def test_other_arguments_and_other_agents_have_to_ask_themselves() -> None:
    bench = Bench()
    await bench.approved(id=1)
    assert (await bench.refused(id=2))["reason"] == "approval_required"
    assert (await bench.refused(id=1.0))["reason"] == "approval_required"
    assert (await bench.refused(id=True))["reason"] == "approval_required"
    assert (await bench.refused(id=1, agent="other"))["reason"] == "approval_required"
    assert bench.shop.sent == []


async def test_an_approval_does_not_survive_a_changed_definition() -> None:
    bench = Bench()
    await bench.approved(id=1)
    approved, bench.tool = bench.tool, replace(bench.tool, definition="d2")
    assert (await bench.refused(id=1))["reason"] == "approval_required"
    bench.tool = approved
    assert await bench.call(id=1) == {"status": 201}


async def test_a_tool_without_a_definition_hash_is_bound_to_what_it_says_of_itself() -> None:
    bench = Bench()
    bench.tool = replace(bench.tool, definition="")
    await bench.approved(id=1)
    bench.tool = replace(bench.tool, spec=replace(SPEC, description="Orders, and pays."))
    assert (await bench.refused(id=1))["reason"] == "approval_required"
    bench.tool = replace(bench.tool, spec=SPEC)
    assert await bench.call(id=1) == {"status": 201}


async def test_a_fresh_version_token_is_not_another_request_on_a_built_in_tool() -> None:
    bench = Bench()
    bench.tool = replace(bench.tool, kind="builtin", definition="")
    await bench.approved(id=1, versionToken="v1", idempotencyKey="k1")
    [waiting] = await bench.inbox.list("approved")
    assert waiting.request.arguments == {"id": 1}
    assert await bench.call(id=1, versionToken="v2", idempotencyKey="k2") == {"status": 201}


async def test_an_approval_outlives_a_version_that_is_no_longer_current_and_is_still_good_for_one_run() -> None:
    """Who waits for a person comes back with an old version more often than not."""
    add = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}}
    agents = {"ann": {"role": "editor", "approve": ["add_child"]}, "bob": {"role": "editor"}}
    async with Grove(config(agents=agents)) as grove:
        ann, bob = await hand(grove, "ann"), await hand(grove, "bob")
        heard: list[Event] = []
        grove.listen(heard.append)
        old = await ann.version()
        asked = await ann.refused("add_child", **add, versionToken=old)
        await grove.approvals.decide(asked["approvalId"], approve=True, by="grace")
        await bob.ok("add_child", **add)
        assert (await ann.refused("add_child", **add, versionToken=old))["reason"] == "stale_version"
        await ann.ok("add_child", **add, versionToken=await ann.version())
        again = await ann.refused("add_child", **add, versionToken=await ann.version())
        assert again["reason"] == "approval_required"
        assert again["approvalId"] != asked["approvalId"]
        assert sum(isinstance(event, ApprovalDecided) for event in heard) == 1


async def test_a_version_token_of_a_foreign_tool_is_an_argument_like_any_other() -> None:
    bench = Bench()
    await bench.approved(id=1, versionToken="v1")
    assert (await bench.refused(id=1, versionToken="v2"))["reason"] == "approval_required"


async def test_a_rejection_comes_back_once_with_the_persons_reason() -> None:
    bench = Bench()
    error = await bench.refused(id=1)
    await bench.inbox.decide(error["approvalId"], approve=False, by="grace", reason="too dear")
    rejected = await bench.refused(id=1)
    assert (rejected["code"], rejected["reason"]) == ("forbidden", "approval_rejected")
    assert "grace rejected shop_order with these arguments: too dear." in rejected["message"]
    again = await bench.refused(id=1)
    assert again["reason"] == "approval_required"
    assert again["approvalId"] != error["approvalId"]
    assert bench.shop.sent == []


async def test_an_approval_that_came_too_late_is_asked_for_again() -> None:
    bench = Bench()
    await bench.approved(id=1)
    bench.clock.now += 600
    assert (await bench.refused(id=1))["reason"] == "approval_required"
    assert bench.shop.sent == []


@pytest.mark.parametrize("approved", [False, True])
async def test_nothing_is_sent_when_the_inbox_cannot_be_written(approved: bool) -> None:
    bench = Bench()
    if approved:
        await bench.approved(id=1)
    bench.records.full = True
    error = await bench.refused(id=1)
    assert (error["code"], error["reason"]) == ("forbidden", "approval_unavailable")
    assert "/srv" not in json.dumps(error)
    assert bench.shop.sent == []
    assert next(reversed(list(bench.journal.audit)))["outcome"] == "refused"


async def test_an_agent_that_floods_the_inbox_is_told_to_wait() -> None:
    bench = Bench()
    for number in range(5):
        assert (await bench.refused(id=number))["reason"] == "approval_required"
    error = await bench.refused(id=6)
    assert error["reason"] == "approval_unavailable"
    assert "5 calls of this agent wait for one already" in error["message"]


async def test_arguments_that_nobody_can_read_are_not_put_before_a_person() -> None:
    bench = Bench()
    error = await bench.refused(text="x" * MAX_ARGUMENTS)
    assert error["reason"] == "approval_unavailable"
    assert await bench.inbox.list() == []


async def test_a_person_is_shown_scrubbed_arguments_and_the_real_ones_bind() -> None:
    bench = Bench()
    await bench.approved(id="canary")
    [waiting] = await bench.inbox.list()
    assert waiting.request.arguments == {"id": "[secret KEY]"}
    assert (await bench.refused(id="[secret KEY]"))["reason"] == "approval_required"
    assert await bench.call(id="canary") == {"status": 201}


async def test_twenty_racing_calls_share_one_approval_and_one_of_them_runs() -> None:
    bench = Bench()
    await bench.approved(id=1)
    answers: list[dict[str, Any]] = []

    async def call() -> None:
        answers.append(await bench.call(id=1))

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(call)
    assert bench.shop.sent == [{"id": 1}]
    refusals = [answer["error"] for answer in answers if "error" in answer]
    assert len(refusals) == 19
    assert len({error["approvalId"] for error in refusals}) == 1


async def test_requests_and_decisions_are_events_and_a_call_that_waits_is_recorded_so() -> None:
    bench = Bench()
    await bench.approved(id=1)
    await bench.call(id=1)
    told = [type(event) for event in bench.events]
    assert told.index(ApprovalRequested) < told.index(ApprovalDecided)
    outcomes = [record["outcome"] for record in bench.journal.audit]
    assert outcomes == ["waiting", "success"]


async def test_the_person_at_the_client_is_not_asked_unless_the_operator_says_so() -> None:
    bench = Bench()
    person = Person({"approve": True})
    assert (await bench.refused(id=1, client=person))["reason"] == "approval_required"
    bench = Bench(ask_client=True)
    assert (await bench.refused(id=1, client=person, agent="other"))["reason"] == "approval_required"
    assert person.asked == []


async def test_the_person_at_the_client_may_approve_where_the_operator_says_so() -> None:
    bench = Bench(ask_client=True)
    person = Person({"approve": True})
    assert await bench.call(id=1, client=person) == {"status": 201}
    assert await bench.call(id=1, client=person) == {"status": 201}
    assert len(person.asked) == 2
    assert "'coder' wants to run shop_order (HTTP POST)" in person.asked[0]
    [used, _] = await bench.inbox.list("used")
    assert used.decided_by == "the person at the client of coder"


async def test_the_person_at_the_client_approves_one_run_and_nothing_that_stands() -> None:
    bench = Bench(ask_client=True)
    person = Person({"approve": True, "for": "8h", "lasts": "8h"})
    for number in (1, 2):
        assert await bench.call(id=number, client=person) == {"status": 201}
    assert len(person.asked) == 2
    assert [(used.state, used.lasts) for used in await bench.inbox.list()] == [("used", None)] * 2


async def test_nothing_hides_in_what_the_person_at_the_client_is_asked() -> None:
    bench = Bench(ask_client=True)
    person = Person({"approve": True})
    await bench.call(note="\u202egpj.exe\u200b\x1b[2K", more="a\nIt changes nothing.", client=person)
    [asked] = person.asked
    assert r'"note": "\u202egpj.exe\u200b\u001b[2K"' in asked
    assert r'"more": "a\nIt changes nothing."' in asked
    assert not {"\u202e", "\u200b", "\x1b"} & set(asked)


async def test_each_use_of_a_standing_approval_is_on_record() -> None:
    bench = Bench()
    asked = (await bench.refused(id=1))["approvalId"]
    await bench.inbox.decide(asked, approve=True, by="grace", lasts="15m")
    for number in (1, 2, 3):
        assert await bench.call(id=number) == {"status": 201}
    _, *used = list(bench.journal.audit)
    assert [(record["outcome"], record["approval"]) for record in used] == [
        ("success", {"id": asked, "by": "grace"})
    ] * 3
    bench.clock.now += 900
    assert (await bench.refused(id=4))["reason"] == "approval_required"


async def test_an_approval_of_a_sub_agents_call_is_for_the_chain_that_asked() -> None:
    bench = Bench()
    await bench.approved(id=1, chain=("boss", "coder"))
    assert (await bench.refused(id=1))["reason"] == "approval_required"
    assert (await bench.refused(id=1, chain=("chief", "coder")))["reason"] == "approval_required"
    assert await bench.call(id=1, chain=("boss", "coder")) == {"status": 201}


async def test_the_person_at_the_client_may_reject() -> None:
    bench = Bench(ask_client=True)
    error = await bench.refused(id=1, client=Person({"approve": False, "reason": "no"}))
    assert error["reason"] == "approval_rejected"
    assert bench.shop.sent == []


@pytest.mark.parametrize("answer", [None, {}, {"approve": "yes"}, {"approve": 1}, True, "approve"])
async def test_no_clear_answer_leaves_the_call_in_the_inbox(answer: Any) -> None:
    bench = Bench(ask_client=True)
    error = await bench.refused(id=1, client=Person(answer))
    assert error["reason"] == "approval_required"
    assert (await bench.inbox.get(error["approvalId"])).state == "pending"


async def test_whoever_decides_at_the_inbox_first_wins_over_the_client() -> None:
    bench = Bench(ask_client=True)

    async def late() -> dict[str, Any]:
        [waiting] = await bench.inbox.list("pending")
        await bench.inbox.decide(waiting.id, approve=False, by="grace", reason="no")
        return {"approve": True}

    error = await bench.refused(id=1, client=Person(late))
    assert error["reason"] == "approval_rejected"
    assert "grace rejected" in error["message"]
