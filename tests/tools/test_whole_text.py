"""What one agent can write, every client can read: text with half a character is refused by every door."""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import anyio
import httpx2
import pytest
from apcore import Context, Registry
from apcore.decorator import module
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic_core import from_json

from apcore_mcp.helpers import report_progress
from grove_kit import config, hand, sample
from mcp_text import told
from toolgrove import Grove
from toolgrove.errors import InvalidArgument
from toolgrove.store.state import OPERATOR
from toolgrove.tools import DECLARATIONS
from waiting import DEADLINE

HALVES = ("\ud800", "\udfff", "x\udc00y", "\ude00\ud83d", "\ud83d\ude00")
ODD = (*HALVES, "\0", "\ufffe", "\U0010ffff", "\u2028", "\x85", "\r\n", "\x1b[2J", "\U0001f600", "\ud7ff", "﷐", "<é>")
TEXTS = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=()), min_size=1, max_size=8))
READS: list[tuple[str, dict[str, Any]]] = [
    ("get_subtree", {"nodeId": "root"}),
    ("get_view", {"rootNodeId": "root"}),
    ("export_subtree", {"nodeId": "root"}),
    ("export_subtree", {"nodeId": "root", "format": "markdown"}),
    ("list_tags", {"rootNodeId": "root"}),
    ("list_bookmarks", {}),
    ("snapshot_list", {}),
    ("list_payload_types", {}),
    ("node_history", {"nodeId": "house"}),
]
Json = dict[str, Any]


def has_half(value: Any) -> bool:
    """By the definition: UTF-8 cannot carry it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def altered(draw: st.DrawFn, value: Any) -> Any:
    """The value with other texts in some places: values, and keys of what is free to have any."""
    if isinstance(value, str):
        return draw(TEXTS) if draw(st.integers(0, 3)) == 0 else value
    if isinstance(value, dict):
        more = {draw(TEXTS): draw(TEXTS)} if draw(st.integers(0, 5)) == 0 else {}
        return {key: altered(draw, item) for key, item in value.items()} | more
    return [altered(draw, item) for item in value] if isinstance(value, list) else value


def of_schema(draw: st.DrawFn, schema: Json) -> Any:
    """A value that a schema may take, with any text in it."""
    for choice in ("anyOf", "enum"):
        if choice in schema:
            chosen = draw(st.sampled_from(schema[choice]))
            return of_schema(draw, chosen) if choice == "anyOf" else chosen
    kind = schema.get("type", "string")
    kind = draw(st.sampled_from(kind)) if isinstance(kind, list) else kind
    if kind == "object":
        chosen = [(name, one) for name, one in schema.get("properties", {}).items() if draw(st.booleans())]
        known = {name: of_schema(draw, one) for name, one in chosen}
        return known or {draw(TEXTS): draw(TEXTS)}
    if kind == "array":
        return [of_schema(draw, schema.get("items") or {}) for _ in range(draw(st.integers(0, 2)))]
    values: dict[str, st.SearchStrategy[Any]] = {
        "integer": st.integers(0, 3),
        "number": st.integers(0, 3),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return draw(values.get(kind, TEXTS))


def documents(draw: st.DrawFn) -> Json:
    """A document in a text, whose escapes no check of the call's own arguments sees."""
    name = draw(TEXTS)
    escaped = json.dumps(name)
    inside = "".join(f"&#{ord(one)};" for one in name)
    return draw(
        st.sampled_from(
            [
                {"json": f'{{"nodeId": "new", "payloadType": "Room", "payload": {{"name": {escaped}}}}}'},
                {"json": f'{{"nodeId": {escaped}, "payloadType": "Room", "payload": {{{escaped}: 1}}}}'},
                {"json": f'{{"payloadType": {escaped}, "tags": [{escaped}]}}'},
                {"text": f"- {inside}\n  - {name}", "format": "markdown", "payloadType": "Room"},
                {
                    "text": f"<opml><body><outline text='\ufffd' _name='{inside_attribute(escaped)}'/></body></opml>",
                    "format": "opml",
                    "payloadType": "Room",
                },
                {"text": f'payloadType,name,tags\nRoom,"[{quoted(escaped)}]","[{quoted(escaped)}]"', "format": "csv"},
            ]
        )
    )


