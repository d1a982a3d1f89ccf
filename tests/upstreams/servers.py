"""The servers as an operator would write them, and a grove around them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio

from e2e.node_tools import NODE, PACKAGES
from ports import free_port
from toolgrove import Agent, Config, Grove

EVERYTHING = PACKAGES / "server-everything" / "dist" / "index.js"
FILESYSTEM = PACKAGES / "server-filesystem" / "dist" / "index.js"
DEADLINE = 90.0
BUDGET = 30.0  # Node and a Python with pydantic take seconds to start on a busy machine


def time_server(protocol: str = "auto") -> dict[str, Any]:
    return {
        "command": sys.executable,
        "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"],
        "protocol": protocol,
        "reads": ["*"],
    }


def git_server(repository: Path, protocol: str = "auto") -> dict[str, Any]:
    args = ["-m", "mcp_server_git", "-r", str(repository)]
    return {"command": sys.executable, "args": args, "protocol": protocol, "trustHints": True}


def everything() -> dict[str, Any]:
    return {"command": str(NODE), "args": [str(EVERYTHING), "stdio"], "reads": ["*"]}


def filesystem(folder: Path) -> dict[str, Any]:
    return {"command": str(NODE), "args": [str(FILESYSTEM), str(folder)], "trustHints": True}


@contextmanager
def everything_over_http() -> Iterator[str]:
    """The address of the same server over Streamable HTTP."""
    port = free_port()
    environment = os.environ | {"PORT": str(port)}
    command = [str(NODE), str(EVERYTHING), "streamableHttp"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "listening" in process.stderr.readline()
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@asynccontextmanager
async def project(servers: dict[str, Any], *, state: Path | None = None, **agents: Any) -> AsyncIterator[Grove]:
    """A grove over the servers with an editor, a reader, and whoever else is named; `state` is kept for the next."""
    usual = {"editor": {"role": "editor"}, "reader": {"role": "reader"}}
    form = {name: {"tools": ["*"], **agent} for name, agent in {**usual, **agents}.items()}
    kept = {} if state is None else {"state": str(state)}
    config = Config.model_validate({"mcpServers": servers, "agents": form, "startupBudget": BUDGET, **kept})
    with anyio.fail_after(DEADLINE):
        async with Grove(config) as grove:
            yield grove


def offered(agent: Agent, server: str) -> set[str]:
    """The tools of a server that an agent sees."""
    return {spec.name.removeprefix(f"{server}_") for spec in agent.tools if spec.name.startswith(f"{server}_")}


def text_of(result: dict[str, Any]) -> str:
    assert "error" not in result, result
    return str(result["content"][0]["text"])


class Listener:
    """A client that hears of progress."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, float | None]] = []

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append((progress, total))

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        return None
