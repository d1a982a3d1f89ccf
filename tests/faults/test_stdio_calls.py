"""Calls to a server over stdio that go wrong: that call fails, at once and with its reason, and nothing else does.

The servers may take an hour for a call where nothing else is said, far beyond the deadline of a test: whoever waits
for the end of a call's time instead of failing it fails here.
"""

from __future__ import annotations

import logging
import random
from typing import Any

import anyio
import pytest

from faults.kit import Journal, Peak, alive, answers, back, beside, error_of, fake, granted, running, text_of, verdict
from waiting import eventually

pytestmark = pytest.mark.anyio
HOUR = 3600.0


# The answer is lost, the server stays: tool, arguments, reason.
LOST = [
    ("bad_utf8", {}, "bad_result"),
    ("unparseable", {}, "bad_result"),
    ("deep", {"text": "100000"}, "bad_result"),
    ("deep", {"text": "900"}, "bad_result"),
    ("nan", {}, "bad_result"),
    ("infinity", {}, "bad_result"),
    ("digits", {}, "bad_result"),
    ("surrogate", {}, "bad_result"),
    ("neither", {}, "bad_result"),
    ("bad_result", {}, "bad_result"),
    ("bad_content", {}, "bad_result"),
    ("bad_error", {}, "bad_result"),
]


@pytest.mark.parametrize("protocol", ["modern", "legacy"])
@pytest.mark.parametrize(("tool", "arguments", "reason"), LOST)
async def test_an_answer_that_cannot_be_read_fails_that_call_only(
    tool: str, arguments: dict[str, Any], reason: str, protocol: str, journal: Journal
) -> None:
    servers = {"bad": fake(journal=journal, timeout=HOUR, protocol=protocol), "well": fake()}
    async with running(servers) as grove:
        agent = await grove.agent("a")
        async with anyio.create_task_group() as tasks:
            held: list[Any] = []

            async def hold() -> None:
                held.append(await agent.call("bad_hold", {"text": "x"}))

            tasks.start_soon(hold)
            await journal.wrote("holds")
            error = error_of(await beside(agent, agent.call(f"bad_{tool}", arguments)))
            assert error["code"] == "internal"
            assert error["reason"] == reason
            assert "It may have run all the same" in error["message"], "the request had left"
            await answers(agent, "bad")
            await agent.call("bad_release", {"text": "x"})
        assert text_of(held[0]) == "released"
        assert len(journal.pids) == 1


# The server is lost with the call, and comes back.
GONE = [
    ("crash", {}, "upstream_unavailable"),
    ("exit", {}, "upstream_unavailable"),
    ("close_output", {}, "upstream_unavailable"),
    ("flood", {}, "upstream_unavailable"),
    ("endless", {}, "upstream_unavailable"),
    ("giant", {"text": str(20_000_000)}, "upstream_unavailable"),
    ("giant", {"text": str(40_000_000)}, "upstream_unavailable"),
]


@pytest.mark.parametrize(("tool", "arguments", "reason"), GONE)
async def test_a_server_that_breaks_in_a_call_fails_it_at_once_and_is_started_again(
    tool: str, arguments: dict[str, Any], reason: str, journal: Journal
) -> None:
    async with running({"bad": fake(journal=journal, timeout=HOUR), "well": fake()}) as grove:
        agent = await grove.agent("a")
        error = error_of(await beside(agent, agent.call(f"bad_{tool}", arguments)))
        assert error["code"] == "internal"
        assert error["reason"] == reason
        assert "It may have run all the same" in error["message"], "the request had left"
        await answers(await back(grove, "bad_echo"), "bad")
        assert len(journal.pids) == 2
        assert journal.received("tools/call", tool) == 1, "a call is never repeated"
    assert not [pid for pid in journal.pids if alive(pid)]


async def test_a_crashed_server_is_in_the_receipt_until_it_is_back(journal: Journal) -> None:
    async with running({"bad": fake(journal=journal), "well": fake()}) as grove:
        agent = await grove.agent("a")
        await agent.call("bad_crash")
        assert "signal 9" in await verdict(grove, "bad_echo", "unavailable")
        await granted(grove, "bad_echo")


