"""A client that cancels or goes away reaches the module's token, and the module reaches the client no more."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from apcore import Registry
from mcp import Client

from e2e.conftest import Connect
from e2e.modules import Journal
from e2e.servers import Address, serving
from e2e.wire import ERAS, JSON_OR_STREAM, MODERN, Handshake, call_body, messages, modern_body, modern_headers
from mcp_serve.presence import WATCH_AFTER
from waiting import DEADLINE, eventually

pytestmark = pytest.mark.anyio

HOLDS = ["work.hold", "work.hold_sync"]


@pytest.mark.requirement("FR-EXT-001")
async def test_a_cancelled_call_reaches_the_module_and_leaves_no_late_message(
    connect: Connect, journal: Journal, transport: str
) -> None:
    late: list[str | None] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        late.append(message)

    async def ask(context: Any, params: Any) -> types.ElicitResult:
        late.append(params.message)
        return types.ElicitResult(action="accept", content={"ok": True})

    async with connect(elicitation_callback=ask) as client:
        for name in HOLDS:
            async with anyio.create_task_group() as group:
                call = lambda name=name: client.call_tool(name, {"key": name}, progress_callback=heard)  # noqa: E731
                group.start_soon(call)
                await eventually(lambda name=name: f"started {name}" in journal)  # type: ignore[misc]
                group.cancel_scope.cancel()
            await eventually(lambda name=name: f"cancelled {name}" in journal)  # type: ignore[misc]
            await eventually(lambda name=name: f"finished {name} None" in journal)  # type: ignore[misc]
            # The connection is as good as new, and what follows is all that comes.
            result = await client.call_tool("math.add", {"a": 2, "b": 3}, progress_callback=heard)
            assert result.structured_content == {"sum": 5}
    assert [message for message in late if message and message.startswith("late")] == []


@pytest.mark.parametrize("name", HOLDS)
@pytest.mark.parametrize("token", [None, 7], ids=["answered as JSON", "answered as a stream"])
async def test_closing_the_response_cancels_a_2026_call(
    address: Address, journal: Journal, name: str, token: int | None
) -> None:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    body = modern_body("tools/call", {"name": name, "arguments": {"key": "k"}} | meta)
    async with httpx2.AsyncClient(timeout=DEADLINE) as client:
        async with anyio.create_task_group() as group:

            async def call() -> None:
                await client.post(address.mcp, json=body, headers=modern_headers("tools/call", name))

            group.start_soon(call)
            await eventually(lambda: "started k" in journal)
            group.cancel_scope.cancel()
        await eventually(lambda: "cancelled k" in journal)
        await eventually(lambda: "finished k None" in journal)


async def test_a_reset_connection_cancels_its_call_and_no_other(address: Address, journal: Journal) -> None:
    async with httpx2.AsyncClient(timeout=DEADLINE) as client, anyio.create_task_group() as group:
        answers: list[Any] = []

        async def stay() -> None:
            headers = modern_headers("tools/call", "work.hold")
            response = await client.post(address.mcp, json=call_body("work.hold", {"key": "stays"}), headers=headers)
            answers.extend(messages(response))

        group.start_soon(stay)
        await eventually(lambda: "started stays" in journal)
        raw = socket.create_connection(("127.0.0.1", address.port))
        content = json.dumps(call_body("work.hold", {"key": "leaves"})).encode()
        headers = modern_headers("tools/call", "work.hold") | {"Host": "127.0.0.1", "Content-Length": str(len(content))}
        head = "POST /mcp HTTP/1.1\r\n" + "".join(f"{key}: {value}\r\n" for key, value in headers.items()) + "\r\n"
        raw.sendall(head.encode() + content)
        await eventually(lambda: "started leaves" in journal)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close() sends a reset
        raw.close()
        await eventually(lambda: "cancelled leaves" in journal)
        assert "cancelled stays" not in journal
        journal.write("release stays")
    assert answers[0]["result"]["isError"] is False


@pytest.mark.parametrize("name", HOLDS)
async def test_a_cancelled_notification_cancels_a_handshake_era_call(
    address: Address, journal: Journal, name: str
) -> None:
    received: list[Any] = []
    async with httpx2.AsyncClient(timeout=DEADLINE) as client, Handshake(client, address) as session:  # noqa: SIM117
        async with anyio.create_task_group() as group:

            async def call() -> None:
                params = {"name": name, "arguments": {"key": "k"}, "_meta": {"progressToken": 9}}
                async with client.stream(
                    "POST",
                    address.mcp,
                    json={"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params},
                    headers=session.headers,
                ) as response:
                    async for line in response.aiter_lines():
                        if line.startswith("data:") and line[5:].strip():
                            received.append(json.loads(line[5:]))

            group.start_soon(call)
            await eventually(lambda: "started k" in journal)
            await session.notify("notifications/cancelled", {"requestId": 5, "reason": "enough"})
            await eventually(lambda: "cancelled k" in journal)
            await eventually(lambda: "finished k None" in journal)
            assert (await session.call("math.add", {"a": 1, "b": 1}, id=6))["result"]["structuredContent"] == {"sum": 2}
            group.cancel_scope.cancel()
    assert [message for message in received if message.get("id") == 5 and "result" in message] == []
    assert [m for m in received if "late" in json.dumps(m)] == []


async def test_a_reset_connection_of_a_session_leaves_its_call_running(address: Address, journal: Journal) -> None:
    async with httpx2.AsyncClient(timeout=DEADLINE) as client, Handshake(client, address) as session:
        with socket.create_connection(("127.0.0.1", address.port)) as raw:

            def send(name: str, arguments: dict[str, Any]) -> None:
                params = {"name": name, "arguments": arguments}
                content = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}).encode()
                headers = {"Host": "127.0.0.1", "Content-Length": str(len(content)), **session.headers}
                head = "POST /mcp HTTP/1.1\r\n" + "".join(f"{key}: {value}\r\n" for key, value in headers.items())
                raw.sendall(head.encode() + b"\r\n" + content)

            send("math.add", {"a": 1, "b": 1})  # from here on the server knows the head
            assert b'"sum"' in raw.recv(10_000)
            send("work.hold", {"key": "k"})
            await eventually(lambda: "started k" in journal)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # closing sends a reset
        # When this is answered, whoever watches has seen that the client is gone.
        await session.call("work.nap", {"key": "n", "seconds": 3 * WATCH_AFTER}, id=6)
        journal.write("release k")
        await eventually(lambda: "finished k None" in journal)
        assert "cancelled k" not in journal


async def test_one_client_cannot_cancel_the_call_of_another(address: Address, journal: Journal) -> None:
    async with (
        httpx2.AsyncClient(timeout=DEADLINE) as client,
        Handshake(client, address) as victim,
        Handshake(client, address) as attacker,
    ):
        answers: list[Any] = []
        async with anyio.create_task_group() as group:

            async def hold() -> None:
                answers.append(await victim.call("work.hold", {"key": "k"}, id=5))

            group.start_soon(hold)
            await eventually(lambda: "started k" in journal)
            await attacker.notify("notifications/cancelled", {"requestId": 5})
            headers = JSON_OR_STREAM | {"MCP-Protocol-Version": MODERN}
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
            await client.post(address.mcp, json=cancel, headers=headers)
            assert (await attacker.call("math.add", {"a": 1, "b": 1}))["result"]["isError"] is False
            journal.write("release k")
    assert "cancelled k" not in journal
    assert answers[0]["result"]["isError"] is False


# The client's socket: before anyio 4.16 a connection that is cancelled while it is made stays open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("era", ERAS)
async def test_a_cancel_that_races_the_end_leaves_the_session_usable(
    address: Address, journal: Journal, era: str
) -> None:
    async with Client(address.mcp, mode=era) as client:
        for attempt in range(30):
            with anyio.move_on_after(0.0005 * attempt):
                await client.call_tool("work.nap", {"key": str(attempt), "seconds": 0.003})
        result = await client.call_tool("math.add", {"a": 4, "b": 4})
    assert result.structured_content == {"sum": 8}


@pytest.mark.requirement("FR-EXT-002")
async def test_cancelling_a_call_that_waits_for_the_user_ends_its_question(address: Address, journal: Journal) -> None:
    asked = anyio.Event()

    async def never(context: Any, params: Any) -> types.ElicitResult:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with Client(address.mcp, mode="legacy", elicitation_callback=never) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: client.call_tool("ask.once", {"key": "k"}))
            with anyio.fail_after(DEADLINE):
                await asked.wait()
            group.cancel_scope.cancel()
        await eventually(lambda: "answered k [None]" in journal)


@pytest.fixture
def exploring(samples: Registry) -> Iterator[Address]:
    with serving(samples, explorer=True, allow_execute=True) as address:
        yield address


@pytest.mark.parametrize("name", HOLDS)
@pytest.mark.requirement("FR-EXPLORER-004")
async def test_an_aborted_explorer_call_reaches_the_module(exploring: Address, journal: Journal, name: str) -> None:
    async with httpx2.AsyncClient(timeout=DEADLINE) as client, anyio.create_task_group() as group:
        group.start_soon(lambda: client.post(exploring / f"explorer/tools/{name}/call", json={"key": "k"}))
        await eventually(lambda: "started k" in journal)
        group.cancel_scope.cancel()
    with anyio.CancelScope(shield=True):
        await eventually(lambda: "cancelled k" in journal)


@pytest.mark.requirement("FR-TRANSPORT-003", "NFR-PERF-004")
async def test_two_hundred_sync_calls_at_once_all_end(address: Address) -> None:
    """More than the thread pool has threads: a queue, not a deadlock."""
    results: list[Any] = []
    limits = httpx2.Limits(max_connections=200)
    async with httpx2.AsyncClient(timeout=60, limits=limits) as client, anyio.create_task_group() as group:

        async def call(number: int) -> None:
            body = call_body("work.nap_sync", {"key": str(number), "seconds": 0.01}, number)
            response = await client.post(address.mcp, json=body, headers=modern_headers("tools/call", "work.nap_sync"))
            results.append(messages(response)[-1])

        for number in range(200):
            group.start_soon(call, number)
    assert {r["id"]: json.loads(r["result"]["content"][0]["text"])["key"] for r in results} == {
        number: str(number) for number in range(200)
    }
