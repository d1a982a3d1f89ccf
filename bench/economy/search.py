"""`python -m bench.economy.search [--json FILE]`: what a model pays to see and to find tools, beside FastMCP's search.

The tools are those of real servers, as `tools/ecosystem.sh` sets them up; a server that is not there is named and left
out. For the pool of 4,000 they stand there many times, under other names.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.server.transforms.search.bm25 import BM25SearchTransform
from fastmcp.tools import Tool as FastTool
from fastmcp.tools.base import ToolResult

from bench.economy.questions import QUESTIONS
from bench.hop import ROOT
from bench.report import say
from toolgrove import Config, Grove
from toolgrove.config import AgentConfig
from toolgrove.pool.exposure import Exposure
from toolgrove.pool.offer import Offer
from toolgrove.pool.resolve import Toolset, resolve
from toolgrove.pool.snapshot import compose
from toolgrove.types import Call, Caller, Source, Tool, ToolSpec

LARGE = 4_000
FIRST = 5
CACHE = ROOT / ".cache"
NODE = CACHE / "node" / "bin" / "node"
PACKAGES = CACHE / "node" / "node_modules" / "@modelcontextprotocol"
OTHERS = CACHE / "ecosystem" / "node" / "node_modules" / "@modelcontextprotocol"


def servers(folder: Path) -> dict[str, list[str]]:
    """The servers that the questions are about, each with its command."""

    def program(environment: str, name: str) -> str:
        return str(CACHE / "ecosystem" / environment / "bin" / name)

    def package(place: Path, name: str, *arguments: str) -> list[str]:
        return [str(NODE), str(place / name / "dist" / "index.js"), *arguments]

    return {
        "everything": package(PACKAGES, "server-everything", "stdio"),
        "filesystem": package(PACKAGES, "server-filesystem", str(folder)),
        "memory": package(OTHERS, "server-memory"),
        "thinking": package(OTHERS, "server-sequential-thinking"),
        "pdf": package(OTHERS, "server-pdf", "--stdio"),
        "git": [sys.executable, "-m", "mcp_server_git"],
        "time": [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"],
        "fetch": [program("fetch", "python"), "-m", "mcp_server_fetch"],
        "sqlite": [program("sqlite", "mcp-server-sqlite"), "--db-path", str(folder / "s.db")],
        "excel": [program("excel", "excel-mcp-server"), "stdio"],
        "calculator": [program("calculator", "mcp-server-calculator")],
        "markitdown": [program("markitdown", "markitdown-mcp")],
    }


async def real_tools() -> tuple[Sequence[ToolSpec], dict[str, list[str]]]:
    """The tools of the servers that are there, and for each question what a search of ours finds first."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = servers(Path(folder))
        there = {name: one for name, one in wanted.items() if all(Path(part).exists() for part in _files(one))}
        for name in wanted.keys() - there.keys():
            say(f"{name} is not set up (tools/ecosystem.sh) and left out")
        entries = {name: {"command": one[0], "args": one[1:], "pins": "firstUse"} for name, one in there.items()}
        agent = {"role": "editor", "tools": ["*"], "deny": ["spawn_*", "list_available_agents"], "expose": "search"}
        config = {"workspace": False, "mcpServers": entries, "agents": {"a": agent}}
        async with Grove(Config.model_validate(config), patience=120) as grove:
            asking = await grove.agent("a")
            found = {}
            for question, _ in QUESTIONS:
                answer = await asking.call("find_tools", {"query": question, "limit": FIRST})
                found[question] = [tool["name"] for tool in answer["tools"]]
            return [spec for spec in asking.granted if spec.name not in ("find_tools", "call_tool")], found


def _files(command: Sequence[str]) -> list[str]:
    return [part for part in command if part.startswith(str(CACHE)) or part == command[0]]