async def test_an_agent_from_before_the_crash_goes_on_with_the_new_process(journal: Journal) -> None:
    async with running({"bad": fake(journal=journal), "well": fake()}) as grove:
        agent = await grove.agent("a")
        await agent.call("bad_crash")
        await back(grove, "bad_echo")
        await answers(agent, "bad")


async def test_calls_to_a_server_that_is_down_fail_at_once(tmp_path: Any, journal: Journal) -> None:
    async with running({"bad": fake(journal=journal, timeout=HOUR), "well": fake()}) as grove:
        agent = await grove.agent("a")
        await agent.call("bad_crash")
        error = error_of(await agent.call("bad_echo", {"text": "x"}))
        assert error["reason"] == "upstream_unavailable"
        assert error["code"] == "internal"


async def test_other_calls_in_flight_fail_with_the_server(journal: Journal) -> None:
    async with running({"bad": fake(journal=journal, timeout=HOUR), "well": fake()}) as grove:
        agent = await grove.agent("a")
        results: list[Any] = []

        async def hold(text: str) -> None:
            results.append(await agent.call("bad_hold", {"text": text}))

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(hold, str(number))
            await journal.wrote("holds", 5)
            await agent.call("bad_crash")
        assert [error_of(result)["reason"] for result in results] == ["upstream_unavailable"] * 5


@pytest.mark.parametrize("tool", ["hang", "block"])
async def test_a_hanging_call_ends_with_its_time_and_frees_its_place(tool: str, journal: Journal) -> None:
    servers = {"bad": fake(journal=journal, timeout=0.5, concurrency=1), "well": fake()}
    async with running(servers) as grove:
        agent = await grove.agent("a")
        error = error_of(await beside(agent, agent.call(f"bad_{tool}")))
        assert error["code"] == "internal"
        assert error["reason"] == "timeout"
        if tool == "hang":
            await answers(agent, "bad")
            assert (await agent.call("bad_journal"))["structuredContent"]["cancelled"] == 1


async def test_a_blocked_server_is_given_up_and_started_again(journal: Journal) -> None:
    """It neither reads nor answers any more; only a new process helps."""
    async with running({"bad": fake(journal=journal, timeout=0.3), "well": fake()}) as grove:
        agent = await grove.agent("a")
        assert error_of(await agent.call("bad_block"))["reason"] == "timeout"
        while len(journal.pids) < 2:
            await agent.call("bad_echo", {"text": "x"})
            await anyio.sleep(0.05)
        await answers(await granted(grove, "bad_echo"), "bad")


async def test_an_answer_after_the_time_was_up_reaches_nobody(journal: Journal) -> None:
    """The fake server answers the call as soon as it is told that nobody waits any more."""
    async with running({"bad": fake(journal=journal, timeout=0.3)}) as grove:
        agent = await grove.agent("a")
        assert error_of(await agent.call("bad_hang", {"text": "too late"}))["reason"] == "timeout"
        for number in range(5):
            assert text_of(await agent.call("bad_echo", {"text": str(number)})) == str(number)


async def test_a_cancelled_call_tells_the_server_and_leaves_one_record(journal: Journal) -> None:
    async with running({"bad": fake(journal=journal, timeout=HOUR, concurrency=1)}) as grove:
        agent = await grove.agent("a")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.call, "bad_hang")
            await journal.wrote("hangs")
            tasks.cancel_scope.cancel()
        await answers(agent, "bad")
        assert (await agent.call("bad_journal"))["structuredContent"]["cancelled"] == 1
        assert [record["outcome"] for record in grove.audit if record["operation"] == "bad_hang"] == ["cancelled"]


