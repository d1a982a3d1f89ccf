"""Servers over HTTP that answer wrongly, partly, endlessly or not at all."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from faults.kit import Peak, answers, beside, error_of, fake, granted, project, recovers, running, text_of, verdict
from faults.web import ANSWERS, Web, Wire, bomb, redirect, reset, streamed
from grove_kit import ManualClock
from toolgrove import Agent, Grove
from toolgrove.pool.mcp.connection import KEPT
from waiting import eventually

pytestmark = pytest.mark.anyio
HOUR = 3600.0

# These never come to an end by themselves: only the time of the call ends them.
ENDLESS = {"blackhole", "drip", "stream_without_end"}
REASONS = {
    "reset": "upstream_unavailable",
    "not_http": "upstream_unavailable",
    "cut_in_head": "upstream_unavailable",
    "cut_in_body": "upstream_unavailable",
    "stream_cut": "upstream_unavailable",
    "stream_ends": "upstream_unavailable",
    "stream_flood": "upstream_unavailable",
    "stream_chatter": "upstream_unavailable",
    "endless_head": "upstream_unavailable",
    "status_503": "upstream_unavailable",
    "status_429": "upstream_unavailable",
    "status_500": "upstream_unavailable",
    "status_401": "upstream_unavailable",
} | dict.fromkeys(ENDLESS, "timeout")


@pytest.mark.parametrize("fault", sorted(ANSWERS))
async def test_a_call_that_goes_wrong_over_http_fails_alone_with_its_reason(fault: str) -> None:
    """Once the fault is over the same server answers again; the call itself was sent once."""
    with Web().serving() as upstream:
        timeout = 1.0 if fault in ENDLESS else HOUR
        async with running({"bad": {"url": upstream.url, "timeout": timeout}, "well": fake()}) as grove:
            agent = await grove.agent("a")
            await answers(agent, "bad")
            calls = upstream.counted("tools/call")
            upstream.faults["tools/call"] = ANSWERS[fault]
            error = error_of(await beside(agent, agent.call("bad_echo", {"text": "x"})))
            assert error["code"] in ("internal", "rate_limited")
            assert error["reason"] == REASONS.get(fault, "bad_result")
            assert "stack trace" not in str(error)
            assert upstream.counted("tools/call") == calls + 1, "a call is never repeated"
            upstream.faults.clear()
            await recovers(agent, "bad")


@pytest.mark.parametrize("fault", sorted(ANSWERS))
async def test_a_server_that_is_broken_from_the_start_is_unavailable_with_its_reason(fault: str) -> None:
    with Web(faults={"*": ANSWERS[fault]}).serving() as upstream:
        async with running({"bad": {"url": upstream.url}, "well": fake()}, budget=2.0) as grove:
            agent = await granted(grove, "well_echo")
            await answers(agent)
            assert agent.receipt.sources["bad"].problem
            assert "stack trace" not in agent.receipt.sources["bad"].problem


async def test_a_port_where_nobody_listens_is_unavailable_with_its_reason() -> None:
    with Web().serving() as upstream:
        url = upstream.url
    async with running({"bad": {"url": url}, "well": fake()}) as grove:
        agent = await grove.agent("a")
        await answers(agent)
        assert agent.receipt.sources["bad"].problem


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("protocol", ["modern", "legacy", "auto"])
async def test_a_call_is_exactly_one_request(streams: bool, protocol: str) -> None:
    with Web(streams=streams).serving() as upstream:
        async with running({"up": {"url": upstream.url, "protocol": protocol}}) as grove:
            agent = await grove.agent("a")
            await answers(agent, "up")
            await anyio.wait_all_tasks_blocked()
            before = [request.rpc for request in upstream.requests]
            for _ in range(10):
                await answers(agent, "up")
            after = [request.rpc for request in upstream.requests][len(before) :]
            assert after == ["tools/call"] * 10


async def test_a_connection_that_the_server_closed_meanwhile_does_not_fail_the_next_call() -> None:
    with Web(close_after=True).serving() as upstream:
        async with running({"up": {"url": upstream.url}}) as grove:
            agent = await grove.agent("a")
            calls = upstream.counted("tools/call")
            for _ in range(10):
                await eventually(lambda: upstream.connections == 0)
                await anyio.wait_all_tasks_blocked()
                await answers(agent, "up")
            assert upstream.counted("tools/call") == calls + 10


async def test_connections_of_a_busy_moment_are_not_kept_for_ever() -> None:
    clock, go = ManualClock(), threading.Event()

    def together(wire: Wire) -> None:
        go.wait(10)
        wire.socket.sendall(wire.answer)

    with Web(faults={"tools/call": together}).serving() as upstream:
        async with running({"up": {"url": upstream.url}}, clock=clock) as grove:
            agent = await grove.agent("a")
            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(answers, agent, "up")
                await eventually(lambda: upstream.counted("tools/call") == 4)
                go.set()
            assert upstream.connections >= 4
            for _ in range(2):
                clock.now += KEPT * 0.75
                await answers(agent, "up")
            await eventually(lambda: upstream.connections <= 2)


async def test_a_session_that_the_server_forgot_is_begun_again_without_a_failed_call() -> None:
    clock = ManualClock()
    with Web(mode="legacy").serving() as upstream:
        async with running({"up": {"url": upstream.url, "protocol": "legacy"}}, clock=clock) as grove:
            agent = await grove.agent("a")
            await answers(agent, "up")
            clock.now += 3_600
            upstream.sessions.clear()
            await answers(agent, "up")
            assert upstream.counted("initialize") == 2


async def test_a_call_does_not_wait_longer_for_a_new_session_than_for_an_answer() -> None:
    with Web(mode="legacy").serving() as upstream:
        async with running({"up": {"url": upstream.url, "protocol": "legacy", "timeout": 0.3}}) as grove:
            agent = await grove.agent("a")
            await answers(agent, "up")
            upstream.sessions.clear()
            upstream.faults["initialize"] = ANSWERS["blackhole"]
            error_of(await agent.call("up_echo", {"text": "x"}))
            error = error_of(await agent.call("up_echo", {"text": "x"}))
            assert error["reason"] == "upstream_unavailable"
            assert "may have run" not in error["message"]


async def test_an_answer_that_comes_after_its_server_was_left_out_is_still_the_answer() -> None:
    go = threading.Event()
    with Web(faults={"tools/call": streamed(go)}).serving() as upstream:
        async with running({"up": {"url": upstream.url, "timeout": HOUR}}) as grove:
            agent = await grove.agent("a")
            async with leaving(grove, agent, upstream) as results:
                go.set()
            assert text_of(results[0]) == "x"


async def test_a_call_whose_server_was_left_out_still_has_its_deadline() -> None:
    with Web(mode="legacy", faults={"tools/call": ANSWERS["blackhole"]}).serving() as upstream:
        async with running({"up": {"url": upstream.url, "protocol": "legacy", "timeout": 1.0}}) as grove:
            agent = await grove.agent("a")
            async with leaving(grove, agent, upstream) as results:
                pass
            assert error_of(results[0])["reason"] == "timeout"


@asynccontextmanager
async def leaving(grove: Grove, agent: Agent, upstream: Web) -> AsyncIterator[list[dict[str, Any]]]:
    """A call is under way, and the configuration does not have its server any more."""
    results: list[dict[str, Any]] = []

    async def call() -> None:
        results.append(await agent.call("up_echo", {"text": "x"}))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await eventually(lambda: upstream.counted("tools/call") > 0)
        await grove.reload(project({}))
        await anyio.wait_all_tasks_blocked()
        yield results


async def test_nonsense_behind_an_answer_takes_nothing_away_from_it() -> None:
    with Web(faults={"tools/call": streamed(tail=b"no chunk\r\n")}).serving() as upstream:
        async with running({"up": {"url": upstream.url}}) as grove:
            agent = await grove.agent("a")
            await answers(agent, "up")
            await answers(agent, "up")
            await eventually(lambda: upstream.connections <= 1)


@pytest.mark.parametrize("status", ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent"])
async def test_a_redirect_leads_nobody_to_another_host(status: str) -> None:
    """Neither the call nor the credentials arrive there."""
    with Web().serving() as upstream, Web().serving() as elsewhere:
        headers = {"Authorization": "Bearer canary"}
        async with running({"bad": {"url": upstream.url, "headers": headers}, "well": fake()}) as grove:
            agent = await grove.agent("a")
            await answers(agent, "bad")
            upstream.faults["tools/call"] = redirect(elsewhere.url.replace("127.0.0.1", "localhost"), status)
            error = error_of(await agent.call("bad_echo", {"text": "x"}))
            assert error["code"] == "internal"
            assert elsewhere.requests == []


async def test_a_server_that_went_away_is_in_the_receipt_until_it_is_back() -> None:
    with Web().serving() as upstream:
        async with running({"up": {"url": upstream.url}, "well": fake()}) as grove:
            agent = await grove.agent("a")
            await answers(agent, "up")
            upstream.faults["*"] = reset
            assert "error" in await agent.call("up_echo", {"text": "x"})
            assert await verdict(grove, "up_echo", "unavailable")
            upstream.faults.clear()
            await recovers(agent, "up")


async def test_a_cancelled_call_over_http_frees_its_place() -> None:
    with Web().serving() as upstream:
        async with running({"up": {"url": upstream.url, "timeout": HOUR, "concurrency": 1}}) as grove:
            agent = await grove.agent("a")
            upstream.faults["tools/call"] = ANSWERS["blackhole"]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.call, "up_echo")
                while not upstream.counted("tools/call"):
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
            upstream.faults.clear()
            await answers(agent, "up")


async def test_large_answers_within_the_bound_arrive_whole_over_http() -> None:
    with Web().serving() as upstream, Web(streams=True).serving() as streaming:
        async with running({"up": {"url": upstream.url}, "sse": {"url": streaming.url}}) as grove:
            agent = await grove.agent("a")
            for server in ("up", "sse"):
                assert len(text_of(await agent.call(f"{server}_giant", {"text": "4000000"}))) == 4_000_000


@pytest.mark.parametrize(
    "fault", ["huge", "huge_chunked", "gzip_bomb", "stream_long_line", "endless_head", "stream_flood"]
)
async def test_what_a_server_pours_out_over_http_does_not_fill_our_memory(fault: str, peak: Peak) -> None:
    with Web().serving() as upstream:
        async with running({"bad": {"url": upstream.url, "timeout": HOUR}}) as grove:
            agent = await grove.agent("a")
            bomb()
            upstream.faults["tools/call"] = ANSWERS[fault]
            peak.reset()
            error_of(await agent.call("bad_echo", {"text": "x"}))
            assert peak.grown() < 64
