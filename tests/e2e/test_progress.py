"""Progress and streamed results, as a client sees them."""

import json
from typing import Any

import httpx2
import pytest
from apcore import Executor, Registry
from mcp import Client

from apcore_mcp import MCP_ELICIT_KEY, MCP_PROGRESS_KEY
from e2e.conftest import Connect
from e2e.modules import Anything, Journal, Module
from e2e.servers import Address, serving
from e2e.wire import MODERN, call_body, messages, modern_headers
from mcp_text import text_of

pytestmark = pytest.mark.anyio


class Seen:
    """Collects progress notifications."""

    def __init__(self) -> None:
        self.all: list[tuple[float, float | None, str | None]] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.all.append((progress, total, message))

    @property
    def values(self) -> list[float]:
        return [progress for progress, _, _ in self.all]


@pytest.mark.requirement("FR-EXT-001", "FR-EXEC-004", "FR-TRANSPORT-001")
async def test_async_and_sync_modules_report_progress_over_every_transport_in_both_eras(connect: Connect) -> None:
    arguments = {"values": [1, 2, 3], "total": 3}
    async with connect() as client:
        for name in ("progress.awaited", "progress.threaded"):
            seen = Seen()
            result = await client.call_tool(name, arguments, progress_callback=seen)
            assert json.loads(text_of(result)) == {"reported": 3}
            assert seen.all == [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]


@pytest.mark.requirement("FR-STREAM-001", "FR-EXEC-003")
async def test_a_streaming_module_streams_its_chunks_to_a_client_that_asked_for_progress(
    connect: Connect, transport: str, era: str
) -> None:
    # In memory, the new era's client calls back directly and sends no token of its own accord.
    meta: Any = {"progress_token": 1} if (transport, era) == ("memory", MODERN) else None
    async with connect() as client:
        seen = Seen()
        result = await client.call_tool("stream.count", {"upto": 3}, progress_callback=seen, meta=meta)
        assert seen.values == [1, 2, 3]
        chunks = [json.loads(message or "") for _, _, message in seen.all]
        assert chunks == [{"mode": "chunks", "seen": {str(n): True}, "last": n} for n in (1, 2, 3)]
        whole = {"mode": "chunks", "seen": {"1": True, "2": True, "3": True}, "last": 3}
        assert json.loads(text_of(result)) == whole


@pytest.mark.parametrize("era", [MODERN, "legacy"])
@pytest.mark.requirement("FR-STREAM-001")
async def test_without_a_progress_token_or_the_annotation_a_module_runs_whole(address: Address, era: str) -> None:
    async with Client(address.mcp, mode=era) as client:
        seen = Seen()
        unasked = await client.call_tool("stream.count", {"upto": 3})
        unmarked = await client.call_tool("stream.unmarked", {"upto": 3}, progress_callback=seen)
    assert json.loads(text_of(unasked)) == json.loads(text_of(unmarked)) == {"mode": "whole"}
    assert seen.all == []


class ExecutorWithoutStream(Executor):
    stream = None  # type: ignore[assignment]


@pytest.mark.requirement("FR-STREAM-001", "FR-EXEC-005")
async def test_an_executor_that_cannot_stream_runs_a_streaming_module_whole(samples: Registry) -> None:
    with serving(ExecutorWithoutStream(samples)) as address:
        async with Client(address.mcp, mode=MODERN) as client:
            seen = Seen()
            result = await client.call_tool("stream.count", {"upto": 3}, progress_callback=seen)
    assert json.loads(text_of(result)) == {"mode": "whole"}
    assert seen.all == []


@pytest.mark.parametrize("era", [MODERN, "legacy"])
@pytest.mark.requirement("FR-STREAM-001")
async def test_a_stream_of_no_chunks_is_an_empty_result(address: Address, era: str) -> None:
    async with Client(address.mcp, mode=era) as client:
        seen = Seen()
        result = await client.call_tool("stream.count", {"upto": 0}, progress_callback=seen)
    assert not result.is_error
    assert json.loads(text_of(result)) == {}
    assert seen.all == []


@pytest.mark.parametrize("era", [MODERN, "legacy"])
@pytest.mark.requirement("FR-STREAM-001", "FR-ERROR-009", "NFR-SEC-002")
async def test_a_stream_that_breaks_ends_in_a_plain_error(address: Address, era: str) -> None:
    async with Client(address.mcp, mode=era) as client:
        seen = Seen()
        result = await client.call_tool("stream.broken", {"upto": 3}, progress_callback=seen)
    assert result.is_error
    assert text_of(result) == "Internal error occurred"
    assert seen.values == [1]


@pytest.mark.parametrize("era", [MODERN, "legacy"])
@pytest.mark.parametrize("name", ["progress.awaited", "progress.threaded"])
@pytest.mark.requirement("FR-EXT-001")
async def test_progress_strictly_increases_whatever_the_module_reports(address: Address, era: str, name: str) -> None:
    async with Client(address.mcp, mode=era) as client:
        seen = Seen()
        await client.call_tool(name, {"values": [5, 5, 3, 0, -1, 200, 7], "total": 10}, progress_callback=seen)
    assert len(seen.all) == 7
    assert all(before < after for before, after in zip(seen.values, seen.values[1:], strict=False))
    assert [message for _, _, message in seen.all] == [f"at {v}" for v in (5, 5, 3, 0, -1, 200, 7)]


@pytest.mark.requirement("FR-EXT-001")
async def test_progress_may_omit_the_total(address: Address) -> None:
    async with Client(address.mcp, mode=MODERN) as client:
        seen = Seen()
        await client.call_tool("progress.awaited", {"values": [1]}, progress_callback=seen)
    assert seen.all == [(1, None, "at 1")]


@pytest.mark.requirement("FR-EXT-001")
async def test_a_client_that_gave_no_token_gets_no_progress(address: Address) -> None:
    async with httpx2.AsyncClient() as client:
        body = call_body("progress.awaited", {"values": [1, 2]})
        response = await client.post(address.mcp, json=body, headers=modern_headers("tools/call", "progress.awaited"))
    assert len(messages(response)) == 1


@pytest.mark.requirement("FR-EXT-001", "FR-EXT-002", "FR-EXT-003")
async def test_the_helpers_do_nothing_outside_an_mcp_call(samples: Registry) -> None:
    executor = Executor(samples)
    asked = await executor.call_async("ask.twice", {"key": "direct"})
    reported = await executor.call_async("progress.awaited", {"values": [1, 2]})
    threaded = await executor.call_async("progress.threaded", {"values": [1]})
    assert (asked, reported, threaded) == ({"answers": [None, None]}, {"reported": 2}, {"reported": 1})


class Peek(Module):
    input_schema = Anything

    def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"keys": sorted(key for key in context.data if callable(context.data[key]))}


@pytest.mark.requirement("FR-EXT-003")
async def test_a_module_finds_the_capabilities_under_the_public_keys(samples: Registry, journal: Journal) -> None:
    samples.register("peek", Peek(journal))
    with serving(samples) as address:
        async with Client(address.mcp, mode=MODERN) as client:
            result = await client.call_tool("peek")
    assert {MCP_PROGRESS_KEY, MCP_ELICIT_KEY} <= set(json.loads(text_of(result))["keys"])
