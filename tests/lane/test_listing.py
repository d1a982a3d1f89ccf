"""`tools/list`: written once per table, giving way to others, and in pages where the operator wants that."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp_types import Tool

from grove_kit import ManualClock
from lane.test_differential import GATEWAY
from lane.twins import LEGACY, MODERN, Asked, Twins, head_of, request, twins, with_length
from mcp_serve import listing
from mcp_serve.listing import Listing
from mcp_serve.table import ToolEntry
from mcp_serve.wire import Writer
from toolgrove import Config, Grove
from toolgrove.mcp_face import McpFace

pytestmark = pytest.mark.anyio


class Table:
    """Any number of tools."""

    def __init__(self, count: int) -> None:
        self.rows = {f"t{number}": self.row(f"t{number}") for number in range(count)}

    def row(self, name: str) -> ToolEntry:
        wire = {"name": name, "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}
        return ToolEntry(tool=Tool(name=name, input_schema={"type": "object"}), wire=wire)

    def entries(self) -> dict[str, ToolEntry]:
        return dict(self.rows)

    def entry(self, name: str) -> ToolEntry | None:
        return self.rows.get(name)


async def told(listed: Listing, cursor: str | None = None, *, modern: bool = True) -> dict[str, Any]:
    writing = listed.result(cursor, modern=modern)
    assert writing is not None
    result: dict[str, Any] = json.loads(await writing)
    return result


async def test_a_list_is_written_once_for_each_era_until_the_table_is_another() -> None:
    table = Table(3)
    listed = Listing(table, Writer({"name": "x", "version": "1"}))
    first = listed.result(None, modern=True)
    assert listed.result(None, modern=True) is first
    assert "outputSchema" in (await told(listed))["tools"][0]
    assert "outputSchema" not in (await told(listed, modern=False))["tools"][0]
    table.rows["t1"] = table.row("t1b")
    assert [tool["name"] for tool in (await told(listed))["tools"]] == ["t0", "t1b", "t2"]
    del table.rows["t0"]
    assert [tool["name"] for tool in (await told(listed, modern=False))["tools"]] == ["t1b", "t2"]


async def test_writing_thousands_of_tools_gives_way_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SLICE", 0.0)
    turns = 0
    writing = Listing(Table(4_000), Writer({"name": "x", "version": "1"})).result(None, modern=True)
    assert writing is not None
    while not writing.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 4_000
    assert len(json.loads(writing.result())["tools"]) == 4_000


async def test_a_cancelled_request_does_not_cost_others_the_list() -> None:
    listed = Listing(Table(3), Writer({"name": "x", "version": "1"}))
    writing = listed.result(None, modern=True)
    assert writing is not None
    writing.cancel()
    await asyncio.wait([writing])
    assert len((await told(listed))["tools"]) == 3


PROJECT = {
    "workspace": {"store": "memory"},
    "agents": {"writer": {"role": "editor", "tools": ["*"], "listPage": 7}, "all": {"tools": ["*"]}},
}


@pytest.fixture(scope="module")
def paged() -> Iterator[Twins]:
    @asynccontextmanager
    async def apps() -> Any:
        async with Grove(Config.model_validate(PROJECT), clock=ManualClock()) as grove:
            yield grove.asgi_app, grove.tokens.issue("writer")

    with twins(apps, GATEWAY) as served:
        yield served


def ask(both: Twins, era: str, params: dict[str, Any]) -> dict[str, Any]:
    body = json.dumps(request(era, "tools/list", params)).encode()
    mine, theirs = both.ask(Asked(with_length(head_of(era, "tools/list"), body), body, path=GATEWAY))
    assert mine == theirs
    answer: dict[str, Any] = mine.body
    return answer


@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_an_agents_list_comes_in_pages_where_its_section_says_so(paged: Twins, era: str) -> None:
    result = ask(paged, era, {})["result"]
    names = [tool["name"] for tool in result["tools"]]
    while "nextCursor" in result:
        assert len(result["tools"]) == 7
        result = ask(paged, era, {"cursor": result["nextCursor"]})["result"]
        names += [tool["name"] for tool in result["tools"]]
    assert len(names) == len(set(names)) > 40
    assert ask(paged, era, {"cursor": "nowhere"})["error"]["code"] == -32602


async def test_a_client_lists_all_pages_or_all_at_once() -> None:
    async with Grove(Config.model_validate(PROJECT), clock=ManualClock()) as grove:
        faces = [McpFace(await grove.agent(name), "1") for name in ("writer", "all")]
        listed: list[set[str]] = []
        for face in faces:
            async with Client(face.endpoint.server) as client:
                page = await client.list_tools()
                names = {tool.name for tool in page.tools}
                while page.next_cursor:
                    page = await client.list_tools(cursor=page.next_cursor)
                    names |= {tool.name for tool in page.tools}
                listed.append(names)
        assert listed[1] < listed[0]
