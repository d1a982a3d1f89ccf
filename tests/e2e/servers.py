"""Servers for the tests: `async_serve` on a thread of its own, or a child process."""

import asyncio
import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from apcore import Executor, Registry
from mcp import StdioServerParameters

from apcore_mcp import async_serve
from e2e.modules import Journal
from ports import free_port
from waiting import DEADLINE, wait_until
from warm.command import Process, python

TESTS = Path(__file__).resolve().parent.parent
PYTHON = {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]), "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a server listens."""

    port: int
    host: str = "127.0.0.1"
    base: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", f"http://{self.host}:{self.port}")

    @property
    def mcp(self) -> str:
        return f"{self.base}/mcp"

    def __truediv__(self, path: str) -> str:
        return f"{self.base}/{path.lstrip('/')}"


def is_healthy(address: Address) -> bool:
    try:
        return httpx2.get(address / "health", timeout=DEADLINE).status_code == 200
    except httpx2.HTTPError:
        return False


@contextlib.contextmanager
def serving(source: Registry | Executor, *, host: str = "127.0.0.1", **options: Any) -> Iterator[Address]:
    """The HTTP server of `async_serve`, ready; stopped by cancelling it."""
    address = Address(port=free_port())
    options.setdefault("transport", "streamable-http")
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    failures: list[BaseException] = []

    async def run() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.append((asyncio.get_running_loop(), task))
        await async_serve(source, host=host, port=address.port, **options)

    def main() -> None:
        try:
            asyncio.run(run())
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=main)
    thread.start()
    try:
        wait_until(lambda: failures or is_healthy(address))
        if failures:
            raise failures[0]
        yield address
    finally:
        loop, task = started[0]
        if thread.is_alive():
            loop.call_soon_threadsafe(task.cancel)
        thread.join(DEADLINE)
        assert not thread.is_alive(), "the server did not stop"
    assert not failures, failures


@contextlib.contextmanager
def child(command: Sequence[str], **keywords: Any) -> Iterator[Process]:
    """A child process that does not outlive the test."""
    options: dict[str, Any] = {"env": os.environ | PYTHON, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with Process(list(command), **options | keywords) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def server_command(journal: Journal, **options: Any) -> list[str]:
    return python("-m", "e2e.server", json.dumps(options), str(journal.path))


def cli_command(extensions: Path, *flags: str) -> list[str]:
    return python("-m", "apcore_mcp", "--extensions-dir", str(extensions), *flags)


def over_stdio(command: Sequence[str]) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=list(command[1:]), env=PYTHON)


@contextlib.contextmanager
def http_child(command: Sequence[str], port: int, **keywords: Any) -> Iterator[tuple[Process, Address]]:
    """A child that serves HTTP on the port, ready."""
    address = Address(port=port)
    with child(command, stdin=subprocess.DEVNULL, **keywords) as process:
        wait_until(lambda: process.poll() is not None or is_healthy(address))
        assert process.returncode is None, f"ended with {process.returncode}"
        yield process, address
