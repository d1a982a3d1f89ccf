"""Calls to a real server on the official SDK: both eras, over stdio and over HTTP."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pool.mcp.mcp_kit import Journal, Watcher, ready
from toolgrove.errors import ToolError
from toolgrove.types import Annotations
from waiting import eventually

pytestmark = pytest.mark.anyio
Config = dict[str, Any]


async def test_a_result_is_what_the_server_gave(upstream: Config) -> None:
    async with ready(upstream) as hand:
        added = await hand.ok("add", a=1, b=2)
        assert (added["structuredContent"], added["content"]) == ({"sum": 3}, [{"type": "text", "text": "3"}])
        drawn = await hand.ok("picture")
        assert [block["type"] for block in drawn["content"]] == ["image", "text"]
        assert "structuredContent" not in drawn


async def test_a_tool_is_described_as_the_server_describes_it(upstream: Config) -> None:
    async with ready(upstream) as hand:
        add, echo, remove = hand.tool("add"), hand.tool("echo"), hand.tool("remove")
        assert add.spec.name == "up_add"
        assert add.spec.input_schema["required"] == ["a", "b"]
        assert add.spec.output_schema["required"] == ["sum"]
        assert echo.spec.description == "Says it again."
        assert echo.spec.output_schema == {}
        assert add.spec.annotations == Annotations(), "what the server does not say is not said"
        assert remove.spec.annotations == Annotations(destructive=True)
        assert [tool.mutates for tool in (add, echo, remove)] == [True, True, True]


async def test_a_tool_reads_if_the_operator_says_so(upstream: Config) -> None:
    async with ready({**upstream, "reads": ["e*", "remove"], "changes": ["remove"]}) as hand:
        assert not hand.tool("echo").mutates
        assert hand.tool("environment").spec.annotations.readonly is None, "hints stay as the server gave them"
        assert hand.tool("remove").mutates, "changes beats reads"
        assert hand.tool("add").mutates
    async with ready({**upstream, "trustHints": True}) as hand:
        assert [hand.tool(name).mutates for name in ("echo", "add", "remove")] == [False, True, True]


async def test_many_calls_at_a_time_each_get_their_own_answer(upstream: Config) -> None:
    async with ready(upstream) as hand:
        sums: dict[int, Any] = {}

        async def add(number: int) -> None:
            sums[number] = (await hand.ok("add", a=number, b=1))["structuredContent"]["sum"]

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(add, number)
        assert sums == {number: number + 1 for number in range(50)}


async def test_progress_is_passed_on_in_order(upstream: Config) -> None:
    async with ready(upstream) as hand:
        watcher = Watcher()
        await hand.ok("steps", client=watcher)
        assert watcher.heard == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_a_secret_in_a_progress_message_is_scrubbed(upstream: Config) -> None:
    config = {**upstream, ("env" if "command" in upstream else "headers"): {"X-Key": "${env:CANARY}"}}
    async with ready(config, environ={"CANARY": "canary-value-8f3a"}) as hand:
        watcher = Watcher()
        await hand.ok("steps", client=watcher, text=" canary-value-8f3a")
        assert [message for *_, message in watcher.heard] == [f"step {n} [secret CANARY]" for n in (1, 2, 3)]


async def test_the_tools_own_failure_is_told_in_its_words(upstream: Config) -> None:
    async with ready(upstream) as hand:
        error = await hand.refused("fail")
        assert (error["code"], error["reason"], error["message"]) == ("internal", "tool_error", "the disk is full")
        with pytest.raises(ToolError) as raised:
            await hand.ok("refuse")
        assert raised.value.result["isError"] is True
        assert raised.value.result["structuredContent"]["error"]["page"] == 7


async def test_a_result_that_breaks_the_tools_own_promise_is_refused(upstream: Config) -> None:
    async with ready(upstream) as hand:
        error = await hand.refused("lie")
        assert (error["code"], error["reason"]) == ("internal", "bad_result")
        assert "outputSchema" in error["message"]


async def test_a_call_that_takes_too_long_ends_and_the_server_hears_of_it(upstream: Config, journal: Journal) -> None:
    async with ready({**upstream, "timeout": 1.0}) as hand:
        error = await hand.refused("hang")
        assert (error["code"], error["reason"]) == ("internal", "timeout")
        await eventually(lambda: journal.of("cancelled"))
        assert await hand.text("echo", text="still here") == "still here"
        assert journal.calls() == ["hang", "echo"]


async def test_a_call_that_nobody_waits_for_is_cancelled_at_the_server(upstream: Config, journal: Journal) -> None:
    async with ready({**upstream, "concurrency": 1}) as hand:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hand.ok, "hang")
            await eventually(lambda: journal.of("hanging"))
            tasks.cancel_scope.cancel()
        await eventually(lambda: journal.of("cancelled"))
        assert await hand.text("echo", text="the place is free") == "the place is free"


@pytest.mark.parametrize("protocol", ["modern"])
async def test_a_tool_that_asks_for_input_is_refused_with_advice(upstream: Config) -> None:
    async with ready(upstream) as hand:
        error = await hand.refused("ask")
        assert (error["code"], error["reason"]) == ("internal", "input_required")
        assert "Do not retry" in error["message"]


@pytest.mark.parametrize("transport", ["http"])
async def test_a_call_is_exactly_one_request(upstream: Config, journal: Journal) -> None:
    async with ready(upstream) as hand:
        before = len(journal.requests())
        for number in range(5):
            await hand.ok("add", a=number, b=1)
        assert [method for method, _ in journal.requests()[before:]] == ["POST"] * 5


@pytest.mark.parametrize(("transport", "protocol"), [("http", "modern")])
@pytest.mark.parametrize("region", ["eu", "Zürich", " padded ", "=?base64?eu?=", "a\r\nX-Evil: 1"])
async def test_an_argument_that_a_tool_wants_as_a_header_goes_there_unharmed(
    upstream: Config, journal: Journal, region: str
) -> None:
    """The SDK's server compares the header with the body, and refuses the call where they differ."""
    async with ready(upstream) as hand:
        assert await hand.text("region", region=region) == region
        headers = journal.requests()[-1][1]
        assert "mcp-param-region" in headers
        assert "x-evil" not in headers


@pytest.mark.parametrize("transport", ["stdio"])
@pytest.mark.parametrize("protocol", ["auto"])
async def test_the_era_is_found_out_where_it_is_not_told(upstream: Config) -> None:
    async with ready(upstream) as hand:
        assert (await hand.ok("add", a=2, b=2))["structuredContent"] == {"sum": 4}
        assert await hand.refused("ask")  # only the modern era knows this kind of answer


async def test_no_argument_of_an_agent_is_filled_in(upstream: Config) -> None:
    async with ready(upstream, environ={"CANARY": "canary-value-8f3a"}) as hand:
        assert await hand.text("echo", text="${env:CANARY}") == "${env:CANARY}"


async def test_a_secret_that_the_server_says_is_scrubbed(upstream: Config) -> None:
    config = {**upstream, ("env" if "command" in upstream else "headers"): {"X-Key": "${env:CANARY}"}}
    async with ready(config, environ={"CANARY": "canary-value-8f3a"}) as hand:
        assert await hand.text("echo", text="it is canary-value-8f3a") == "it is [secret CANARY]"
        assert (await hand.refused("fail", text="canary-value-8f3a"))["message"] == "[secret CANARY]"
