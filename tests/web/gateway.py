"""A gateway as its users have it: `toolgrove serve` in a process of its own, spoken to with tokens over HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from e2e.servers import Address, child
from e2e.wire import MODERN, call_body, messages, modern_headers
from mcp_text import told_on_wire
from toolgrove.store.state import OPERATOR
from waiting import DEADLINE
from warm.command import Process, python

BUDGET = 30.0  # servers start on a machine that is busy with other tests

AGENTS: dict[str, Any] = {
    "researcher": {"description": "Looks things up.", "role": "reader", "tools": ["get_*", "search", "select_nodes"]},
    "editor": {"description": "Writes.", "role": "editor", "tools": ["*"]},
}
PROJECT: dict[str, Any] = {"workspace": {"payloadTypes": {"Note": {}}}, "agents": AGENTS, "toolBudget": 16_000}


def toolgrove(*arguments: str) -> list[str]:
    """A command line of ours."""
    return python("-m", "toolgrove", *arguments)


@dataclass(kw_only=True)
class Gateway:
    """A process that serves, its addresses and its tokens."""

    process: Process
    file: Path
    errors: Path
    console: str
    agents: dict[str, str]
    tokens: dict[str, str] = field(repr=False)

    @property
    def base(self) -> str:
        return self.console.partition("/console")[0]

    @property
    def port(self) -> int:
        return int(self.base.rpartition(":")[2])

    @property
    def log(self) -> str:
        """What it wrote to stderr."""
        return self.errors.read_text("utf-8")

    def address(self, agent: str) -> Address:
        """Where `e2e.wire` finds an agent's endpoint."""
        return Agent(port=self.port, agent=agent)

    def headers(self, holder: str | None = None) -> dict[str, str]:
        token = self.tokens.get(OPERATOR if holder == "operator" else holder or "")
        return {} if token is None else {"Authorization": f"Bearer {token}"}

    def http(self, holder: str | None = None) -> httpx2.AsyncClient:
        """A client with the token of an agent, of the operator, or with none."""
        # Without the TLS context, which nobody needs here and takes long to make.
        return httpx2.AsyncClient(base_url=self.base, headers=self.headers(holder), timeout=DEADLINE, verify=False)

    @contextlib.asynccontextmanager
    async def connect(
        self, agent: str, era: str = MODERN, holder: str | None = None, **callbacks: Any
    ) -> AsyncIterator[Client]:
        """The `mcp` client at an agent's endpoint."""
        keywords: Any = {"mode": era, "read_timeout_seconds": DEADLINE, "cache": None} | callbacks
        async with self.http(holder or agent) as http:
            transport = streamable_http_client(self.agents[agent], http_client=http)
            async with Client(transport, **keywords) as client:
                yield client

    def write(self, config: dict[str, Any] | str) -> None:
        """Another project file, whole from one moment to the next."""
        text = config if isinstance(config, str) else json.dumps(config)
        beside = self.file.with_suffix(".new")
        beside.write_text(text, "utf-8")
        beside.replace(self.file)

    def stop(self) -> int:
        """End it gently."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE)


@dataclass(frozen=True, kw_only=True)
class Agent(Address):
    agent: str

    @property
    def mcp(self) -> str:
        return f"{self.base}/agents/{self.agent}/mcp"


@contextlib.contextmanager
def started(
    folder: Path,
    config: dict[str, Any] | str = PROJECT,
    *flags: str,
    environ: dict[str, str] | None = None,
    cold: bool = False,
) -> Iterator[Gateway]:
    """A gateway, ready; the test ends it, or it is killed. A cold one shares no Python with others."""
    folder.mkdir(parents=True, exist_ok=True)
    file, errors = folder / "toolgrove.yaml", folder / "stderr"
    if not isinstance(config, str) and "mcpServers" in config:
        config = {"startupBudget": BUDGET, **config}
    if not file.exists():
        file.write_text(config if isinstance(config, str) else json.dumps(config), "utf-8")
    command = toolgrove("serve", str(file), "--port", "0", "--json", *flags)
    if cold:
        command = [sys.executable, *command[command.index("-m") :]]
    with errors.open("ab") as told:
        surroundings = {"env": os.environ | (environ or {}), "stdin": subprocess.DEVNULL, "stderr": told}
        with child(command, **surroundings) as process:
            form = _greeting(process, errors)
            yield Gateway(process=process, file=file, errors=errors, **form)


@contextlib.contextmanager
def serving(
    folder: Path,
    config: dict[str, Any] | str = PROJECT,
    *flags: str,
    environ: dict[str, str] | None = None,
    loud: bool = False,
) -> Iterator[Gateway]:
    """A gateway that has to survive the test: it ends gently, and nothing surprised it unless it may be loud."""
    with started(folder, config, *flags, environ=environ) as gateway:
        yield gateway
        assert gateway.process.poll() is None, gateway.log[-4000:]
        assert gateway.stop() == 0, gateway.log[-4000:]
    assert loud or "Traceback" not in gateway.log, gateway.log[-4000:]


def _greeting(process: Process, errors: Path) -> dict[str, Any]:
    assert process.stdout is not None
    text = b""
    for line in process.stdout:
        text += line
        if line.rstrip() == b"}":
            form: dict[str, Any] = json.loads(text)
            assert "error" not in form, form
            return form
    raise AssertionError(f"ended with {process.wait(DEADLINE)}: {text.decode()} {errors.read_text()}")


async def call(
    http: httpx2.AsyncClient, agent: str, tool: str, arguments: Any = None, *, id: Any = 1, **params: Any
) -> dict[str, Any]:
    """One call of 2026-07-28 by hand; what the tool structured, else its result, our refusal, or the JSON-RPC error."""
    body = call_body(tool, arguments, id, **params)
    response = await http.post(f"/agents/{agent}/mcp", json=body, headers=modern_headers("tools/call", tool))
    message = messages(response)[-1]
    assert message.get("id") == id, message
    result = message.get("result", message)
    return told_on_wire(result)


def events(text: str) -> list[dict[str, Any]]:
    """The server-sent events of a run, read as strictly as a browser reads them."""
    found = []
    for block in text.split("\n\n")[:-1]:
        kind, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert kind == f"event: {event['type']}"
        found.append(event)
    return found
