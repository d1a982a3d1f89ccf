"""Whatever a module of the bridge raises, its call alone gets one answer, and nobody else notices."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, stdio_client
from mcp_types import Tool

from e2e.servers import over_stdio, serving
from e2e.wire import ERAS
from mcp_serve.endpoint import Endpoint
from mcp_serve.table import ToolEntry
from mcp_text import text_of
from raised import FORMS, INTERNAL, SECRET, TOLD, error_named, raising_registry
from waiting import DEADLINE
from warm.command import python

pytestmark = pytest.mark.anyio
AT_A_TIME = 24
WAYS = [(transport, era) for transport in ("http", "stdio") for era in ERAS]


@asynccontextmanager
async def connected(transport: str, era: str) -> AsyncIterator[Client]:
    """A client of the modules that raise; afterwards their server must still live."""
    keywords: Any = {"mode": era, "read_timeout_seconds": DEADLINE, "cache": None}
    if transport == "stdio":
        async with Client(stdio_client(over_stdio(python("-m", "e2e.raising_server"))), **keywords) as client:
            yield client
        return
    with serving(raising_registry()) as address:
        async with Client(address.mcp, **keywords) as client:
            yield client


async def told(client: Client, form: str, kind: str) -> tuple[str, bool]:
    """What the client is told, while another call of another client's kind goes on beside it."""
    beside = client.call_tool("echo", {"kind": kind})
    hears: Any = {"progress_callback": heard} if form == "raise.streaming" else {}
    answer, other = await asyncio.gather(client.call_tool(form, {"kind": kind}, **hears), beside)
    assert json.loads(text_of(other)) == {"kind": kind}
    return text_of(answer), bool(answer.is_error)


def expected(form: str, kind: str) -> str:
    """What was wrong with a field of another module is nothing that this client can mend."""
    is_of_another = form == "raise.nested" and kind in ("field", "odd fields")
    return "Module error: SCHEMA_VALIDATION_ERROR" if is_of_another else TOLD[kind]


async def heard(progress: float, total: float | None, message: str | None) -> None:
    """Somebody listens, so that the module streams."""


@pytest.mark.parametrize(("transport", "era"), WAYS, ids=[f"{transport}-{era}" for transport, era in WAYS])
@pytest.mark.requirement("FR-EXEC-007", "FR-ERROR-009", "FR-ERROR-010", "FR-ERROR-011", "NFR-REL-002")
async def test_whatever_a_module_raises_its_call_alone_gets_one_answer(
    transport: str, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)  # hundreds of stacks, which nobody reads here
    calls = [(form, kind) for kind in TOLD for form in FORMS]
    answers: dict[tuple[str, str], tuple[str, bool]] = {}
    async with asyncio.timeout(2 * DEADLINE), connected(transport, era) as client:
        for start in range(0, len(calls), AT_A_TIME):
            some = calls[start : start + AT_A_TIME]
            answers |= zip(some, await asyncio.gather(*(told(client, *call) for call in some)), strict=True)
        assert len((await client.list_tools()).tools) == len(FORMS) + 1
    wrong = {call: answer for call, answer in answers.items() if answer != (expected(*call), True)}
    assert wrong == {}
    assert SECRET not in str(answers)


class OneTool:
    """A table with one tool."""

    def entries(self) -> dict[str, ToolEntry]:
        return {"raise": ToolEntry(tool=Tool(name="raise", input_schema={"type": "object"}), documentation=None)}

    def entry(self, name: str) -> ToolEntry | None:
        return self.entries().get(name)


@pytest.mark.parametrize("kind", ["ValueError", "PanicException", "GeneratorExit", "asyncio.CancelledError"])
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_whose_server_breaks_its_promise_not_to_raise_is_answered_as_well(kind: str, era: str) -> None:
    async def run(name: str, arguments: Any, caller: Any) -> Any:
        raise error_named(kind)

    endpoint = Endpoint("raises", "1", OneTool(), run)
    async with Client(endpoint.server, mode=era, read_timeout_seconds=DEADLINE) as client:
        answer = await client.call_tool("raise", {})
        assert (text_of(answer), answer.is_error) == (INTERNAL, True)
