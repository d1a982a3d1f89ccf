"""`python -m bench.engine [--only PART …] [--json FILE]`: what stands behind the gate, in one short run.

startup    commands, and `toolgrove serve` until it answers
hop        a tool of an upstream server through `toolgrove serve`, beside the direct call
writing    durable mutations beside those in memory, in process and over HTTP
resolving  an agent with 50 patterns among 1,000 tools
gate       the gate alone
secrets    a secret in 1 MiB of text
loops      `get_node` over HTTP on uvloop, beside asyncio's own loop
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench import startup, upstream_hop
from bench.gates import HOMES, Ours
from bench.gateway import QUICK as SHORT
from bench.gateway import project, reading, right_node, scratch, writing
from bench.measure import Round, interleaved, percentile
from bench.pool import LOGS, gate, resolving, running
from bench.pool import QUICK as LITTLE
from bench.report import Report, circumstances, say
from bench.wire import MODERN, drive
from toolgrove.call import Chain
from toolgrove.call.scrub import ScrubStep
from toolgrove.pool.secrets import Secrets
from toolgrove.types import Annotations, Call, Caller, Result, Tool, ToolSpec

UVLOOP = "uvloop==0.22.1"
ON_UVLOOP = """
import asyncio, sys
sys.path.append(sys.argv.pop(1))
import uvloop
asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
from toolgrove.cli import main
sys.exit(main())
"""
KEY = "sk-canary-7f3q9Z"
MIB = 2**20
LONGEST = 20.0


def starting(report: Report, folder: Path) -> None:
    startup.measured(report, rounds=5)


def hopping(report: Report, folder: Path) -> None:
    table = report.table(
        "A tool of an upstream server through `toolgrove serve`, milliseconds (ratio to the direct call)"
    )
    for era in upstream_hop.LIMITS:
        upstream_hop.measured(table, era, folder / f"hop-{era}", rounds=6, seconds=0.25)


class Leak:
    """A source that tells a secret somewhere in a long text."""

    name = "leak"

    def __init__(self, text: str) -> None:
        self._answer: Result = {"content": [{"type": "text", "text": text}]}

    async def call(self, call: Call) -> Result:
        return self._answer


async def scrubbed(*, alone: bool) -> float:
    """Milliseconds that one call with 1 MiB of text costs the loop: of its own CPU, or, while others are ready to run
    all the time and so not `alone`, the longest that they wait for a turn."""
    secrets = Secrets({}, environ={"KEY": KEY})
    secrets.fill("${env:KEY}", field="env.KEY", user="leak_*")
    half = "the quick brown fox jumps over the lazy dog " * (MIB // 88)
    source = Leak(half + KEY + half)
    spec = ToolSpec(
        name="leak", description="", input_schema={}, output_schema={}, annotations=Annotations(), source="leak"
    )
    tool = Tool(spec=spec, source=source, mutates=False, kind="mcp", own_name="leak")
    caller = Caller(agent="a", session="a", role="editor")
    call = Call(id="c", name="leak", tool=tool, arguments={}, caller=caller)
    work = asyncio.ensure_future(Chain((ScrubStep(secrets),), source.call)(call))
    gaps, last, before = [0.0], time.perf_counter(), time.thread_time()
    while not alone and not work.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        gaps.append(now - last)
        last = now
    result = await work
    spent = time.thread_time() - before
    if KEY in str(result):
        raise RuntimeError("the secret was not scrubbed")
    return (spent if alone else max(gaps)) * 1000


def scrubbing(report: Report, folder: Path) -> None:
    say("secrets")
    cpu, longest = (percentile([asyncio.run(scrubbed(alone=alone)) for _ in range(12)], 25) for alone in (True, False))
    table = report.table("A secret in 1 MiB of text of an MCP server, milliseconds in the best quarter of calls")
    table.add("the loop's CPU", {"ours": cpu}, target=f"≤ {LONGEST:g} ms", met=cpu <= LONGEST)
    table.add("… the longest that others wait for a turn, by the clock", {"ours": longest})


class OnUvloop(Ours):
    """`toolgrove serve` on uvloop, which no user has: it is installed beside the bench."""

    command = (sys.executable, "-c", ON_UVLOOP, str(HOMES / "uvloop"))


def looping(report: Report, folder: Path) -> None:
    say("loops")
    uv = str(Path(sys.executable).parent / "uv")
    target = str(HOMES / "uvloop")
    subprocess.run([uv, "pip", "install", "-q", "--python", sys.executable, "--target", target, UVLOOP], check=True)
    kinds: dict[str, type[Ours]] = {"ours": Ours, "limit": OnUvloop}
    gates = {
        name: kind(name, folder / f"loop-{name}", project(f"sqlite:{folder}/{name}.db")) for name, kind in kinds.items()
    }
    with running(*gates.values()):
        lanes = {name: [one.connect(MODERN) for _ in range(16)] for name, one in gates.items()}

        def measure(name: str) -> Round:
            asking = partial(drive, lanes[name], reading, seconds=0.25, most=8_000, right=right_node)
            return gates[name].cpu_of(asking)

        series = interleaved(gates, measure, rounds=8)
        for lane in lanes.values():
            for one in lane:
                one.close()
    cpu = {name: each.cpu for name, each in series.items()}
    table = report.table("`get_node` over HTTP on asyncio's loop (ours) and on uvloop (limit), ms of the server's CPU")
    table.add("16 connections, 2026-07-28", dict(cpu), ratio=cpu["ours"] / cpu["limit"])


Part = Callable[[Report, Path], Any]
PARTS: dict[str, Part] = {
    "startup": starting,
    "hop": hopping,
    "writing": lambda report, folder: writing(report, SHORT, folder),
    "resolving": lambda report, folder: resolving(report, LITTLE),
    "gate": lambda report, folder: asyncio.run(gate(report, LITTLE)),
    "secrets": scrubbing,
    "loops": looping,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.engine", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="these parts and no other")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    chosen = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    packages = ("mcp", "uvicorn", "httptools", "pydantic")
    report = Report(circumstances(quick=True, packages=packages, beside="each part beside what it is judged by"))
    with scratch() as folder:
        for name in chosen.only:
            PARTS[name](report, folder)
    report.finish(chosen.json)


if __name__ == "__main__":
    main()
