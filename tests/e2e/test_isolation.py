"""Clients over HTTP do not see, disturb or impersonate each other."""

import json
import os
import socket
import stat
from typing import Any

import anyio
import httpx2
import pytest
from apcore import Registry
from mcp import Client
from pydantic import BaseModel

from apcore_mcp import __version__
from e2e.modules import Journal
from e2e.servers import Address, serving
from e2e.wire import ERAS, JSON_OR_STREAM, MODERN, Handshake, call_body, modern_call, modern_headers
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("NFR-PERF-004", "FR-EXEC-001")
async def test_ten_clients_with_equal_request_ids_at_once_get_their_own_answers(
    address: Address, journal: Journal
) -> None:
    """All twenty calls are in flight together, each under request id 1."""
    answers: dict[str, Any] = {}
    clients = [httpx2.AsyncClient(timeout=DEADLINE) for _ in range(10)]
    async with anyio.create_task_group() as group:

        async def modern(number: int) -> None:
            answers[f"m{number}"] = await modern_call(clients[number], address, "work.hold", {"key": f"m{number}"})

        async def legacy(number: int) -> None:
            async with Handshake(clients[number], address) as session:
                answers[f"l{number}"] = await session.call("work.hold", {"key": f"l{number}"})

        for number in range(10):
            group.start_soon(modern, number)
            group.start_soon(legacy, number)
        keys = [f"{era}{number}" for era in "ml" for number in range(10)]
        await eventually(lambda: all(f"started {key}" in journal for key in keys))
        for key in reversed(keys):
            journal.write(f"release {key}")
    for client in clients:
        await client.aclose()
    assert {key: json.loads(answer["result"]["content"][0]["text"]) for key, answer in answers.items()} == {
        key: {"key": key} for key in keys
    }
    assert {answer["id"] for answer in answers.values()} == {1}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("NFR-PERF-004")
async def test_ten_mcp_clients_call_at_once(address: Address, era: str) -> None:
    sums: dict[int, Any] = {}

    async def work(number: int) -> None:
        async with Client(address.mcp, mode=era) as client:
            for step in range(5):
                result = await client.call_tool("math.add", {"a": number * 100, "b": step})
                sums[number * 100 + step] = result.structured_content

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(work, number)
    assert sums == {key: {"sum": key} for key in sums}
    assert len(sums) == 50


@pytest.mark.requirement("NFR-PERF-004")
async def test_one_clients_delete_ends_its_own_session_only(address: Address, journal: Journal) -> None:
    async with httpx2.AsyncClient(timeout=DEADLINE) as client:
        async with Handshake(client, address) as staying, anyio.create_task_group() as group:
            answers: list[Any] = []

            async def hold() -> None:
                answers.append(await staying.call("work.hold", {"key": "k"}))

            group.start_soon(hold)
            await eventually(lambda: "started k" in journal)
            async with Handshake(client, address) as leaving:
                assert leaving.headers["Mcp-Session-Id"] != staying.headers["Mcp-Session-Id"]
            gone = await leaving.request("tools/list")
            assert gone.status_code == 404
            assert (await staying.call("math.add", {"a": 1, "b": 1}, id=2))["result"]["structuredContent"] == {"sum": 2}
            journal.write("release k")
        assert answers[0]["result"]["isError"] is False
    assert "cancelled k" not in journal


@pytest.mark.requirement("NFR-PERF-004")
async def test_a_made_up_session_id_is_not_found(address: Address) -> None:
    async with httpx2.AsyncClient(timeout=DEADLINE) as client, Handshake(client, address) as session:
        known = session.headers["Mcp-Session-Id"]
        for forged in ("x", known[:-1], known.upper() + "0", "../" + known, ""):
            session.headers["Mcp-Session-Id"] = forged
            assert (await session.request("tools/list")).status_code in (400, 404), forged
        session.headers["Mcp-Session-Id"] = known
        assert (await session.request("tools/list")).status_code == 200


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the SDK drops the first id's stream
@pytest.mark.requirement("NFR-PERF-004")
async def test_the_same_request_id_twice_in_one_session_is_answered_without_cross_talk(
    address: Address, journal: Journal
) -> None:
    async with httpx2.AsyncClient(timeout=DEADLINE) as client, Handshake(client, address) as session:
        answers: list[Any] = []
        async with anyio.create_task_group() as group:

            async def hold() -> None:
                answers.append(await session.call("work.hold", {"key": "k"}, id=1))

            group.start_soon(hold)
            await eventually(lambda: "started k" in journal)
            with anyio.move_on_after(2):
                second = await session.request("tools/call", {"name": "math.add", "arguments": {"a": 1, "b": 1}}, id=1)
                assert "sum" in second.text or second.status_code >= 400
            journal.write("release k")
            with anyio.move_on_after(DEADLINE):
                await eventually(lambda: answers or "finished k None" in journal)
            group.cancel_scope.cancel()
        assert all("sum" not in json.dumps(answer) for answer in answers)
        assert (await session.call("math.add", {"a": 2, "b": 2}, id=3))["result"]["structuredContent"] == {"sum": 4}


