"""Streams that stay open: they end with their token, and with the gateway, before anybody has to cut them off."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError

from e2e.wire import ERAS, Handshake, modern_body, modern_headers
from toolgrove.store.state import OPERATOR
from waiting import DEADLINE, eventually
from web.gateway import AGENTS, PROJECT, Gateway, serving, started, toolgrove
from web.held import Held, holding

pytestmark = pytest.mark.anyio
Open = Callable[[Gateway, str], AbstractAsyncContextManager[httpx2.Response]]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with serving(tmp_path) as served:
        yield served


@asynccontextmanager
async def legacy(
    gateway: Gateway, agent: str, besides: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[httpx2.Response]:
    """The stream on which clients of the older protocol hear of changes."""
    async with gateway.http(agent) as http:
        session = Handshake(http, gateway.address(agent))
        await session.__aenter__()
        headers = [*session.headers.items(), *besides.items()]
        async with http.stream("GET", f"/agents/{agent}/mcp", headers=headers) as stream:
            yield stream


def disguised(gateway: Gateway, agent: str) -> AbstractAsyncContextManager[httpx2.Response]:
    """The same, with headers that also say what a plain call of the newer protocol says."""
    return legacy(gateway, agent, modern_headers("tools/call", "get_node"))


@asynccontextmanager
async def listening(gateway: Gateway, agent: str) -> AsyncIterator[httpx2.Response]:
    """The same in the protocol of 2026-07-28."""
    body = modern_body("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    headers = modern_headers("subscriptions/listen")
    async with (
        gateway.http(agent) as http,
        http.stream("POST", f"/agents/{agent}/mcp", json=body, headers=headers) as stream,
    ):
        yield stream


@asynccontextmanager
async def events(gateway: Gateway, agent: str) -> AsyncIterator[httpx2.Response]:
    """What the console watches."""
    async with gateway.http("operator") as http, http.stream("GET", "/api/events") as stream:
        yield stream


STREAMS = [legacy, listening, events]


async def tokens(gateway: Gateway, *words: str) -> Any:
    command = toolgrove("tokens", *words, "--config", str(gateway.file), "--json")

    def run() -> str:
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=True).stdout

    return json.loads(await anyio.to_thread.run_sync(run))


async def ended(stream: httpx2.Response) -> str:
    """All that came until the stream ended, as a stream ends: a torn one raises."""
    with anyio.fail_after(DEADLINE):
        return (await stream.aread()).decode()


async def first(stream: httpx2.Response) -> Any:
    """The first message that comes."""
    with anyio.fail_after(DEADLINE):
        async for line in stream.aiter_lines():
            if line.startswith("data: {"):
                return json.loads(line[6:])
    raise AssertionError("the stream ended")


async def status(gateway: Gateway, token: str, method: str = "GET", path: str = "receipt", **request: Any) -> int:
    async with gateway.http() as http:
        headers = {"Authorization": f"Bearer {token}", **request.pop("headers", {})}
        return (await http.request(method, f"/agents/editor/{path}", headers=headers, **request)).status_code


@pytest.mark.parametrize("opening", [*STREAMS, disguised])
@pytest.mark.parametrize("verb", [["revoke"], ["new", "--replace"]], ids=["revoked", "replaced"])
async def test_a_stream_ends_with_the_token_that_opened_it_and_no_other_does(
    gateway: Gateway, opening: Open, verb: list[str]
) -> None:
    holder, named = ("operator", OPERATOR) if opening is events else ("editor", "editor")
    async with opening(gateway, "editor") as stream, legacy(gateway, "researcher") as other:
        assert (stream.status_code, other.status_code) == (200, 200)
        await tokens(gateway, *verb, holder)
        await ended(stream)
        await eventually(lambda: f"the token of {named} is void; streams ended: 1" in gateway.log)
        assert await status(gateway, gateway.tokens[named]) == 401
        gateway.write({**PROJECT, "agents": {**AGENTS, "researcher": {"tools": ["get_node"]}}})
        assert (await first(other))["method"] == "notifications/tools/list_changed"


async def test_a_session_dies_with_its_token_though_its_agent_has_a_new_one(gateway: Gateway) -> None:
    body = {"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}}
    async with gateway.http("editor") as http, gateway.http("operator") as operator:
        old, theirs = Handshake(http, gateway.address("editor")), Handshake(operator, gateway.address("editor"))
        await old.__aenter__()
        async with theirs:
            assert (await old.request("tools/list")).status_code == 200
            token = (await tokens(gateway, "new", "editor", "--replace"))["token"]
            await eventually(lambda: "the token of editor is void" in gateway.log)
            assert (await old.request("tools/list")).status_code == 401
            assert await status(gateway, token) == 200
            assert await status(gateway, token, "POST", "mcp", json=body, headers=old.headers) == 404
            assert await status(gateway, token, "GET", "mcp", headers=old.headers) == 404
            assert (await theirs.request("tools/list")).status_code == 200
    assert "sessions ended: 1" in gateway.log


async def test_a_session_that_its_client_ended_is_not_ended_again(gateway: Gateway) -> None:
    async with gateway.http("editor") as http:
        async with Handshake(http, gateway.address("editor")):
            pass
        async with listening(gateway, "editor") as stream:
            await tokens(gateway, "revoke", "editor")
            await ended(stream)
    await eventually(lambda: "streams ended: 1, sessions ended: 0" in gateway.log)


async def test_a_run_ends_with_its_token_and_its_call_is_cancelled(tmp_path: Path) -> None:
    async with holding() as held:
        with serving(tmp_path, _with_held(held)) as gateway:
            async with gateway.http("editor") as http:
                calls = {"calls": [{"tool": "wait", "arguments": {"key": "a"}}]}
                async with http.stream("POST", "/agents/editor/runs", json=calls) as stream:
                    await eventually(lambda: "a" in held.arrived)
                    await tokens(gateway, "revoke", "editor")
                    told = await ended(stream)
            assert "tool_started" in told
            assert "run_finished" not in told
            await eventually(lambda: "a" in held.abandoned)
            async with gateway.http("operator") as http:
                (record,) = (await http.get("/api/audit", params={"tool": "wait"})).json()["items"]
            assert record["outcome"] == "cancelled"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_listens_is_told_no_more_once_its_token_is_void(gateway: Gateway, era: str) -> None:
    with anyio.fail_after(DEADLINE):
        async with gateway.connect("editor", era) as client:
            assert (await client.list_tools()).tools
            if era == "legacy":
                await tokens(gateway, "revoke", "editor")
                await eventually(lambda: "the token of editor is void; streams ended: 1" in gateway.log)
            else:
                async with client.listen(tools_list_changed=True) as changes:
                    await tokens(gateway, "revoke", "editor")
                    with pytest.raises(SubscriptionLost):
                        await anext(changes)
            with pytest.raises(MCPError):
                await client.list_tools()


async def test_the_streams_of_an_agent_that_is_no_more_end(gateway: Gateway) -> None:
    async with listening(gateway, "editor") as stream:
        gateway.write({**PROJECT, "agents": {"researcher": AGENTS["researcher"]}})
        await ended(stream)


@pytest.mark.parametrize("flags", [(), ("--no-tokens-on-loopback",)], ids=["tokens", "anonymous"])
async def test_open_streams_are_ended_before_the_server_has_to_cut_them_off(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """Exit code 0, and nothing on stderr but our own lines."""
    with started(tmp_path, PROJECT, *flags) as gateway:
        async with AsyncExitStack() as stack:
            streams = [await stack.enter_async_context(opening(gateway, "editor")) for opening in (*STREAMS, legacy)]
            assert {stream.status_code for stream in streams} == {200}
            gateway.process.terminate()
            for stream in streams:
                await ended(stream)
            assert await anyio.to_thread.run_sync(gateway.process.wait, DEADLINE) == 0
    loggers = [json.loads(line)["logger"] for line in gateway.log.splitlines()]
    assert [name for name in loggers if not name.startswith("toolgrove")] == []
    assert not re.search("Traceback|ERROR|Cancel", gateway.log)


async def test_a_call_under_way_is_answered_on_its_stream_before_that_is_ended(tmp_path: Path) -> None:
    async with holding() as held:
        with started(tmp_path, _with_held(held)) as gateway:
            async with legacy(gateway, "editor") as stream, gateway.http("editor") as http:
                session = Handshake(http, gateway.address("editor"))
                await session.__aenter__()
                answers: list[Any] = []

                async def ask() -> None:
                    answers.append(await session.call("wait", {"key": "a"}))

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(ask)
                    await eventually(lambda: "a" in held.arrived)
                    gateway.process.terminate()
                    await eventually(lambda: _refuses(gateway.port))
                    held.release("a")
                await ended(stream)
                assert answers[0]["result"]["structuredContent"]["body"] == {"key": "a"}
                assert await anyio.to_thread.run_sync(gateway.process.wait, DEADLINE) == 0
    assert "Traceback" not in gateway.log


def _with_held(held: Held) -> dict[str, Any]:
    return {**PROJECT, "httpTools": {"wait": held.tool()}}


def _refuses(port: int) -> bool:
    """Whether it takes no new connections."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
