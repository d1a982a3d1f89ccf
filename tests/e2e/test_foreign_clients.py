"""Clients that others wrote: FastMCP's, the MCP Inspector's, and those of the TypeScript SDK."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from apcore import Registry
from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport

from e2e.modules import Journal
from e2e.node_tools import INSPECTOR, PACKAGES, node, require
from e2e.servers import PYTHON, Address, server_command, serving

TYPESCRIPT = Path(__file__).with_name("typescript_client.mjs")


async def use_fastmcp(client: Any, samples: Registry) -> None:
    seen: list[float] = []

    async def progress(value: float, total: float | None, message: str | None) -> None:
        seen.append(value)

    async with client:
        assert [tool.name for tool in await client.list_tools()] == samples.list()
        result = await client.call_tool("math.add", {"a": 1, "b": 2})
        assert result.structured_content == {"sum": 3}
        await client.call_tool("progress.awaited", {"values": [1, 2]}, progress_handler=progress)
        asked = await client.call_tool("ask.twice", {"key": "fast"})
        assert json.loads(asked.content[0].text) == {"answers": [{"ok": True}, {"ok": True}]}
        failed = await client.call_tool("fail.leak", raise_on_error=False)
        assert failed.is_error
        assert failed.content[0].text == "Internal error occurred"
        assert "docs://math.add" in [str(resource.uri) for resource in await client.list_resources()]
    assert seen == [1, 2]


async def accept(message: str, response_type: Any, params: Any, context: Any) -> Any:
    return {"ok": True}


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.requirement("NFR-COMPAT-004", "FR-EXT-001", "FR-EXT-002")
async def test_the_fastmcp_client_lists_calls_reports_and_asks(
    samples: Registry, journal: Journal, transport: str, tmp_path: Path
) -> None:
    if transport == "http":
        with serving(samples) as address:
            await use_fastmcp(FastClient(address.mcp, elicitation_handler=accept), samples)
    else:
        command = server_command(journal)
        stdio = StdioTransport(command[0], command[1:], env=os.environ | PYTHON, log_file=tmp_path / "stderr")
        await use_fastmcp(FastClient(stdio, elicitation_handler=accept), samples)
    assert journal.lines.count("run fast") == 1


@pytest.mark.node
@pytest.mark.parametrize("line", ["sdk1", "client2"])
@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.requirement("NFR-COMPAT-004", "FR-EXT-001", "FR-EXT-002")
def test_the_typescript_clients_list_call_report_and_ask(
    samples: Registry, journal: Journal, line: str, transport: str
) -> None:
    require(PACKAGES / "sdk", PACKAGES / "client")
    if transport == "http":
        with serving(samples) as address:
            done = node(TYPESCRIPT, line, address.mcp)
    else:
        with_paths = ["/usr/bin/env", *(f"{key}={value}" for key, value in PYTHON.items())]
        done = node(TYPESCRIPT, line, *with_paths, *server_command(journal))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "tools": samples.list(),
        "sum": {"sum": 3},
        "progress": [[1, "at 1"], [2, "at 2"]],
        "asked": {"answers": [{"ok": True}, {"ok": True}]},
        "failed": "Internal error occurred",
        "resources": ["docs://math.add", "docs://secret.vault", "docs://text.shout"],
    }
    assert journal.lines.count("run typescript") == 1


def inspect(*arguments: str) -> Any:
    done = node(INSPECTOR, "--cli", *arguments, "--format", "json")
    return done, json.loads(done.stdout) if done.stdout.strip().startswith(("{", "[")) else None


@pytest.mark.node
@pytest.mark.parametrize("era", [[], ["--protocol-era", "modern"]], ids=["default", "modern"])
@pytest.mark.requirement("NFR-COMPAT-004", "FR-SERVER-002")
def test_the_inspector_works_over_http(address: Address, samples: Registry, era: list[str]) -> None:
    require(INSPECTOR)
    done, listed = inspect(address.mcp, "--transport", "http", *era, "--method", "tools/list")
    assert done.returncode == 0, done.stderr
    assert [tool["name"] for tool in _result(listed)["tools"]] == samples.list()
    call = ["--method", "tools/call", "--tool-name", "math.add", "--tool-arg", "a=1", "b=2"]
    done, called = inspect(address.mcp, "--transport", "http", *era, *call)
    assert done.returncode == 0, done.stderr
    assert _result(called)["structuredContent"] == {"sum": 3}
    done, _ = inspect(address.mcp, "--transport", "http", *era, "--method", "tools/call", "--tool-name", "no.such")
    assert done.returncode != 0


@pytest.mark.node
@pytest.mark.requirement("NFR-COMPAT-004", "FR-TRANSPORT-001")
def test_the_inspector_works_over_stdio(journal: Journal, samples: Registry, tmp_path: Path) -> None:
    require(INSPECTOR)
    # The Inspector takes the first words as the server's command line and hands it a minimal environment.
    script = tmp_path / "server.py"
    command = server_command(journal)
    script.write_text(f"import os\nos.environ.update({PYTHON!r})\nos.execv({command[0]!r}, {command!r})\n")
    call = ["--method", "tools/call", "--tool-name", "math.add", "--tool-arg", "a=1", "b=2"]
    done, called = inspect(sys.executable, str(script), *call)
    assert done.returncode == 0, done.stderr
    assert _result(called)["structuredContent"] == {"sum": 3}


def _result(answer: Any) -> Any:
    return answer.get("result", answer)