@pytest.mark.requirement("FR-SERVER-002", "FR-TRANSPORT-003")
async def test_mcp_is_one_exact_path_and_never_redirects(address: Address) -> None:
    async with httpx2.AsyncClient(follow_redirects=False, timeout=DEADLINE) as client:
        body = call_body("math.add", {"a": 1, "b": 2})
        exact = await client.post(address.mcp, json=body, headers=modern_headers("tools/call", "math.add"))
        assert exact.status_code == 200
        assert exact.json()["result"]["structuredContent"] == {"sum": 3}
        for path in ("mcp/", "mcp//", "MCP", "mcp/x", "", "sse", "messages/", "health/"):
            other = await client.post(address / path, json=body, headers=modern_headers("tools/call", "math.add"))
            assert other.status_code == 404, path


@pytest.mark.requirement("FR-SERVER-002")
async def test_a_2026_request_without_a_progress_token_is_answered_as_plain_json(address: Address) -> None:
    async with httpx2.AsyncClient(timeout=DEADLINE) as client:
        body = call_body("math.add", {"a": 1, "b": 2})
        plain = await client.post(address.mcp, json=body, headers=modern_headers("tools/call", "math.add"))
        assert plain.headers["content-type"] == "application/json"
        body = call_body("progress.awaited", {"values": [1]}, _meta={"progressToken": 3})
        stream = await client.post(address.mcp, json=body, headers=modern_headers("tools/call", "progress.awaited"))
        assert stream.headers["content-type"].startswith("text/event-stream")


@pytest.mark.requirement("NFR-PERF-002")
async def test_answers_leave_without_waiting_for_an_acknowledgement(address: Address) -> None:
    """Nagle's algorithm off: with it, every answer on a kept connection takes 40 ms."""
    async with httpx2.AsyncClient(timeout=DEADLINE) as client:
        await modern_call(client, address, "math.add", {"a": 1, "b": 2})
        options = list(_accepted(address.port))
    assert options
    assert all(options)


def _is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:  # the one that listed the others
        return False


def _accepted(port: int) -> Any:
    """TCP_NODELAY of every connection that this process accepted on the port."""
    for descriptor in filter(_is_socket, map(int, os.listdir("/proc/self/fd"))):
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            try:
                connection.getpeername()
                ours = connection.getsockname()[1] == port
            except (OSError, IndexError, TypeError):
                continue
            if ours:
                yield connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-SERVER-004", "FR-CLI-005")
async def test_the_server_tells_its_name_and_version(era: str, samples: Registry) -> None:
    mode = "auto" if era == MODERN else era
    for options, expected in (({}, ("apcore-mcp", __version__)), ({"name": "n", "version": "9.9"}, ("n", "9.9"))):
        with serving(samples, **options) as address:
            async with Client(address.mcp, mode=mode) as client:
                await client.list_tools()
                info = client.server_info
        assert info is not None
        assert (info.name, info.version) == expected


@pytest.mark.requirement("FR-SERVER-002")
async def test_unknown_methods_and_verbs_are_refused(address: Address) -> None:
    async with httpx2.AsyncClient(timeout=DEADLINE) as client:
        for verb in ("PUT", "PATCH", "TRACE"):
            assert (await client.request(verb, address.mcp)).status_code == 405
        body = {"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": call_body("x")["params"]}
        unknown = await client.post(address.mcp, json=body, headers=modern_headers("no/such"))
        assert unknown.status_code == 404
        assert unknown.json()["error"]["code"] == -32601
        async with Handshake(client, address) as session:
            assert "-32601" in (await session.request("no/such")).text
        assert (await client.get(address.mcp, headers=JSON_OR_STREAM)).status_code in (400, 404, 405, 406)


class Empty(BaseModel):
    """Nothing."""


class Exits:
    description = "Ends the process, it believes."
    input_schema = output_schema = Empty

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        raise SystemExit(7)


async def test_an_async_module_that_exits_fails_alone(samples: Registry) -> None:
    samples.register("work.exits", Exits())
    with serving(samples) as address:
        async with httpx2.AsyncClient(timeout=DEADLINE) as client:
            ended = await modern_call(client, address, "work.exits", {})
            assert ended["result"]["content"][0]["text"] == "Internal error occurred"
            assert (await client.get(address / "health")).status_code == 200
