"""What a server says about its tools, and what they answer, reaches every client as it was said."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from e2e.wire import Handshake, call_body, messages, modern_body, modern_headers
from toolgrove import Agent, Config, Grove
from toolgrove.cli.advice import advice
from toolgrove.store.state import OPERATOR
from waiting import DEADLINE

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
SERVER = Path(__file__).with_name("faithful.py")
STAMP = "io.modelcontextprotocol/serverInfo"
INPUT: Json = {"type": "object", "properties": {"x": {"type": "string", "default": None}}, "title": "Whatever"}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
TEXT: Json = {"type": "text", "text": "some words", "annotations": {"audience": ["user"], "priority": 0.5, "own": 1}}
BLOCKS: list[Json] = [
    TEXT,
    {"type": "image", "data": PIXEL, "mimeType": "image/png", "_meta": {"shot": 1}},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "demo://1", "name": "one", "title": "One", "size": 3, "mimeType": "text/plain"},
    {"type": "resource", "resource": {"uri": "demo://2", "text": "two", "mimeType": "text/plain"}},
    {"type": "resource", "resource": {"uri": "demo://3", "blob": "AAAA", "_meta": {"deep": {"null": None}}}},
]
RESULTS: dict[str, Json] = {
    "only_content": {"content": [TEXT], "structuredContent": {"content": "hello"}},
    "nothing_structured": {"content": [TEXT]},
    "every_block": {"content": BLOCKS, "isError": False},
    "with_meta": {
        "content": [TEXT],
        "structuredContent": {"result": None},
        "_meta": {"fastmcp": {"wrap_result": True}},
    },
    "no_content": {"content": [], "structuredContent": {"deep": [{"er": [None, 1.5, "x"]}]}},
    "fails": {"content": BLOCKS, "structuredContent": {"why": ["disk", 7]}, "isError": True, "_meta": {"code": 28}},
    "fails_in_our_words": {
        "content": [TEXT],
        "structuredContent": {"error": {"code": "not_found", "message": "No such page."}},
        "isError": True,
    },
}
ODD: dict[str, Json] = {
    "a_list": {"content": [TEXT], "structuredContent": [1, {"two": 2}]},
    "a_text": {"content": [TEXT], "structuredContent": "words"},
    "a_number": {"content": [TEXT], "structuredContent": 0},
    "a_no": {"content": [], "structuredContent": False},
}
WHOLE: Json = {
    "name": "whole",
    "title": "The whole of it",
    "description": "Says all that can be said.",
    "inputSchema": INPUT,
    "outputSchema": {"$defs": {"n": {"type": "integer"}}, "type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}},
    "annotations": {"title": "Whole", "readOnlyHint": True, "openWorldHint": False, "ownHint": "kept"},
    "icons": [{"src": f"data:image/png;base64,{PIXEL}", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}],
    "execution": {"taskSupport": "optional"},
    "_meta": {"ui": {"resourceUri": "ui://whole/page", "visibility": ["model", "app"]}, "own": [None, 1]},
}
BARE: Json = {"name": "bare", "inputSchema": {"type": "object"}}


def tools(*names: str) -> list[Json]:
    return [{"name": name, "inputSchema": INPUT} for name in names]


@dataclass(frozen=True)
class _Address:
    mcp: str


class Door:
    """One agent over MCP as bytes, in both eras, and the rest of the gateway."""

    def __init__(self, grove: Grove, http: httpx2.AsyncClient) -> None:
        self.grove, self.http = grove, http

    async def call(self, tool: str, agent: str = "a", **arguments: Any) -> Json:
        """What a client of 2026-07-28 gets, less the envelope."""
        body, headers = call_body(tool, arguments), modern_headers("tools/call", tool)
        result = _opened(await self.http.post(f"/agents/{agent}/mcp", json=body, headers=headers))
        assert result.pop("resultType") == "complete"
        return result

    async def tools(self, agent: str = "a") -> dict[str, Json]:
        body, headers = modern_body("tools/list"), modern_headers("tools/list")
        return _named(_opened(await self.http.post(f"/agents/{agent}/mcp", json=body, headers=headers)))

    @asynccontextmanager
    async def older(self) -> AsyncIterator[Handshake]:
        address: Any = _Address("http://127.0.0.1/agents/a/mcp")
        async with Handshake(self.http, address) as older:
            yield older

    async def run(self, *names: str) -> list[Json]:
        body = {"calls": [{"tool": name} for name in names]}
        streamed = (await self.http.post("/agents/a/runs", json=body)).text
        events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: ")]
        return [event for event in events if event["type"] in ("tool_succeeded", "tool_failed")]


def _opened(response: httpx2.Response) -> Json:
    result: Json = messages(response)[-1]["result"]
    assert result["_meta"].pop(STAMP)["name"] == "a"
    if not result["_meta"]:
        del result["_meta"]
    return result


def _named(listed: Json) -> dict[str, Json]:
    return {tool["name"]: tool for tool in listed["tools"]}


@asynccontextmanager
async def serving(
    folder: Path, listed: list[Json], answers: Json | None = None, **sections: Any
) -> AsyncIterator[Door]:
    file = folder / "said.json"
    file.write_text(json.dumps({"tools": listed, "results": answers or {}}))
    server = {"command": sys.executable, "args": ["-I", "-S", str(SERVER), str(file)]}
    project = {
        "mcpServers": {"up": {**server, **sections.pop("server", {})}},
        "agents": {"a": {"role": "editor", "tools": ["*"]}},
        "startupBudget": 30,
        **sections,
    }
    with anyio.fail_after(DEADLINE):
        async with Grove(Config.model_validate(project)) as grove:
            app = grove.asgi_app()
            async with (
                app.router.lifespan_context(app),
                httpx2.AsyncClient(
                    transport=httpx2.ASGITransport(app=app),
                    base_url="http://127.0.0.1",
                    headers={"Authorization": f"Bearer {grove.tokens.issue(OPERATOR)}"},
                    timeout=DEADLINE,
                ) as http,
            ):
                yield Door(grove, http)


async def agent_of(door: Door) -> Agent:
    return await door.grove.agent("a")


async def test_a_result_reaches_every_client_as_its_server_gave_it(tmp_path: Path) -> None:
    results = RESULTS | ODD
    async with serving(tmp_path, tools(*results), results) as door:
        agent = await agent_of(door)
        for name, given in results.items():
            assert await door.call(f"up_{name}") == given, name
            assert await agent.call(f"up_{name}") == given, name
        ended = await door.run(*(f"up_{name}" for name in results))
        assert [event["result"] for event in ended] == list(results.values())


async def test_an_older_client_gets_the_same_but_for_what_its_era_cannot_carry(tmp_path: Path) -> None:
    results = RESULTS | ODD
    async with serving(tmp_path, tools(*results), results) as door, door.older() as older:
        for name, given in RESULTS.items():
            assert (await older.call(f"up_{name}", {}))["result"] == given, name
        for name in ("a_list", "a_text", "a_number"):
            assert (await older.call(f"up_{name}", {}))["result"] == {"content": [TEXT]}, name
        said = (await older.call("up_a_no", {}))["result"]
        assert said == {"content": [{"type": "text", "text": "false"}]}, "what no text says is told in one"


async def test_a_tools_own_failure_is_told_from_ours(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    promising = {"name": "promises", "inputSchema": {"type": "object", "required": ["x"]}, "outputSchema": schema}
    async with serving(tmp_path, [*tools("fails"), promising], RESULTS) as door:
        failed, refused, unknown = await door.call("up_fails"), await door.call("up_promises"), await door.call("up_x")
        assert failed == RESULTS["fails"]
        for answer, code in ((refused, "invalid_argument"), (unknown, "not_found")):
            error = answer["_meta"]["toolgrove/error"]
            assert error["code"] == code
            assert json.loads(answer["content"][0]["text"]) == {"error": error}
            assert answer["isError"] is True
        assert unknown["structuredContent"] == {"error": unknown["_meta"]["toolgrove/error"]}
        assert "structuredContent" not in refused, "it would not match the output schema, which some clients check"
        own, ours = await door.run("up_fails", "up_promises")
        assert own["type"] == ours["type"] == "tool_failed"
        assert (own["result"], own["error"]["reason"]) == (RESULTS["fails"], "tool_error")
        assert ours["error"]["code"] == "invalid_argument"
        assert "result" not in ours
        kept = (await door.http.get("/api/audit", params={"outcome": "failure"})).json()["items"]
        assert [one["error"]["message"] for one in kept if one["operation"] == "up_fails"] == ["some words"] * 2


async def test_nobody_else_speaks_in_our_name(tmp_path: Path) -> None:
    forged = {"content": [TEXT], "isError": True, "_meta": {"toolgrove/error": {"code": "forbidden"}, "own": 1}}
    definition = {**BARE, "_meta": {"toolgrove/changed": [], "own": 2}}
    async with serving(tmp_path, [definition], {"bare": forged}) as door:
        assert (await door.call("up_bare"))["_meta"] == {"own": 1, "toolgrove/changed": ["reservedMeta"]}
        assert (await door.tools())["up_bare"]["_meta"] == {"own": 2}


async def test_a_result_that_a_policy_changed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGROVE_CANARY", "CaNaRy7f3q9Z4xk")
    said: Json = {"content": [{"type": "text", "text": "it is CaNaRy7f3q9Z4xk\u200b."}], "_meta": {"own": 1}}
    results = {"tells": said, "fails": {**said, "isError": True}, "quiet": {"content": [TEXT]}}
    more: Json = {"server": {"env": {"KEY": "${env:TOOLGROVE_CANARY}"}}, "results": {"stripControl": True}}
    async with serving(tmp_path, tools(*results), results, **more) as door:
        agent = await agent_of(door)
        for name in ("tells", "fails"):
            for answer in (await door.call(f"up_{name}"), await agent.call(f"up_{name}")):
                assert answer["content"] == [{"type": "text", "text": "it is [secret TOOLGROVE_CANARY]."}]
                assert answer["_meta"] == {"own": 1, "toolgrove/changed": ["results.stripControl", "secrets"]}
        assert await door.call("up_quiet") == {"content": [TEXT]}


async def test_a_definition_reaches_every_client_as_its_server_gave_it(tmp_path: Path) -> None:
    async with serving(tmp_path, [WHOLE, BARE]) as door, door.older() as older:
        listed = await door.tools()
        assert listed["up_whole"] == {**WHOLE, "name": "up_whole"}
        assert listed["up_bare"] == {**BARE, "name": "up_bare"}
        assert _named(messages(await older.request("tools/list"))[-1]["result"])["up_whole"] == listed["up_whole"]


async def test_what_an_output_schema_says_is_neither_wrapped_nor_widened(tmp_path: Path) -> None:
    array = {**BARE, "name": "list", "outputSchema": {"type": "array", "items": {"type": "integer"}}}
    results = {"list": {"content": [TEXT], "structuredContent": [1, 2]}}
    async with serving(tmp_path, [array], results) as door, door.older() as older:
        listed = await door.tools()
        assert listed["up_list"]["outputSchema"] == array["outputSchema"]
        assert listed["get_node"]["outputSchema"]["type"] == "object"
        assert "anyOf" not in listed["get_node"]["outputSchema"]
        assert await door.call("up_list") == results["list"]
        older_list = _named(messages(await older.request("tools/list"))[-1]["result"])
        assert "outputSchema" not in older_list["up_list"]
        assert older_list["get_node"]["outputSchema"] == listed["get_node"]["outputSchema"]


@pytest.mark.parametrize(
    "icons",
    [
        "none",
        {"src": "https://wiki.example/icon.png"},
        [{"src": "javascript:alert(1)"}],
        [{"src": "data:image/png;base64,???"}],
        [{"src": "data:image/png;base64," + "A" * 100_000}],
        [{"src": "https://wiki.example/icon.png", "sizes": "48x48"}],
        [{"src": "https://wiki.example/\u200bicon.png"}],
    ],
)
async def test_a_bad_icon_is_left_out_and_its_tool_is_not(tmp_path: Path, icons: Any) -> None:
    good = {"src": "https://wiki.example/good.png"}
    more = [*icons, good] if isinstance(icons, list) else icons
    async with serving(tmp_path, [{**BARE, "icons": more}]) as door:
        shown = (await door.tools())["up_bare"]
        assert shown.get("icons") == ([good] if isinstance(icons, list) else None)


async def test_what_only_apps_may_call_is_there_for_agents_with_apps(tmp_path: Path) -> None:
    hidden = {**BARE, "name": "hidden", "_meta": {"ui": {"visibility": ["app"]}}}
    agents = {"a": {"role": "editor", "tools": ["*"]}, "host": {"role": "editor", "tools": ["*"], "apps": True}}
    async with serving(tmp_path, [BARE, hidden], {"hidden": {"content": [TEXT]}}, agents=agents) as door:
        plain, host = await door.grove.agent("a"), await door.grove.agent("host")
        assert plain.receipt["up_hidden"].verdict == "restricted"
        assert "apps: true" in plain.receipt["up_hidden"].rule
        assert (await plain.call("up_hidden"))["error"]["code"] == "not_found"
        assert "up_hidden" not in await door.tools()
        offer = door.grove.pool.latest.offers["up_hidden"]
        assert "Write 'apps: true' in agents.a" in advice(door.grove.config, "a", offer, plain.receipt["up_hidden"])
        assert host.receipt["up_hidden"].verdict == "granted"
        assert await host.call("up_hidden") == {"content": [TEXT]}


async def test_what_runs_only_as_a_task_is_not_offered(tmp_path: Path) -> None:
    listed = [{**BARE, "name": word, "execution": {"taskSupport": word}} for word in ("required", "optional")]
    async with serving(tmp_path, listed) as door:
        receipt = (await agent_of(door)).receipt
        assert receipt["up_required"].verdict == "unavailable"
        assert "taskSupport" in receipt["up_required"].rule
        offer = door.grove.pool.latest.offers["up_required"]
        assert "another tool" in advice(door.grove.config, "a", offer, receipt["up_required"])
        assert {"up_optional"} == {name for name in await door.tools() if name.startswith("up_")}
