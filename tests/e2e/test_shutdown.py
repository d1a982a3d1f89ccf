"""Signals, the end of stdin, and modules that misbehave while the server stops or talks over stdio."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from e2e.modules import Journal
from e2e.servers import PYTHON, Address, child, cli_command, http_child, server_command
from e2e.wire import ERAS, HANDSHAKE, JSON_OR_STREAM, MODERN, call_body, modern_body, modern_headers
from mcp_text import text_of
from ports import free_port
from waiting import DEADLINE, wait_until
from warm.command import python

SIGNALS = [signal.SIGINT, signal.SIGTERM]


class Pipe:
    """A stdio server spoken to line by line, in either era."""

    def __init__(self, process: subprocess.Popen[bytes], era: str) -> None:
        self.process = process
        self.era = era
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        if era == "legacy":
            info = {"name": "pipe", "version": "1"}
            self.send("initialize", {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": info}, id=0)
            assert self.receive()["id"] == 0
            self.send("notifications/initialized")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def send(self, method: str, params: dict[str, Any] | None = None, id: Any = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if self.era == MODERN:
            message["params"] = modern_body(method, params)["params"]
        elif params is not None:
            message["params"] = params
        if id is not None:
            message["id"] = id
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def call(self, name: str, id: Any, **arguments: Any) -> None:
        self.send("tools/call", {"name": name, "arguments": arguments}, id)

    def receive(self, within: float = DEADLINE) -> Any:
        return json.loads(self.lines.get(timeout=within))

    def told(self) -> Any:
        """The next message."""
        return self.receive()

    def rest(self) -> list[Any]:
        """All that comes until the server closes its output; every line must be JSON."""
        self.reader.join(DEADLINE)
        assert not self.reader.is_alive()
        return [json.loads(line) for line in list(self.lines.queue)]


def with_budget(seconds: float, command: list[str]) -> list[str]:
    """The same `python -m` with a budget that a test can wait for, or cannot."""
    module, *rest = command[command.index("-m") + 1 :]
    patched = (
        f"import runpy, mcp_serve.signals; mcp_serve.signals.GRACE = {seconds}; "
        f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    )
    return python("-c", patched, *rest)


@contextlib.contextmanager
def piped(command: list[str], era: str = MODERN, **keywords: Any) -> Iterator[Pipe]:
    with child(command, **keywords) as process:
        try:
            yield Pipe(process, era)
        finally:
            process.kill() if process.poll() is None else None


@pytest.mark.parametrize(("number", "era"), list(zip(SIGNALS, ERAS, strict=True)))
@pytest.mark.requirement("NFR-REL-001", "FR-SERVER-005", "FR-TRANSPORT-001")
def test_stdio_calls_in_flight_finish_after_a_signal_and_their_answers_arrive(
    journal: Journal, number: int, era: str
) -> None:
    with piped(server_command(journal), era) as pipe:
        for id in range(1, 6):
            pipe.call("work.nap" if id % 2 else "work.nap_sync", id, key=str(id), seconds=1.0)
        wait_until(lambda: sum(line.startswith("started") for line in journal.lines) == 5)
        pipe.process.send_signal(number)
        assert pipe.process.wait(DEADLINE) == 0
        answers = {answer["id"]: json.loads(answer["result"]["content"][0]["text"]) for answer in pipe.rest()}
    assert answers == {id: {"key": str(id)} for id in range(1, 6)}
    assert journal.lines[0] == "startup"
    assert journal.lines[-2:] == ["shutdown", "returned"]


@pytest.mark.anyio
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.requirement("NFR-REL-001", "FR-SERVER-005", "FR-SERVER-002")
async def test_http_calls_in_flight_finish_after_a_signal_and_their_answers_arrive(
    journal: Journal, number: int
) -> None:
    port = free_port()
    command = server_command(journal, transport="streamable-http", port=port)
    answers: list[Any] = []
    with http_child(command, port) as (process, address):

        async def nap(era: str, key: str) -> None:
            async with Client(address.mcp, mode=era) as client:
                await client.list_tools()  # now, or the client asks for the output schema when the server is gone
                result = await client.call_tool("work.nap", {"key": key, "seconds": 1.0})
                answers.append(json.loads(text_of(result))["key"])

        async with anyio.create_task_group() as group:
            for count, era in enumerate([*ERAS, *ERAS, MODERN]):
                group.start_soon(nap, era, str(count))
            with anyio.fail_after(DEADLINE):
                while sum(line.startswith("started") for line in journal.lines) < 5:
                    await anyio.sleep(0.01)
            process.send_signal(number)
        assert sorted(answers) == ["0", "1", "2", "3", "4"]
        assert process.wait(DEADLINE) == 0
    assert journal.lines[-2:] == ["shutdown", "returned"]


@contextlib.contextmanager
def holding(
    journal: Journal,
    transport: str,
    module: str = "work.hold",
    arguments: dict[str, Any] | None = None,
    budget: float = 5.0,
    stderr: Any = None,
) -> Iterator[tuple[subprocess.Popen[bytes], "Pipe | Held"]]:
    """A server of its own, and the way to it, with a call under way that ends only when it is told to."""
    port = free_port()
    command = with_budget(budget, server_command(journal, transport=transport, port=port))
    arguments = arguments or {"key": "long"}
    with contextlib.ExitStack() as stack:
        peer: Pipe | Held
        if transport == "stdio":
            peer = stack.enter_context(piped(command, stderr=stderr))
            process = peer.process
            peer.call(module, 1, **arguments)
        else:
            process, address = stack.enter_context(http_child(command, port, stderr=stderr))
            peer = Held(address, module, arguments)
            stack.callback(peer.join)
            stack.callback(process.kill)
        wait_until(lambda: "started long" in journal)
        yield process, peer


@pytest.mark.parametrize("module", ["work.hold", "work.nap", "work.forever"])
@pytest.mark.parametrize("transport", ["streamable-http", "stdio"])
@pytest.mark.requirement("NFR-REL-001", "FR-CLI-008", "FR-SERVER-005")
def test_a_call_that_outlasts_the_budget_is_cut_off_and_told_so_and_serve_returns_quietly(
    journal: Journal, transport: str, module: str, tmp_path: Path
) -> None:
    arguments = {"key": "long", "seconds": 3600.0}
    errors = tmp_path / "stderr"
    with errors.open("wb") as stderr, holding(journal, transport, module, arguments, 1.5, stderr) as (process, peer):
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: "returned" in journal)  # a thread that nobody can stop keeps only the process
        assert "may have had its effect" in json.dumps(peer.told())
    assert "shutdown" in journal
    assert ("cancelled long" in journal) is (module == "work.hold"), "only this one looks at its token"
    assert errors.read_text() == ""


class Held:
    """A call by HTTP, waited for in a thread."""

    def __init__(self, address: Address, module: str, arguments: dict[str, Any]) -> None:
        self.address = address
        self._answers: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._wait, args=(module, arguments))
        self._thread.start()

    def told(self) -> str:
        """The answer, once it is there."""
        return self._answers.get(timeout=DEADLINE)

    def join(self) -> None:
        self._thread.join(DEADLINE)

    def _wait(self, module: str, arguments: dict[str, Any]) -> None:
        with contextlib.suppress(httpx2.HTTPError):
            body, headers = call_body(module, arguments), modern_headers("tools/call", module)
            self._answers.put(httpx2.post(self.address.mcp, json=body, headers=headers, timeout=DEADLINE).text)


@pytest.mark.requirement("NFR-REL-001")
def test_open_streams_do_not_hold_the_server(journal: Journal, tmp_path: Path) -> None:
    port = free_port()
    command = with_budget(2 * DEADLINE, server_command(journal, transport="streamable-http", port=port))
    errors = tmp_path / "stderr"
    with (
        errors.open("wb") as stderr,
        http_child(command, port, stderr=stderr) as (process, address),
        httpx2.Client(timeout=DEADLINE) as client,
    ):
        listen = modern_body("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        info = {"name": "raw", "version": "1"}
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": info}
        opened = client.post(
            address.mcp,
            json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
            headers=JSON_OR_STREAM,
        )
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": HANDSHAKE}
        with (
            client.stream(
                "POST", address.mcp, json=listen, headers=modern_headers("subscriptions/listen")
            ) as listening,
            client.stream("GET", address.mcp, headers={"Accept": "text/event-stream", **session}) as getting,
        ):
            assert [stream.status_code for stream in (listening, getting)] == [200, 200]
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE) == 0
    assert journal.lines[-2:] == ["shutdown", "returned"]
    assert errors.read_text() == ""


@pytest.mark.parametrize("transport", ["streamable-http", "stdio"])
@pytest.mark.requirement("NFR-REL-001")
def test_a_second_signal_ends_at_once(journal: Journal, transport: str) -> None:
    with holding(journal, transport, budget=2 * DEADLINE) as (process, peer), httpx2.Client(timeout=DEADLINE) as kept:
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: "shutting down" in added(peer, kept))
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) != 0
    assert "cancelled long" not in journal


def added(peer: Pipe | Held, client: httpx2.Client) -> str:
    """What a call answers that comes late."""
    if isinstance(peer, Pipe):
        peer.call("math.add", 2, a=1, b=1)
        return json.dumps(peer.receive())
    body, headers = call_body("math.add", {"a": 1, "b": 1}), modern_headers("tools/call", "math.add")
    return client.post(peer.address.mcp, json=body, headers=headers).text


@pytest.mark.parametrize("transport", ["streamable-http", "stdio"])
@pytest.mark.requirement("NFR-REL-001")
def test_calls_that_arrive_while_stopping_are_refused_clearly(journal: Journal, transport: str) -> None:
    with holding(journal, transport, budget=2 * DEADLINE) as (process, peer), httpx2.Client(timeout=DEADLINE) as kept:
        assert '"sum' in added(peer, kept)
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: "shutting down" in added(peer, kept))
        journal.write("release long")
        assert '"key' in json.dumps(peer.told())
        assert process.wait(DEADLINE) == 0


EXTENSION = """
import threading
from pydantic import BaseModel

