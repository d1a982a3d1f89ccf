"""Many clients, slow ones, floods, clients that go away, signals: everybody else goes on, and nothing is lost."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest

from e2e.servers import child
from e2e.wire import ERAS, Handshake, call_body, messages, modern_headers
from faults.kit import Journal, fake
from mcp_text import told
from waiting import DEADLINE, eventually
from web.gateway import AGENTS, PROJECT, Gateway, call, events, serving, started, toolgrove
from web.held import Held, holding

pytestmark = pytest.mark.anyio
LOOK = {"nodeId": "root"}
FLOODER = {"tools": ["get_node"], "rateLimit": "20/hour"}


def project(held: Held) -> dict[str, Any]:
    return {**PROJECT, "httpTools": {"hold": held.tool()}, "agents": {**AGENTS, "flooder": FLOODER}}


@asynccontextmanager
async def at_work(tmp_path: Path) -> AsyncIterator[tuple[Gateway, Held]]:
    """A gateway with a tool that is answered when the test says so."""
    with anyio.fail_after(2 * DEADLINE):
        async with holding() as held:
            with serving(tmp_path / "project", project(held)) as gateway:
                yield gateway, held
                held.release(*held.arrived)


async def outcomes(gateway: Gateway, tool: str) -> list[str]:
    async with gateway.http("operator") as http:
        records = (await http.get("/api/audit", params={"tool": tool})).json()["items"]
        return [record["outcome"] for record in records]


async def ended(process: subprocess.Popen[bytes]) -> int:
    return await anyio.to_thread.run_sync(process.wait, DEADLINE)


async def until_refused(gateway: Gateway) -> None:
    """Until nobody new is let in."""
    with anyio.fail_after(DEADLINE):
        while True:
            try:
                async with await anyio.connect_tcp("127.0.0.1", gateway.port):
                    await anyio.sleep(0.01)
            except OSError:
                return


async def run(http: httpx2.AsyncClient, key: str) -> dict[str, Any]:
    body = {"calls": [{"tool": "hold", "arguments": {"key": key}}]}
    return events((await http.post("/agents/editor/runs", json=body)).text)[1]


async def legacy(http: httpx2.AsyncClient, gateway: Gateway, key: str) -> dict[str, Any]:
    session = Handshake(http, gateway.address("editor"))
    await session.__aenter__()
    answer: dict[str, Any] = (await session.call("hold", {"key": key}))["result"]["structuredContent"]
    return answer


@pytest.mark.parametrize("way", ["modern", "legacy", "run"])
async def test_calls_in_flight_are_finished_after_sigterm(tmp_path: Path, way: str) -> None:
    """They are let go two seconds after the signal, when nobody new comes in any more."""
    answers: dict[str, Any] = {}
    with anyio.fail_after(2 * DEADLINE):
        async with holding() as held:
            with started(tmp_path / "project", project(held)) as gateway:
                async with gateway.http("editor") as http, anyio.create_task_group() as group:

                    async def work(key: str) -> None:
                        match way:
                            case "modern":
                                answers[key] = await call(http, "editor", "hold", {"key": key})
                            case "legacy":
                                answers[key] = await legacy(http, gateway, key)
                            case _:
                                answers[key] = (await run(http, key))["result"]

                    keys = [f"k{number}" for number in range(5)]
                    for key in keys:
                        group.start_soon(work, key)
                    await eventually(lambda: held.arrived == set(keys))
                    gateway.process.send_signal(signal.SIGTERM)
                    await until_refused(gateway)
                    await anyio.sleep(2)  # the time that a call takes, not a wait for anything
                    held.release(*keys)
                assert await ended(gateway.process) == 0
            assert "Traceback" not in gateway.log, gateway.log
    assert {key: answer["body"] for key, answer in answers.items()} == {key: {"key": key} for key in keys}


async def test_a_second_sigterm_ends_at_once(tmp_path: Path) -> None:
    with anyio.fail_after(2 * DEADLINE):
        async with holding() as held:
            with started(tmp_path / "project", project(held)) as gateway:
                async with gateway.http("editor") as http, anyio.create_task_group() as group:

                    async def cut() -> None:
                        with pytest.raises(httpx2.TransportError):
                            await call(http, "editor", "hold", {"key": "k"})

                    group.start_soon(cut)
                    await eventually(lambda: "k" in held.arrived)
                    gateway.process.send_signal(signal.SIGTERM)
                    await until_refused(gateway)
                    gateway.process.send_signal(signal.SIGTERM)
                    assert await ended(gateway.process) == -signal.SIGTERM


@pytest.mark.parametrize("kind", ["events", "subscription", "legacy"])
async def test_an_open_stream_does_not_keep_the_gateway_alive(tmp_path: Path, kind: str) -> None:
    with anyio.fail_after(2 * DEADLINE), started(tmp_path / "project") as gateway:
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(gateway.http("operator"))
            if kind == "subscription":
                client = await stack.enter_async_context(gateway.connect("editor"))
                await stack.enter_async_context(client.listen(tools_list_changed=True))
            elif kind == "events":
                stream = await stack.enter_async_context(http.stream("GET", "/api/events"))
                assert stream.status_code == 200
            else:
                session = Handshake(http, gateway.address("editor"))
                await session.__aenter__()
                listening = http.stream("GET", "/agents/editor/mcp", headers=session.headers)
                assert (await stack.enter_async_context(listening)).status_code == 200
            gateway.process.send_signal(signal.SIGTERM)
            assert await ended(gateway.process) == 0
    # The SDK cuts a stream of the older era, and uvicorn says so at length.
    assert kind == "legacy" or "Traceback" not in gateway.log, gateway.log


@pytest.mark.parametrize("when", ["starting", "started"])
async def test_sigterm_while_it_starts_leaves_no_server_behind(tmp_path: Path, when: str) -> None:
    journal = Journal(tmp_path / "journal")
    mode = "never_init" if when == "starting" else "healthy"
    config = {**PROJECT, "mcpServers": {"up": fake(mode, journal)}, "startupBudget": 3}
    file = tmp_path / "toolgrove.yaml"
    file.write_text(json.dumps(config))
    command = toolgrove("serve", str(file), "--port", "0", "--json")
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with child(command, **streams) as process:
        await eventually(lambda: journal.pids)
        process.send_signal(signal.SIGTERM)
        assert await ended(process) == 0
    await eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in journal.pids))


@pytest.mark.parametrize("way", ["plain", "stream", "run", "legacy"])
async def test_a_client_that_goes_away_takes_its_call_with_it(tmp_path: Path, way: str) -> None:
    """All the way to the upstream; the call is in the audit log as cancelled, and others are not touched."""
    async with at_work(tmp_path) as (gateway, held), gateway.http("editor") as staying:
        answers: list[Any] = []

        async def leave() -> None:
            async with gateway.http("editor") as http:
                if way == "run":
                    await run(http, "gone")
                elif way == "legacy":
                    async with (
                        Handshake(http, gateway.address("editor")) as session,
                        anyio.create_task_group() as tasks,
                    ):

                        async def ask() -> None:
                            await session.call("hold", {"key": "gone"}, id=7)

                        tasks.start_soon(ask)
                        await eventually(lambda: "gone" in held.arrived)
                        await session.notify("notifications/cancelled", {"requestId": 7})
                        await anyio.sleep_forever()
                else:
                    meta = {"_meta": {"progressToken": 1}} if way == "stream" else {}
                    await call(http, "editor", "hold", {"key": "gone"}, **meta)

        async def stay() -> None:
            answers.append(await call(staying, "editor", "hold", {"key": "stays"}))

        async with anyio.create_task_group() as group:
            group.start_soon(stay)
            async with anyio.create_task_group() as leaving:
                leaving.start_soon(leave)
                await eventually(lambda: held.arrived == {"gone", "stays"})
                if way == "legacy":
                    await eventually(lambda: "gone" in held.abandoned)
                leaving.cancel_scope.cancel()
            await eventually(lambda: "gone" in held.abandoned)
            held.release("stays")
        assert answers[0]["body"] == {"key": "stays"}
        with anyio.fail_after(DEADLINE):
            while sorted(await outcomes(gateway, "hold")) != ["cancelled", "success"]:
                await anyio.sleep(0.05)


async def test_a_flooding_agent_is_limited_and_the_others_are_not(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (gateway, _), gateway.http("flooder") as flooder, gateway.http("editor") as editor:
        floods: list[dict[str, Any]] = []
        calm: list[dict[str, Any]] = []

        async def flood(number: int) -> None:
            name = "get_node" if number % 2 else f"made-up-{number}"
            floods.append(await call(flooder, "flooder", name, LOOK, id=number))

        async def work() -> None:
            calm.append(await call(editor, "editor", "get_node", LOOK))

        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(flood, number)
                if number % 10 == 0:
                    group.start_soon(work)
        assert all(answer["nodeId"] == "root" for answer in calm)
        limited = [answer for answer in floods if answer.get("error", {}).get("code") == "rate_limited"]
        assert len(limited) == 180
        assert all(answer["error"]["retryAfter"] > 0 for answer in limited)
        run_answer = await flooder.post(
            "/agents/flooder/runs", json={"calls": [{"tool": "get_node", "arguments": LOOK}]}
        )
        assert events(run_answer.text)[1]["error"]["code"] == "rate_limited", "one limit for every way in"
        async with gateway.http("operator") as operator:
            exposition = (await operator.get("/metrics")).text
            assert "made-up" not in exposition, "labels are bounded, whatever a flooder calls"
            acting = await call(operator, "flooder", "get_node", LOOK)
            assert acting["error"]["code"] == "rate_limited"


async def test_one_slow_upstream_holds_up_nobody_else(tmp_path: Path) -> None:
    """A hundred calls wait in it while every other tool answers; then they are answered, each with its own."""
    async with at_work(tmp_path) as (gateway, held), gateway.http("editor") as http:
        answers: dict[str, Any] = {}
        limits = httpx2.Limits(max_connections=200)
        async with (
            httpx2.AsyncClient(
                base_url=gateway.base, headers=gateway.headers("editor"), timeout=DEADLINE, limits=limits
            ) as slow,
            anyio.create_task_group() as group,
        ):

            async def wait(key: str) -> None:
                answers[key] = await call(slow, "editor", "hold", {"key": key})

            keys = [f"k{number}" for number in range(100)]
            for key in keys:
                group.start_soon(wait, key)
            await eventually(lambda: held.arrived)
            for _ in range(20):
                assert (await call(http, "editor", "get_node", LOOK))["nodeId"] == "root"
            async with gateway.connect("researcher") as client:
                assert not (await client.call_tool("get_node", LOOK)).is_error
            assert answers == {}
            held.release(*keys)
        assert len(answers) == 100
        through = {key: answer for key, answer in answers.items() if "error" not in answer}
        assert through
        assert all(answer["body"] == {"key": key} for key, answer in through.items())
        refused = {answer["error"]["code"] for answer in answers.values() if "error" in answer}
        assert refused <= {"rate_limited", "internal"}, "a full bulkhead says so"


async def test_two_hundred_clients_at_once_get_their_own_answers(tmp_path: Path) -> None:
    """Half of them of each era, all connected before the first one calls; some write to the tree they all read."""
    everyone, writers = 200, 20
    async with at_work(tmp_path) as (gateway, _):
        connected: set[int] = set()
        answered: set[int] = set()
        all_here = anyio.Event()

        async def client(number: int) -> None:
            async with gateway.connect("editor" if number < writers else "researcher", ERAS[number % 2]) as mcp:
                await mcp.list_tools()
                connected.add(number)
                if len(connected) == everyone:
                    all_here.set()
                await all_here.wait()
                seen = told(await mcp.call_tool("get_node", {"nodeId": f"none-{number}"}))
                assert seen["error"]["nodeId"] == f"none-{number}"
                token = "" if number < writers else None
                while token is not None:
                    added = {"parentNodeId": "root", "payloadType": "Note", "versionToken": token}
                    written = told(await mcp.call_tool("add_child", {**added, "idempotencyKey": f"{number}"}))
                    token = written.get("error", {}).get("latestVersion")
                answered.add(number)

        async with anyio.create_task_group() as group:
            for number in range(everyone):
                group.start_soon(client, number)
        assert len(answered) == everyone
        async with gateway.http("editor") as http:
            assert (await call(http, "editor", "get_node", LOOK))["childrenCount"] == writers


async def test_a_racing_key_of_two_hundred_requests_has_one_effect(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (gateway, _), gateway.http("editor") as http:
        version = (await call(http, "editor", "get_node", LOOK))["version"]
        added = {"parentNodeId": "root", "payloadType": "Note", "versionToken": version, "idempotencyKey": "one"}
        answers: list[str] = []

        async def send(number: int) -> None:
            if number % 2:
                answers.append(json.dumps(await call(http, "editor", "add_child", added)))
            else:
                body = {"calls": [{"tool": "add_child", "arguments": added}]}
                told = events((await http.post("/agents/editor/runs", json=body)).text)
                answers.append(json.dumps(told[1]["result"]))

        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(send, number)
        assert len(answers) == 200
        assert len(set(answers)) == 1
        assert (await call(http, "editor", "get_node", LOOK))["childrenCount"] == 1


async def test_a_watcher_that_does_not_read_holds_up_nobody(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (gateway, _), gateway.http("editor") as http, gateway.http("operator") as operator:
        async with operator.stream("GET", "/api/events") as stream:
            assert stream.status_code == 200
            body = {"calls": [{"tool": "get_node", "arguments": {"nodeId": "x" * 2_000}}] * 100}
            for _ in range(15):  # events of many megabytes, none of which is read
                told = events((await http.post("/agents/editor/runs", json=body)).text)
                assert told[-1]["type"] == "run_finished"
        assert (await call(http, "editor", "get_node", LOOK))["nodeId"] == "root"


async def test_a_client_that_hangs_up_on_a_legacy_stream_leaves_its_session(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (gateway, _), gateway.http("editor") as http:
        async with Handshake(http, gateway.address("editor")) as session:
            for _ in range(3):
                async with http.stream("GET", "/agents/editor/mcp", headers=session.headers) as stream:
                    assert stream.status_code == 200
            response = await session.request("tools/call", {"name": "get_node", "arguments": LOOK})
            (message,) = messages(response)
            assert message["result"]["structuredContent"]["nodeId"] == "root"
        body, headers = call_body("get_node", LOOK), modern_headers("tools/call", "get_node")
        assert (await http.post("/agents/editor/mcp", json=body, headers=headers)).status_code == 200