def many(specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """As many tools as a large pool has."""
    copies = range(-(-LARGE // len(specs)))
    made = [replace(spec, name=f"{spec.name}_{copy}"[-64:], source=f"s{copy}") for copy in copies for spec in specs]
    return made[:LARGE]


class _Nowhere:
    name = "nowhere"

    async def call(self, call: Call) -> dict[str, Any]:
        raise NotImplementedError


def searching(specs: Sequence[ToolSpec]) -> Toolset:
    """The toolset of an agent that has all of them and searches."""
    source: Source = _Nowhere()
    offers = [
        Offer(
            name=spec.name,
            own_name=spec.name,
            source=spec.source,
            kind="mcp",
            tool=Tool(spec=spec, source=source, mutates=False, kind="mcp", own_name=spec.name),
        )
        for spec in specs
    ]
    agent = AgentConfig(tools=("*",))
    return resolve(compose(1, [offers], {}), "a", agent, exposure=Exposure(expose="search"))


async def ours_at_scale(specs: Sequence[ToolSpec]) -> tuple[int, float]:
    """What the list costs, and the milliseconds of CPU that one question takes."""
    toolset = searching(specs)
    tool = toolset.callable["find_tools"]
    caller = Caller(agent="a", session="a")

    async def ask(question: str) -> Any:
        asked = {"query": question, "limit": FIRST}
        return await tool.source.call(Call(id="c", name="find_tools", caller=caller, tool=tool, arguments=asked))

    return toolset.receipt.cost.total, await _cpu(ask)


class _Listed(FastTool):
    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        raise NotImplementedError


def fastmcp_of(specs: Sequence[ToolSpec]) -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP("search")
    for spec in specs:
        server.add_tool(
            _Listed(name=spec.name, description=spec.description or None, parameters=dict(spec.input_schema))
        )
    server.add_transform(BM25SearchTransform(max_results=FIRST))
    return server


async def theirs(specs: Sequence[ToolSpec], *, timing: bool) -> tuple[dict[str, list[str]], int, float]:
    """What FastMCP's search finds first, what its list costs, and the CPU of one question."""
    async with Client(fastmcp_of(specs)) as client:
        listed = [tool.model_dump(mode="json", exclude_none=True, by_alias=True) for tool in await client.list_tools()]

        async def ask(question: str) -> Any:
            return await client.call_tool("search_tools", {"query": question})

        found = {}
        for question, _ in QUESTIONS if not timing else ():
            text = (await ask(question)).content[0].text
            found[question] = [tool["name"] for tool in json.loads(text)]
        cost = len(json.dumps(listed, separators=(",", ":"))) // 4
        return found, cost, await _cpu(ask) if timing else 0.0


async def _cpu(ask: Callable[[str], Any]) -> float:
    await ask(QUESTIONS[0][0])  # builds the index
    taken = []
    for question, _ in QUESTIONS[:20]:
        began = time.process_time()
        await ask(question)
        taken.append(time.process_time() - began)
    return sorted(taken)[len(taken) // 2] * 1000


def hits(found: dict[str, list[str]], names: set[str], first: int) -> tuple[int, int]:
    """How many questions have a right tool among the first, of those whose server is there."""
    asked = [(question, right) for question, right in QUESTIONS if set(right) & names]
    return sum(bool(set(found[question][:first]) & set(right)) for question, right in asked), len(asked)


async def measure() -> dict[str, Any]:
    specs, found = await real_tools()
    names = {spec.name for spec in specs}
    pool = many(specs)
    ours_cost, ours_cpu = await ours_at_scale(pool)
    their_found, _, _ = await theirs(specs, timing=False)
    _, their_cost, their_cpu = await theirs(pool, timing=True)
    for question, right in QUESTIONS:
        if set(right) & names and not set(right) & set(found[question]):
            say(f"  missed: {question!r} -> {', '.join(found[question])}")
    ours_hits, asked = hits(found, names, FIRST)
    return {
        "tools": len(specs),
        "questions": asked,
        "ours": {"first5": ours_hits, "first1": hits(found, names, 1)[0], "listTokens": ours_cost, "cpuMs": ours_cpu},
        "fastmcp": {
            "first5": hits(their_found, names, FIRST)[0],
            "first1": hits(their_found, names, 1)[0],
            "listTokens": their_cost,
            "cpuMs": their_cpu,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures into this file too")
    chosen = parser.parse_args()
    figures = asyncio.run(measure())
    say(f"{figures['tools']} tools of real servers, {figures['questions']} questions; a pool of {LARGE:,} for the rest")
    say("")
    say("| | ours | FastMCP's BM25 transform | limit |")
    say("|---|---|---|---|")
    ours, fast = figures["ours"], figures["fastmcp"]
    say(f"| right tool among the first 5 | {ours['first5']} | {fast['first5']} | 90 % |")
    say(f"| right tool first | {ours['first1']} | {fast['first1']} | |")
    say(f"| tokens of the list | {ours['listTokens']:,} | {fast['listTokens']:,} | 1,500 |")
    say(f"| CPU of one question, ms | {ours['cpuMs']:.2f} | {fast['cpuMs']:.2f} | 5 |")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