print("printed while it was imported")


class In(BaseModel):
    key: str


class Out(BaseModel):
    key: str


class {name}:
    description = "An extension"
    input_schema = In
    output_schema = Out

    def execute(self, inputs, context):
        {body}
        return {{"key": inputs["key"]}}
"""


@pytest.fixture
def extensions(tmp_path: Path) -> Path:
    folder = tmp_path / "extensions" / "tools"
    folder.mkdir(parents=True)
    (folder / "echo.py").write_text(EXTENSION.format(name="Echo", body="pass"))
    stuck = f"open({str(tmp_path / 'stuck')!r}, 'w').close(); threading.Event().wait()"
    (folder / "stuck.py").write_text(EXTENSION.format(name="Stuck", body=stuck))
    return folder.parent


@pytest.mark.requirement("FR-CLI-008", "FR-CLI-001", "NFR-REL-001")
def test_a_sync_module_that_never_returns_does_not_keep_the_cli_alive(extensions: Path, tmp_path: Path) -> None:
    with piped(with_budget(0.3, cli_command(extensions))) as pipe:
        pipe.call("tools.stuck", 1, key="k")
        wait_until((tmp_path / "stuck").exists)
        pipe.process.send_signal(signal.SIGINT)
        assert pipe.process.wait(DEADLINE) == 0


@pytest.mark.requirement("FR-CLI-008", "FR-CLI-003", "FR-CLI-004", "NFR-REL-001")
def test_a_sync_module_that_never_returns_does_not_keep_the_http_cli_alive(extensions: Path, tmp_path: Path) -> None:
    port = free_port()
    command = with_budget(0.3, cli_command(extensions, "--transport", "streamable-http", "--port", str(port)))
    body, headers = call_body("tools.stuck", {"key": "k"}), modern_headers("tools/call", "tools.stuck")
    with http_child(command, port) as (process, address), httpx2.Client(timeout=0.5) as client:
        with pytest.raises(httpx2.TimeoutException):
            client.post(address.mcp, json=body, headers=headers)
        wait_until((tmp_path / "stuck").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0


PROGRAM = """
import asyncio, pathlib, sys, threading
from apcore import Registry, module
from apcore_mcp import async_serve, serve