async def test_a_cancellation_that_races_the_answer_leaves_one_record(journal: Journal) -> None:
    async with running({"bad": fake(journal=journal, timeout=HOUR)}) as grove:
        agent = await grove.agent("a")
        for number in range(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.call, "bad_hold", {"text": str(number)})
                await journal.wrote("holds", number + 1)
                tasks.start_soon(agent.call, "bad_release", {"text": str(number)})
                for _ in range(number % 5):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        await answers(agent, "bad")
        outcomes = [record["outcome"] for record in grove.audit if record["operation"] == "bad_hold"]
        assert len(outcomes) == 20
        assert set(outcomes) <= {"success", "cancelled"}


@pytest.mark.parametrize(
    ("tool", "said"),
    [("wrong_id", "for you"), ("duplicate", "first"), ("noise", "through the noise"), ("odd_progress", "done")],
)
async def test_what_was_not_asked_for_is_passed_over(tool: str, said: str) -> None:
    async with running({"bad": fake(timeout=HOUR), "well": fake()}) as grove:
        agent = await grove.agent("a")
        assert text_of(await beside(agent, agent.call(f"bad_{tool}"))) == said
        await answers(agent, "bad")


async def test_an_answer_that_is_both_result_and_error_is_an_error() -> None:
    async with running({"bad": fake(timeout=HOUR)}) as grove:
        agent = await grove.agent("a")
        assert error_of(await agent.call("bad_both"))["code"] == "internal"
        await answers(agent, "bad")


async def test_a_flood_of_error_output_neither_blocks_the_server_nor_us(caplog: pytest.LogCaptureFixture) -> None:
    async with running({"bad": fake(timeout=HOUR), "well": fake()}) as grove:
        agent = await grove.agent("a")
        assert text_of(await beside(agent, agent.call("bad_stderr_flood"))) == "said it all"
        await answers(agent, "bad")
    assert sum(len(record.getMessage()) for record in caplog.records) < 1_000_000