def inside_attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;")


def quoted(text: str) -> str:
    return text.replace('"', '""')


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, Json]:
    """A call of any tool, its arguments from its example or from its schema, with any text in them."""
    name = draw(st.sampled_from(sorted(DECLARATIONS)))
    tool = DECLARATIONS[name]
    arguments = altered(draw, copy.deepcopy(dict(tool.example)))
    if name in ("import_merge", "import_view") and draw(st.booleans()):
        key = "json" if name == "import_merge" else "viewJson"
        found = documents(draw)
        arguments = {**{at: one for at, one in arguments.items() if at != key}, **found}
    for at, one in tool.accepts["properties"].items():
        if at != "versionToken" and draw(st.integers(0, 9)) == 0:
            arguments[at] = of_schema(draw, one)
    return name, arguments


@asynccontextmanager
async def reading(grove: Grove) -> AsyncIterator[tuple[Client, Client, httpx2.AsyncClient]]:
    """The official client in both eras, as another agent, and the operator's API."""
    app = grove.asgi_app()
    tokens = {name: grove.tokens.issue(name, by="the test") for name in ("reader", OPERATOR)}

    def http(holder: str) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app),
            base_url="http://127.0.0.1",
            headers={"Authorization": f"Bearer {tokens[holder]}"},
        )

    async with AsyncExitStack() as opened:
        await opened.enter_async_context(app.router.lifespan_context(app))
        clients = []
        for era in ("auto", "legacy"):
            web = await opened.enter_async_context(http("reader"))
            transport = streamable_http_client("http://127.0.0.1/agents/reader/mcp", http_client=web)
            clients.append(await opened.enter_async_context(Client(transport, mode=era)))
        yield clients[0], clients[1], await opened.enter_async_context(http(OPERATOR))


async def read_all(clients: tuple[Client, Client, httpx2.AsyncClient]) -> None:
    """Every read of both clients parses, and its texts can be written as UTF-8 again."""
    *both, operator = clients
    for name, arguments in READS:
        answers = []
        for client in both:
            result = await client.call_tool(name, arguments)
            result.model_dump_json().encode()
            answers.append(told(result))
        assert answers[0] == answers[1], name
    for address in ("/api/audit?limit=50", "/api/approvals", "/api/project"):
        answer = await operator.get(address)
        assert answer.status_code < 500, address
        from_json(answer.content)


def in_time(work: Any) -> None:
    async def bounded() -> None:
        with anyio.fail_after(DEADLINE):
            await work()

    anyio.run(bounded)


@given(st.lists(calls(), min_size=12, max_size=24))
@settings(max_examples=12, deadline=None)
def test_whatever_a_call_was_given_every_client_can_read_what_is_there_afterwards(made: list[tuple[str, Json]]) -> None:
    async def law() -> None:
        grove, editor = await sample()
        async with grove, reading(grove) as clients:
            for name, arguments in made:
                answer = await editor(name, **arguments)
                error = answer.get("error")
                if has_half(arguments):
                    assert error is not None, "half a character was taken in"
                    assert (error["code"], error.get("reason")) == ("invalid_argument", "not_json"), error
                    assert "half a character" in error["message"]
                assert error is None or error["code"] != "internal", error
                from_json(json.dumps(answer))
            await read_all(clients)
            for record in grove.audit:
                from_json(json.dumps(record))

    in_time(law)


OLD = Path(__file__).parents[1] / "store/formats/store_halves_5.sql"
PAIR = {"ann": {"role": "editor"}, "reader": {"role": "reader"}}


@pytest.fixture
def old_store(tmp_path: Path) -> str:
    """A store into which an earlier version took half characters: ids, types, values, tags, labels, filters."""
    with closing(sqlite3.connect(tmp_path / "grove.db")) as connection:
        connection.executescript(OLD.read_text())
    return f"sqlite:{tmp_path / 'grove.db'}"