registry = Registry()

@module(id="wait.for_ever", registry=registry)
def wait_for_ever() -> str:
    "Never returns."
    pathlib.Path(sys.argv[1]).touch()
    threading.Event().wait()

{serve}
print("returned", file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize("serve", ["serve(registry)", "asyncio.run(async_serve(registry))"])
@pytest.mark.requirement("NFR-REL-001", "FR-EXEC-004")
def test_a_sync_module_that_never_returns_does_not_keep_the_program_alive_that_serves_it(
    tmp_path: Path, serve: str
) -> None:
    command = [sys.executable, "-c", PROGRAM.format(serve=serve), str(tmp_path / "stuck")]  # its own end, not a fork's
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        pipe = Pipe(process, MODERN)
        pipe.call("wait.for_ever", 1)
        wait_until((tmp_path / "stuck").exists)
        assert process.stdin is not None
        process.stdin.close()
        try:
            assert process.wait(DEADLINE) == 0
        finally:
            process.kill()
        assert process.stderr is not None
        assert b"returned" in process.stderr.read()


@pytest.mark.requirement("FR-CLI-008", "NFR-REL-001")
def test_an_async_module_that_blocks_the_loop_does_not_keep_the_cli_alive(extensions: Path, tmp_path: Path) -> None:
    blocks = EXTENSION.replace("def execute", "async def execute")
    begun = f"open({str(tmp_path / 'blocked')!r}, 'w').close(); threading.Event().wait()"
    (extensions / "tools" / "blocked.py").write_text(blocks.format(name="Blocked", body=begun))
    with piped(with_budget(0.5, cli_command(extensions))) as pipe:
        pipe.call("tools.blocked", 1, key="k")
        wait_until((tmp_path / "blocked").exists)
        pipe.process.send_signal(signal.SIGTERM)
        assert pipe.process.wait(DEADLINE) == 0


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-TRANSPORT-002", "FR-CLI-008", "FR-SERVER-005", "FR-SERVER-001")
def test_the_end_of_stdin_ends_the_server_with_code_0(extensions: Path, era: str) -> None:
    with piped(cli_command(extensions), era, stderr=subprocess.PIPE) as pipe:
        pipe.call("tools.echo", 1, key="k")
        assert pipe.receive()["id"] == 1
        assert pipe.process.stdin is not None
        pipe.process.stdin.close()
        assert pipe.process.wait(DEADLINE) == 0
        assert pipe.process.stderr is not None
        assert b"Traceback" not in pipe.process.stderr.read()


@pytest.mark.requirement("FR-TRANSPORT-002", "FR-CLI-008")
def test_stdin_that_is_empty_from_the_start_ends_the_server_with_code_0(extensions: Path) -> None:
    done = subprocess.run(cli_command(extensions), stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE)
    assert done.returncode == 0
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr


@pytest.mark.requirement("FR-TRANSPORT-002")
def test_a_parent_that_reads_no_more_does_not_hang_the_server(journal: Journal) -> None:
    with child(server_command(journal)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        for id in range(1, 20):
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(call_body("math.add", {"a": 1, "b": 2}, id)).encode() + b"\n")
                process.stdin.flush()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.wait(DEADLINE)
    assert "shutdown" in journal


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("FR-TRANSPORT-001")
def test_whatever_a_module_prints_stays_off_the_wire(journal: Journal, era: str) -> None:
    with piped(server_command(journal), era, stderr=subprocess.PIPE) as pipe:
        for id in range(1, 4):
            pipe.call("loud.prints", id)
        answers = {}
        for _ in range(3):
            answer = pipe.receive()
            answers[answer["id"]] = json.loads(answer["result"]["content"][0]["text"])
        assert answers == {key: {"printed": True, "stdin": ""} for key in (1, 2, 3)}
        assert pipe.process.stdin is not None
        pipe.process.stdin.close()
        assert pipe.process.wait(DEADLINE) == 0
        assert pipe.rest() == []
        assert pipe.process.stderr is not None
        assert b"from a child" in pipe.process.stderr.read()


@pytest.mark.requirement("FR-TRANSPORT-001", "FR-CLI-001")
def test_what_a_module_prints_while_it_is_imported_stays_off_the_wire(extensions: Path) -> None:
    buffered = os.environ | PYTHON | {"PYTHONUNBUFFERED": ""}
    with piped(cli_command(extensions), env=buffered) as pipe:
        pipe.call("tools.echo", 1, key="k")
        assert pipe.receive()["result"]["structuredContent"] == {"key": "k"}
        assert pipe.process.stdin is not None
        pipe.process.stdin.close()
        assert pipe.process.wait(DEADLINE) == 0
        assert pipe.rest() == []


@pytest.mark.requirement("FR-TRANSPORT-001")
def test_garbage_on_stdin_does_not_end_the_server(journal: Journal) -> None:
    with piped(server_command(journal)) as pipe:
        pipe.call("math.add", 1, a=1, b=1)
        assert pipe.receive()["id"] == 1
        for garbage in (b"\n", b"not json\n", b"\xff\xfe\n", b"[1,2]\n", b"[" * 100_000 + b"\n", b"{}\n", b"null\n"):
            pipe.write(garbage)
        pipe.call("math.add", 2, a=2, b=2)
        while (answer := pipe.receive()).get("id") != 2:
            assert "error" in answer
        assert answer["result"]["structuredContent"] == {"sum": 4}


@pytest.mark.requirement("FR-TRANSPORT-001", "FR-TRANSPORT-002")
def test_stderr_that_nobody_reads_blocks_neither_calls_nor_the_end(journal: Journal) -> None:
    with piped(server_command(journal, log_level="DEBUG"), stderr=subprocess.PIPE) as pipe:
        for id in range(1, 400):
            pipe.call("fail.leak", id)  # a traceback each: far more than a pipe holds
            if id % 20 == 0:
                pipe.call("math.add", 1000 + id, a=id, b=0)
        seen = 0
        while seen < 19:
            answer = pipe.receive()
            seen += answer["id"] > 1000
        pipe.process.send_signal(signal.SIGTERM)
        assert pipe.process.wait(DEADLINE) == 0


@pytest.mark.requirement("FR-TRANSPORT-001", "NFR-PORT-001")
def test_stderr_which_is_the_parents_too_still_waits_for_its_reader(journal: Journal) -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as errors, open(writing, "wb", buffering=0) as shared:
        with piped(server_command(journal, log_level="DEBUG"), stderr=shared) as pipe:
            pipe.call("fail.leak", 1)
            pipe.receive()
            assert os.get_blocking(shared.fileno())
            assert pipe.process.stdin is not None
            pipe.process.stdin.close()
            assert pipe.process.wait(DEADLINE) == 0
        assert os.get_blocking(shared.fileno())
        shared.close()
        assert b"Tool call error: fail.leak" in errors.read(), "what was logged is out before the end"


@pytest.mark.requirement("NFR-REL-001", "FR-TRANSPORT-002")
def test_a_parent_that_does_not_read_answers_cannot_hold_the_server(journal: Journal) -> None:
    command = with_budget(1.5, server_command(journal))
    with child(command) as process:
        assert process.stdin is not None
        for id in range(300):  # a kilobyte each: more than a pipe holds
            message = {"name": "math.add", "arguments": {"a": "x" * 1000, "b": 1}}
            process.stdin.write(json.dumps(modern_body("tools/call", message, id)).encode() + b"\n")
        message = {"name": "work.hold", "arguments": {"key": "last"}}
        process.stdin.write(json.dumps(modern_body("tools/call", message, 300)).encode() + b"\n")
        process.stdin.flush()
        wait_until(lambda: "started last" in journal)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
    assert "returned" in journal


@pytest.mark.requirement("FR-TRANSPORT-005", "FR-EXPLORER-001")
def test_stdio_ignores_the_network_options_and_the_explorer(journal: Journal) -> None:
    with piped(server_command(journal, transport="stdio", host="", port=0, explorer=True, allow_execute=True)) as pipe:
        pipe.call("math.add", 1, a=1, b=2)
        assert pipe.receive()["result"]["structuredContent"] == {"sum": 3}


@pytest.mark.cold
@pytest.mark.anyio
@pytest.mark.requirement("NFR-COMPAT-004", "FR-TRANSPORT-001", "FR-CLI-001")
async def test_a_desktop_style_configuration_starts_the_server(extensions: Path, tmp_path: Path) -> None:
    """The shape that Claude Desktop, Cursor and VS Code keep in their configuration files."""
    configuration = tmp_path / "claude_desktop_config.json"
    script = Path(sys.executable).with_name("apcore-mcp")
    entry = {"command": str(script), "args": ["--extensions-dir", str(extensions), "--name", "my-tools"]}
    configuration.write_text(json.dumps({"mcpServers": {"apcore": entry}}))
    for parameters in json.loads(configuration.read_text())["mcpServers"].values():
        server = StdioServerParameters(**parameters, env={"PYTHONPATH": os.environ.get("PYTHONPATH", "")})
        with (tmp_path / "stderr").open("w") as errors:
            async with Client(stdio_client(server, errlog=errors), mode="legacy") as client:
                assert client.server_info is not None
                assert client.server_info.name == "my-tools"
                assert [tool.name for tool in (await client.list_tools()).tools] == ["tools.echo", "tools.stuck"]
                result = await client.call_tool("tools.echo", {"key": "k"})
    assert result.structured_content == {"key": "k"}