@pytest.mark.parametrize("seed", range(3))
async def test_what_is_written_to_stderr_delays_no_call_however_much_it_is(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Where it had to wait, such a flood would take longer than the call may."""
    draw = random.Random(seed)
    caplog.set_level(logging.INFO, "toolgrove.pool")
    async with running({"bad": fake(timeout=10)}) as grove:
        agent = await grove.agent("a")
        for size in (draw.randrange(1_000, 1_000_000), draw.randrange(30_000_000, 60_000_000)):
            width = draw.choice([20, 100, 4_000, 65_536, 1_000_000])
            assert text_of(await agent.call("bad_stderr_flood", {"text": f"{size}/{width}"})) == "said it all"
        await answers(agent, "bad")
    assert sum(len(record.getMessage()) for record in caplog.records) < 1_000_000
    assert any("more lines were dropped" in record.getMessage() for record in caplog.records)


class Listener:
    """A client that hears of progress."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, float | None, str | None]] = []

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append((progress, total, message))

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        return None


@pytest.mark.parametrize("protocol", ["modern", "legacy"])
async def test_progress_reaches_who_waits(protocol: str) -> None:
    async with running({"up": fake(protocol=protocol)}) as grove:
        listener = Listener()
        await (await grove.agent("a")).call("up_progress", client=listener)
        assert listener.heard == [(step, 3, f"step {step}") for step in (1, 2, 3)]


async def test_a_flood_of_progress_loses_neither_the_answer_nor_its_order() -> None:
    async with running({"bad": fake(timeout=HOUR), "well": fake()}) as grove:
        agent = await grove.agent("a")
        listener = Listener()
        assert text_of(await beside(agent, agent.call("bad_progress_flood", client=listener))) == "done"
        steps = [progress for progress, _, _ in listener.heard]
        assert steps
        assert steps == sorted(set(steps))


async def test_progress_that_is_none_is_not_passed_on() -> None:
    async with running({"bad": fake(timeout=HOUR)}) as grove:
        listener = Listener()
        assert text_of(await (await grove.agent("a")).call("bad_odd_progress", client=listener)) == "done"
        assert listener.heard == [(1, None, None)]


@pytest.mark.parametrize(
    ("tool", "text"), [("endless", ""), ("giant", "40000000"), ("flood", ""), ("stderr_flood", "")]
)
async def test_what_a_server_pours_out_does_not_fill_our_memory(tool: str, text: str, peak: Peak) -> None:
    async with running({"bad": fake(timeout=HOUR)}) as grove:
        agent = await grove.agent("a")
        peak.reset()
        await agent.call(f"bad_{tool}", {"text": text})
        assert peak.grown() < 64


@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage", "elicitation/create", "no/such/method"])
async def test_a_server_that_asks_us_something_is_told_no(method: str) -> None:
    async with running({"bad": fake(timeout=HOUR)}) as grove:
        agent = await grove.agent("a")
        assert "error" in text_of(await agent.call("bad_ask", {"text": method}))


async def test_a_server_that_pings_us_is_answered() -> None:
    async with running({"bad": fake(timeout=HOUR)}) as grove:
        agent = await grove.agent("a")
        assert '"result"' in text_of(await agent.call("bad_ask", {"text": "ping"}))


@pytest.mark.requirement("CALL-003-07")
@pytest.mark.parametrize(
    ("tool", "message"), [("refuse", "the shelf is empty"), ("refuse_in_our_words", "there is no such shelf")]
)
async def test_a_failure_in_the_tools_own_words_is_passed_on(tool: str, message: str) -> None:
    async with running({"up": fake()}) as grove:
        answer = await (await grove.agent("a")).call(f"up_{tool}")
        assert answer["isError"] is True
        assert message in text_of(answer)


async def test_an_error_of_the_protocol_is_told_in_the_servers_words() -> None:
    async with running({"up": fake()}) as grove:
        error = error_of(await (await grove.agent("a")).call("up_rpc_error"))
        assert (error["code"], error["reason"]) == ("internal", "upstream_rejected")
        assert "the shelf fell down" in error["message"]


async def test_large_answers_within_the_bound_arrive_whole() -> None:
    async with running({"up": fake(timeout=HOUR)}) as grove:
        agent = await grove.agent("a")
        assert len(text_of(await agent.call("up_giant", {"text": "4000000"}))) == 4_000_000


async def test_a_hundred_calls_at_once_are_all_answered_with_their_own_answer() -> None:
    async with running({"up": fake()}) as grove:
        agent = await grove.agent("a")
        results: dict[int, str] = {}

        async def one(number: int) -> None:
            results[number] = text_of(await agent.call("up_echo", {"text": str(number)}))

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(one, number)
        assert results == {number: str(number) for number in range(100)}


async def test_more_calls_than_can_wait_are_turned_away_at_once(journal: Journal) -> None:
    async with running({"up": fake(journal=journal, concurrency=1, timeout=HOUR)}) as grove:
        agent = await grove.agent("a")
        reasons: list[str] = []

        async def call() -> None:
            reasons.append(error_of(await agent.call("up_echo", {"text": "x"}))["reason"])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.call, "up_hold", {"text": "x"})
            await journal.wrote("holds")
            for _ in range(200):
                tasks.start_soon(call)
            await eventually(lambda: len(reasons) > 100)
            tasks.cancel_scope.cancel()
        assert set(reasons) == {"upstream_busy"}


async def test_no_more_calls_than_allowed_are_in_flight(journal: Journal) -> None:
    async with running({"up": fake(journal=journal, concurrency=2, timeout=HOUR)}) as grove:
        agent = await grove.agent("a")
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(agent.call, "up_hold", {"text": str(number)})
            await journal.wrote("holds", 2)
            await anyio.wait_all_tasks_blocked()
            assert journal.received("tools/call", "hold") == 2
            tasks.cancel_scope.cancel()


async def test_the_child_sees_only_the_environment_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEBODYS_TOKEN", "canary")
    async with running({"up": fake(env={"GIVEN": "yes"})}) as grove:
        seen = (await (await grove.agent("a")).call("up_environment"))["structuredContent"]
        assert seen["GIVEN"] == "yes"
        assert "SOMEBODYS_TOKEN" not in seen
        assert "canary" not in str(seen)
