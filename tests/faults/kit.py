"""What the tests of faults share: upstreams by mode, a grove around them, and what became of their processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from toolgrove import Agent, Config, Grove
from toolgrove.types import Clock
from waiting import DEADLINE, eventually

UPSTREAM = Path(__file__).with_name("upstream.py")
BUDGET = 10.0
_STEP = 0.03
"""Between two looks: what is looked at is made anew each time."""


def fake(mode: str = "healthy", journal: Journal | None = None, option: object = "", **more: Any) -> dict[str, Any]:
    """The configuration of one fake server over stdio, whose tools read but for `erase`."""
    file = "-" if journal is None else str(journal.path)
    args = ["-I", "-S", str(UPSTREAM), mode, file, str(option)]
    return {"command": sys.executable, "args": args, "reads": ["*"], "changes": ["erase"], **more}


class Journal:
    """What the fake servers of a test wrote down."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self, kind: str) -> list[list[str]]:
        """The rest of each line that begins with the word."""
        text = self.path.read_text() if self.path.exists() else ""
        return [words[1:] for line in text.splitlines() if (words := line.split())[:1] == [kind]]

    @property
    def pids(self) -> list[int]:
        return [int(words[0]) for words in self.lines("pid")]

    def received(self, method: str, tool: str | None = None) -> int:
        return sum(
            words[0] == method and words[1:] == ([tool] if tool else words[1:]) for words in self.lines("received")
        )

    async def wrote(self, kind: str, times: int = 1) -> None:
        await eventually(lambda: len(self.lines(kind)) >= times)


def alive(pid: int) -> bool:
    """Whether a process runs, or ended and waits for us; one that waits for somebody else is not our leak."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return False
    return state != "Z" or int(parent) == os.getpid()


class Peak:
    """The most memory that this process had at a time, in megabytes."""

    def reset(self) -> None:
        """Begin to watch."""
        Path("/proc/self/clear_refs").write_text("5")
        self._before = self._now()

    def grown(self) -> float:
        """By how much it grew since."""
        return self._now() - self._before

    def _now(self) -> float:
        return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024


class SkippingClock:
    """The machine's clock, and the time that a test skips."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def skip(self, seconds: float) -> None:
        self._skipped += seconds

    def wall(self) -> float:
        return time.time() + self._skipped

    def monotonic(self) -> float:
        return time.monotonic() + self._skipped


def after_first_contact(grove: Grove) -> None:
    """What servers say from now on is no longer trusted unseen."""
    assert isinstance(grove.clock, SkippingClock)
    grove.clock.skip(grove.config.startup_budget)


def project(servers: dict[str, Any], *, budget: float = BUDGET, **agent: Any) -> Config:
    """A project with one agent that may have everything, beside a reader."""
    agents = {"a": {"role": "editor", "tools": ["*"], **agent}, "reader": {"role": "reader", "tools": ["*"]}}
    return Config.model_validate({"mcpServers": servers, "agents": agents, "startupBudget": budget})


@asynccontextmanager
async def running(
    servers: dict[str, Any], *, budget: float = BUDGET, clock: Clock | None = None, **agent: Any
) -> AsyncIterator[Grove]:
    """A grove over the servers; nothing here may take longer than the deadline."""
    with anyio.fail_after(DEADLINE):
        async with Grove(project(servers, budget=budget, **agent), clock=clock or SkippingClock()) as grove:
            yield grove


async def granted(grove: Grove, tool: str, name: str = "a") -> Agent:
    """The agent, as soon as it has the tool."""
    while True:
        agent = await grove.agent(name)
        if tool in agent.receipt and agent.receipt[tool].verdict == "granted":
            return agent
        await anyio.sleep(_STEP)


async def back(grove: Grove, tool: str) -> Agent:
    """The agent, once the server of the tool went away and came back."""
    await verdict(grove, tool, "unavailable")
    return await granted(grove, tool)


async def verdict(grove: Grove, tool: str, wanted: str) -> str:
    """The rule of a verdict, as soon as it is the wanted one."""
    while True:
        receipt = (await grove.agent("a")).receipt
        if tool in receipt and receipt[tool].verdict == wanted:
            return str(receipt[tool].rule)
        await anyio.sleep(_STEP)


def text_of(result: dict[str, Any]) -> str:
    """The text of a result's first block."""
    assert "error" not in result, result
    return str(result["content"][0]["text"])


def error_of(result: dict[str, Any]) -> dict[str, Any]:
    assert "error" in result, result
    error: dict[str, Any] = result["error"]
    return error


async def answers(agent: Agent, server: str = "well") -> None:
    """A healthy server still answers."""
    assert text_of(await agent.call(f"{server}_echo", {"text": "still here"})) == "still here"


async def beside(agent: Agent, work: Awaitable[Any]) -> Any:
    """The result of the work, while a neighbour answers all along."""
    done = anyio.Event()
    outcome: list[Any] = []

    async def run() -> None:
        outcome.append(await work)
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await answers(agent)
        while not done.is_set():
            await answers(agent)
            await anyio.sleep(_STEP)
    await answers(agent)
    return outcome[0]


async def recovers(agent: Agent, server: str) -> None:
    """A server whose fault is over answers again, once it was looked for."""
    while "error" in await agent.call(f"{server}_echo", {"text": "are you there?"}):
        await anyio.sleep(_STEP)
    await answers(agent, server)