@pytest.mark.anyio
async def test_what_an_older_version_took_in_is_shown_with_a_replacement(old_store: str) -> None:
    async with Grove(config(agents=PAIR, workspace={"store": old_store})) as grove:
        ann = await hand(grove, "ann")
        async with reading(grove) as clients:
            await read_all(clients)
            for client in clients[:2]:
                shown = told(await client.call_tool("get_node", {"nodeId": "a"}))
                assert shown["payload"] == {
                    "name": "half \ufffd",
                    "k\ufffd": ["\ufffdx", {"in": "\ufffd"}],
                    "note": "n\ufffd",
                }
                assert (await client.read_resource("tree://root")).model_dump_json().encode()
        for form in ("json", "markdown", "opml", "csv", "mermaid"):
            text = json.dumps(await ann.ok("export_subtree", nodeId="root", format=form), ensure_ascii=False)
            assert "\ufffd" in text
            assert "ud800" not in text
            assert "55296" not in text
            text.encode()
        again = {"parentNodeId": "id\ud800", "payloadType": "T", "payloadProps": {"name": "\ud800"}}
        assert (await ann.refused("add_child", **again, idempotencyKey="k-2"))["reason"] == "not_json"
        for name in ("list_bookmarks", "snapshot_list", "undo"):
            answer = await ann.ok(name)
            assert not has_half(answer), name
        assert (await grove.audit_log.verify()).breach is None
        assert not has_half(list(grove.audit)[-1])


DEEP: Any = "bottom"
for _ in range(150):
    DEEP = [DEEP]
RESULTS: dict[str, Json] = {
    "half": {"text": "\ud800"},
    "key": {"\udfff": 1},
    "deep": {"deep": DEEP},
    "fine": {"text": "\0 \u2028 \ufffe"},
}


def giving(value: Json) -> Callable[[], Json]:
    def give() -> Json:
        return value

    return give


class Telling:
    """A module that says half a character while it works."""

    description = "Says something."
    input_schema: ClassVar[Json] = {"type": "object"}
    output_schema: ClassVar[Json] = {"type": "object"}

    async def execute(self, inputs: Json, context: Context[Any]) -> Json:
        await report_progress(context, 1, message="half \ud800")
        return {}


async def hear(heard: list[str | None], progress: float, total: float | None, message: str | None) -> None:
    heard.append(message)


@pytest.mark.anyio
async def test_a_module_gives_only_what_every_client_can_read() -> None:
    registry = Registry()
    for name, value in RESULTS.items():
        module(giving(value), id=f"give.{name}", registry=registry)
    registry.register("give.word", Telling())
    module(giving({}), id="give.unlisted", description="Gives \ud800.", registry=registry)
    agents = {"reader": {"role": "editor", "tools": ["give-*"]}}
    async with Grove(config(agents=agents), extensions=registry) as grove, reading(grove) as (modern, legacy, _):
        for client in (modern, legacy):
            assert {tool.name for tool in (await client.list_tools()).tools} == {
                f"give-{name}" for name in (*RESULTS, "word")
            }
            heard: list[str | None] = []
            await client.call_tool("give-word", {}, progress_callback=partial(hear, heard))
            assert heard == ["half \ufffd"]
            for name in RESULTS:
                result = await client.call_tool(f"give-{name}", {})
                result.model_dump_json().encode()
                if name == "fine":
                    assert told(result) == RESULTS[name]
                else:
                    assert told(result)["error"]["reason"] in ("bad_result", "module_error")


@pytest.mark.anyio
async def test_names_of_tools_sessions_and_tasks_are_no_way_in_either() -> None:
    async with Grove(config()) as grove:
        editor = await grove.agent("editor")
        refused = await editor.call("get_\ud800", {"nodeId": "\ud800"})
        assert refused["error"]["code"] == "not_found"
        assert not has_half(refused)
        assert not has_half(await editor.read_resource("tree://\ud800"))
        with pytest.raises(InvalidArgument, match="half a character"):
            await grove.agent("editor", session="\ud800")
        assert not has_half(list(grove.audit))
