"""The embeddable forms: `create_app` in somebody's application, `async_serve` in somebody's loop."""

import asyncio
import contextlib
import json
import logging
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from apcore import ACL, ACLRule, Executor, Registry
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, BaseUser, SimpleUser
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.routing import Mount

from apcore_mcp import async_serve, create_app, serve
from e2e.modules import Journal, Returns, sample_registry
from e2e.servers import Address, cli_command, http_child, is_healthy, serving
from e2e.wire import ERAS, HANDSHAKE, JSON_OR_STREAM, MODERN, Handshake, call_body, envelope, messages, modern_headers
from mcp_text import text_of
from ports import free_port
from waiting import DEADLINE, eventually, wait_until
from warm.command import python

pytestmark = pytest.mark.anyio


@contextlib.contextmanager
def uvicorn_serving(app: Any, path: str = "/health") -> Iterator[Address]:
    """Any ASGI app under plain uvicorn, as its user would run it."""
    address = Address(port=free_port())
    server = uvicorn.Server(uvicorn.Config(app, port=address.port, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        assert thread.is_alive()
        yield address
    finally:
        server.should_exit = True
        thread.join(DEADLINE)
        assert not thread.is_alive()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-SERVER-002", "FR-HEALTH-001")
async def test_create_app_runs_under_plain_uvicorn(samples: Registry, era: str) -> None:
    with uvicorn_serving(create_app(samples, explorer=True)) as address:
        async with Client(address.mcp, mode=era) as client:
            assert (await client.call_tool("math.add", {"a": 1, "b": 2})).structured_content == {"sum": 3}
        assert is_healthy(address)
        assert httpx2.get(address / "explorer/").status_code == 200


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-SERVER-002", "FR-DYNAMIC-001")
async def test_create_app_works_mounted_inside_another_application(
    samples: Registry, journal: Journal, era: str
) -> None:
    inner = create_app(samples, on_startup=lambda: journal.write("up"), on_shutdown=lambda: journal.write("down"))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with inner.router.lifespan_context(inner):
            yield

    outer = Starlette(routes=[Mount("/tools", app=inner)], lifespan=lifespan)
    with uvicorn_serving(outer) as address:
        async with Client(address / "tools/mcp", mode=era) as client:
            assert (await client.call_tool("math.add", {"a": 1, "b": 2})).structured_content == {"sum": 3}
            samples.register("later.add", Returns(journal, {"late": True}))
            assert "later.add" in [tool.name for tool in (await client.list_tools()).tools]
        assert httpx2.get(address / "tools/health").json()["status"] == "ok"
        assert journal.lines == ["up"]
    assert journal.lines == ["up", "down"]


@pytest.mark.requirement("FR-EXPLORER-001", "FR-EXPLORER-006")
async def test_the_explorer_works_mounted_inside_another_application(samples: Registry) -> None:
    inner = create_app(samples, explorer=True, allow_execute=True)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with inner.router.lifespan_context(inner):
            yield

    outer = Starlette(routes=[Mount("/tools", app=inner)], lifespan=lifespan)
    with uvicorn_serving(outer) as address, httpx2.Client(follow_redirects=True) as client:
        assert client.get(address / "tools/explorer").status_code == 200
        assert client.get(address / "tools/explorer").url.path == "/tools/explorer/"
        called = client.post(address / "tools/explorer/tools/math.add/call", json={"a": 1, "b": 2})
        assert called.json() == {"result": {"sum": 3}}


class Tokens(AuthenticationBackend):
    """Bearer tokens of two users."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, BaseUser] | None:
        users = {"Bearer a": ("alice", ["admin"]), "Bearer b": ("bob", ["guest"])}
        known = users.get(conn.headers.get("authorization", ""))
        return known and (AuthCredentials(known[1]), SimpleUser(known[0]))


@asynccontextmanager
async def http_as(token: str | None) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=DEADLINE) as http:
        yield http


@asynccontextmanager
async def as_user(address: Address, token: str | None, era: str) -> AsyncIterator[Client]:
    async with (
        http_as(token) as http,
        Client(streamable_http_client(address.mcp, http_client=http), mode=era) as client,
    ):
        yield client


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("NFR-SEC-001", "FR-ERROR-003", "FR-EXEC-003")
async def test_the_identity_of_an_authentication_middleware_reaches_the_acl(
    samples: Registry, journal: Journal, era: str
) -> None:
    rules = [
        ACLRule(callers=["*"], targets=["who.*"], effect="allow"),
        ACLRule(callers=["*"], targets=["secret.*"], effect="allow", conditions={"roles": ["admin"]}),
    ]
    app = create_app(Executor(samples, acl=ACL(rules, default_effect="deny")))
    app.add_middleware(AuthenticationMiddleware, backend=Tokens())
    expected = {
        "a": ({"id": "alice", "roles": ["admin"]}, False),
        "b": ({"id": "bob", "roles": ["guest"]}, True),
        None: ({"id": None, "roles": []}, True),
    }
    with uvicorn_serving(app) as address:
        for token, (who, denied) in expected.items():
            async with as_user(address, token, era) as client:
                seen = json.loads(text_of(await client.call_tool("who.am_i")))
                assert {"id": seen["id"], "roles": seen["roles"]} == who or (token is None and seen["roles"] == [])
                vault = await client.call_tool("secret.vault")
                assert vault.is_error is denied
                if denied:
                    assert text_of(vault) == "Access denied"
    assert journal.lines == ["vault opened"]


@pytest.mark.requirement("FR-EXT-002", "NFR-SEC-001")
async def test_another_users_answer_does_not_resume_a_call(samples: Registry, journal: Journal) -> None:
    app = create_app(samples)
    app.add_middleware(AuthenticationMiddleware, backend=Tokens())
    body = call_body("ask.once", {"key": "k"}, _meta=envelope(elicitation={"form": {}}))
    headers = modern_headers("tools/call", "ask.once")
    with uvicorn_serving(app) as address, httpx2.Client(timeout=DEADLINE) as client:

        def send(user: str, request: Any) -> Any:
            response = client.post(address.mcp, json=request, headers=headers | {"Authorization": f"Bearer {user}"})
            return messages(response)[-1]

        asked = send("a", body)["result"]
        [question] = asked["inputRequests"]
        retry = json.loads(json.dumps(body))
        retry["params"] |= {
            "requestState": asked["requestState"],
            "inputResponses": {question: {"action": "accept", "content": {"ok": True}}},
        }
        stolen = send("b", retry)
        assert "error" in stolen or stolen["result"]["isError"]
        assert "answered k" not in "".join(journal.lines)
        answered = send("a", retry)["result"]
    assert json.loads(answered["content"][0]["text"]) == {"answers": [{"ok": True}]}


@pytest.mark.parametrize("thief", ["b", None])
@pytest.mark.requirement("NFR-SEC-001", "FR-SERVER-002")
async def test_a_session_is_found_only_by_the_user_who_opened_it(
    samples: Registry, journal: Journal, thief: str | None
) -> None:
    app = create_app(samples)
    app.add_middleware(AuthenticationMiddleware, backend=Tokens())
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "secret.vault", "arguments": {}}}
    with uvicorn_serving(app) as address:
        async with http_as("a") as owner, Handshake(owner, address) as session, http_as(thief) as other:
            for method, body in (("POST", call), ("GET", None), ("DELETE", None)):
                # As a stream: the one of GET would have no end.
                async with other.stream(method, address.mcp, json=body, headers=session.headers) as stolen:
                    assert stolen.status_code == 404, method
                    assert "Session not found" in (await stolen.aread()).decode()
            async with owner.stream("GET", address.mcp, headers=session.headers) as events:
                assert events.status_code == 200
                samples.register("later.add", Returns(journal, {"late": True}))
                received = [line async for line in until(events.aiter_lines(), "tools/list_changed")]
            assert received, "the session lives on, and its events reach its owner"
            assert "sum" in json.dumps(await session.call("math.add", {"a": 1, "b": 2}))
    assert "vault opened" not in journal


@pytest.mark.parametrize("thief", ["b", None])
@pytest.mark.requirement("NFR-SEC-001", "FR-SERVER-003")
async def test_an_sse_session_is_found_only_by_the_user_who_opened_it(samples: Registry, thief: str | None) -> None:
    app = create_app(samples, transport="sse")
    app.add_middleware(AuthenticationMiddleware, backend=Tokens())
    params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    with uvicorn_serving(app) as address:
        async with http_as("a") as owner, http_as(thief) as other, owner.stream("GET", address / "sse") as events:
            lines = events.aiter_lines()
            opened = [line async for line in until(lines, "session_id")]
            messages_at = address / opened[-1].removeprefix("data: ")
            for user, status in ((other, 404), (owner, 202)):
                answered = await user.post(messages_at, json=hello, headers=JSON_OR_STREAM)
                assert answered.status_code == status
            assert [line async for line in until(lines, "serverInfo")]


async def until(lines: AsyncIterator[str], text: str) -> AsyncIterator[str]:
    """The lines up to the one with the text."""
    async for line in lines:
        yield line
        if text in line:
            return


async def started(task: "asyncio.Task[None]", address: Address) -> None:
    async with httpx2.AsyncClient() as client:
        with anyio.fail_after(DEADLINE):
            while not task.done():
                try:
                    await client.get(address / "health")
                    return
                except httpx2.HTTPError:
                    await anyio.sleep(0.01)
    task.result()


def hooks(journal: Journal, kind: str) -> dict[str, Any]:
    async def up() -> None:
        await asyncio.sleep(0)
        journal.write("up")

    async def down() -> None:
        await asyncio.sleep(0)
        journal.write("down")

    if kind == "async":
        return {"on_startup": up, "on_shutdown": down}
    return {"on_startup": lambda: journal.write("up"), "on_shutdown": lambda: journal.write("down")}


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
@pytest.mark.requirement("FR-SERVER-002", "FR-SERVER-005", "NFR-REL-001")
async def test_cancelling_async_serve_stops_it_and_calls_the_hooks(
    samples: Registry, journal: Journal, transport: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = Address(port=free_port())
    before = asyncio.all_tasks()
    options = {"transport": transport, "port": address.port, **hooks(journal, kind)}
    task = asyncio.create_task(async_serve(samples, **options))
    await started(task, address)
    assert journal.lines == ["up"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert journal.lines == ["up", "down"]
    with socket.create_server(("127.0.0.1", address.port)):
        pass  # the port is free again
    await eventually(lambda: asyncio.all_tasks() == before)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.requirement("NFR-REL-001")
async def test_a_call_in_flight_is_answered_when_async_serve_is_cancelled(samples: Registry, journal: Journal) -> None:
    address = Address(port=free_port())
    task = asyncio.create_task(async_serve(samples, transport="streamable-http", port=address.port))
    await started(task, address)
    async with Client(address.mcp, mode=MODERN) as client:
        call = asyncio.create_task(client.call_tool("work.hold", {"key": "k"}))
        await eventually(lambda: "started k" in journal)
        task.cancel()
        journal.write("release k")
        result = await call
    assert json.loads(text_of(result)) == {"key": "k"}
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
@pytest.mark.requirement("FR-SERVER-005")
async def test_a_startup_hook_that_fails_is_what_the_caller_sees(samples: Registry, transport: str) -> None:
    def fail() -> None:
        raise LookupError("no database")

    with pytest.raises(LookupError, match="no database"):
        await async_serve(samples, transport=transport, port=free_port(), on_startup=fail)


@pytest.mark.requirement("FR-SERVER-005", "NFR-REL-001")
async def test_hooks_meet_a_server_that_answers_and_the_last_one_no_call(samples: Registry, journal: Journal) -> None:
    address = Address(port=free_port())

    async def ask() -> None:
        async with httpx2.AsyncClient(timeout=DEADLINE) as client:
            journal.write(f"health {(await client.get(address / 'health')).status_code}")

    options: dict[str, Any] = {"transport": "streamable-http", "port": address.port}
    task = asyncio.create_task(async_serve(samples, on_startup=ask, on_shutdown=ask, **options))
    await eventually(lambda: journal.lines == ["health 200"])
    async with Client(address.mcp, mode=MODERN) as client:
        call = asyncio.create_task(client.call_tool("work.hold", {"key": "k"}))
        await eventually(lambda: "started k" in journal)
        task.cancel()
        journal.write("release k")
        await call
    with pytest.raises(asyncio.CancelledError):
        await task
    assert journal.lines[-2:] == ["finished k None", "health 200"]


@pytest.mark.requirement("FR-SERVER-005")
async def test_two_servers_in_one_process_do_not_share_anything(tmp_path: Any) -> None:
    journals = [Journal(tmp_path / str(number)) for number in range(2)]
    with (
        serving(sample_registry(journals[0])) as first,
        serving(sample_registry(journals[1]), prefix="math.") as second,
    ):
        async with Client(first.mcp, mode=MODERN) as one, Client(second.mcp, mode=MODERN) as two:
            assert len((await one.list_tools()).tools) > 1
            assert [tool.name for tool in (await two.list_tools()).tools] == ["math.add"]
            await one.call_tool("secret.vault")
    assert [journal.lines for journal in journals] == [["vault opened"], []]


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
@pytest.mark.requirement("FR-HEALTH-001", "FR-HEALTH-002")
def test_health_is_open_and_minimal(samples: Registry, journal: Journal, transport: str) -> None:
    with serving(samples, transport=transport) as address:
        response = httpx2.get(address / "health")
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        health = response.json()
        assert list(health) == ["status", "module_count", "uptime_seconds"]
        assert health["status"] == "ok"
        assert health["module_count"] == len(samples.list())
        assert isinstance(health["uptime_seconds"], float)
        assert 0 <= health["uptime_seconds"] < DEADLINE
        samples.register("one.more", Returns(journal, {}))
        wait_until(lambda: httpx2.get(address / "health").json()["module_count"] == len(samples.list()))
        later = httpx2.get(address / "health", headers={"Authorization": "Bearer wrong", "Cookie": "a=b"})
        assert later.status_code == 200
        assert later.json()["uptime_seconds"] >= health["uptime_seconds"]
        assert httpx2.head(address / "health").status_code == 200
        assert httpx2.post(address / "health", json={}).status_code == 405


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
@pytest.mark.requirement("FR-SERVER-002", "FR-SERVER-003", "FR-TRANSPORT-003")
def test_a_port_in_use_is_an_os_error(samples: Registry, transport: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        serve(samples, transport=transport, port=taken.getsockname()[1])


@pytest.mark.requirement("FR-CLI-008", "FR-CLI-004")
def test_a_port_in_use_is_exit_code_2_of_the_cli(tmp_path: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = cli_command(tmp_path, "--transport", "streamable-http", "--port", port)
        done = subprocess.run(command, capture_output=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert b"Error: " in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.requirement("FR-SERVER-003", "FR-TRANSPORT-004", "NFR-COMPAT-004")
async def test_old_sse_clients_work_and_the_operator_is_warned(
    samples: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(samples, transport="sse") as address:
        async with Client(sse_client(address / "sse"), mode="legacy") as one:
            async with Client(sse_client(address / "sse"), mode="legacy") as two:
                assert (await two.call_tool("math.add", {"a": 1, "b": 2})).structured_content == {"sum": 3}
            seen: list[float] = []

            async def heard(progress: float, total: float | None, message: str | None) -> None:
                seen.append(progress)

            await one.call_tool("progress.awaited", {"values": [1, 2]}, progress_callback=heard)
            assert seen == [1, 2]
        assert httpx2.post(address / "mcp", json={}).status_code == 404
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert "SSE transport is deprecated; use streamable-http instead" in warnings


@pytest.mark.requirement("FR-CLI-001", "FR-CLI-003", "FR-CLI-004", "FR-CLI-005", "FR-CLI-006", "FR-LOG-001")
async def test_the_command_line_serves_http_with_every_flag(tmp_path: Any) -> None:
    (tmp_path / "ext").mkdir()
    (tmp_path / "ext" / "greet.py").write_text(
        "from pydantic import BaseModel\n"
        "class In(BaseModel):\n    name: str\n"
        "class Out(BaseModel):\n    text: str\n"
        "class Greet:\n"
        "    description = 'Greets'\n    input_schema = In\n    output_schema = Out\n    tags = ['nice']\n"
        "    def execute(self, inputs, context):\n        return {'text': 'Hello ' + inputs['name']}\n"
    )
    port = free_port()
    flags = ["--transport", "streamable-http", "--host", "127.0.0.1", "--port", str(port), "--name", "greeter"]
    flags += ["--version", "7.0", "--log-level", "DEBUG", "--tag", "nice", "--prefix", "gre", "--explorer"]
    flags += ["--explorer-prefix", "/look", "--allow-execute", "--allowed-host", "tools.example", "--dynamic"]
    command = cli_command(tmp_path / "ext", *flags)
    with (tmp_path / "stderr").open("wb") as errors, http_child(command, port, stderr=errors) as (process, address):
        async with Client(address.mcp, mode="legacy") as client:
            assert client.server_info is not None
            assert (client.server_info.name, client.server_info.version) == ("greeter", "7.0")
            result = await client.call_tool("greet", {"name": "you"})
            assert result.structured_content == {"text": "Hello you"}
        called = httpx2.post(address / "look/tools/greet/call", json={"name": "me"})
        assert called.json() == {"result": {"text": "Hello me"}}
        assert httpx2.get(address / "health", headers={"Host": "tools.example"}).status_code == 200
        process.terminate()
        assert process.wait(DEADLINE) == 0
    log = (tmp_path / "stderr").read_text()
    assert "apcore-mcp server started: 1 tools registered, transport=streamable-http" in log
    assert "Tool call: greet" in log


@pytest.mark.requirement("FR-SERVER-005")
def test_serve_can_run_outside_the_main_thread(samples: Registry, journal: Journal) -> None:
    """Signals belong to whoever owns the main thread; the server just serves."""
    script = (
        "import threading, sys, pathlib, os, signal\n"
        "from apcore_mcp import serve\n"
        "from e2e.modules import Journal, sample_registry\n"
        "registry = sample_registry(Journal(pathlib.Path(sys.argv[2])))\n"
        "options = dict(transport='streamable-http', port=int(sys.argv[1]))\n"
        "threading.Thread(target=serve, args=(registry,), kwargs=options, daemon=True).start()\n"
        "signal.sigwait([signal.SIGTERM])\n"
    )
    port = free_port()
    command = python("-c", script, str(port), str(journal.path))
    with http_child(command, port) as (process, address):
        assert is_healthy(address)
        process.terminate()
        process.wait(DEADLINE)
