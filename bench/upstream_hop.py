"""`python -m bench.upstream_hop [--json FILE]`: what the gateway adds to a call of an upstream tool, in CPU.

The upstream is an SDK server that answers plain JSON, on uvicorn with httptools. Beside the direct call stand the call
through `toolgrove serve` (token, gate, audit, SQLite) of a tool under `reads`, and of one that may change something,
which is on record before it leaves. CPU is that of every process on the way but the client.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from bench.gates import Ours
from bench.measure import Round, interleaved
from bench.modules import ADD
from bench.pool import LOGS, Hop, running
from bench.report import Report, Table, circumstances, say
from bench.wire import LEGACY, MODERN, Connection, call, drive

ROUNDS, SLICE = 12, 0.5
CONNECTIONS = 8
"""One alone waits for its turn on a busy machine, and what goes on beside the calls is counted with them."""
LIMITS = {MODERN: 2.5, LEGACY: 2.8}


def project(folder: Path, url: str, era: str) -> dict[str, Any]:
    server = {"url": url, "protocol": "modern" if era == MODERN else "legacy"}
    return {
        "workspace": {"store": f"sqlite:{folder}/hop.db"},
        "mcpServers": {"reads": {**server, "reads": ["*"]}, "writes": server},
        "agents": {"a0": {"role": "editor", "tools": ["reads_*", "writes_*"]}},
        "startupBudget": 30,
    }


def named(tool: str, era: str) -> dict[str, Any]:
    made = call(era)
    made["params"]["name"] = tool
    return made


def connected(hop: Hop, era: str) -> list[Connection]:
    return [hop.connect(era) for _ in range(CONNECTIONS)]


def measured(table: Table, era: str, folder: Path, rounds: int = ROUNDS, seconds: float = SLICE) -> None:
    say(f"upstream hop, {era}")
    direct = Hop.over_http("direct", "upstream", era, "quick")
    with running(direct):
        ours = Ours("ours", folder, project(folder, direct.url, era))
        with running(ours):
            tool = ADD.replace(".", "_")
            ways: dict[str, tuple[list[Connection], str, list[Hop]]] = {
                "direct": (connected(direct, era), ADD, [direct]),
                "ours": (connected(ours, era), f"reads_{tool}", [ours, direct]),
                "bare": (connected(ours, era), f"writes_{tool}", [ours, direct]),
            }

            def measure(name: str) -> Round:
                connections, tool, hops = ways[name]
                asking = partial(drive, connections, partial(named, tool, era), seconds=seconds, most=2000)
                return hops[0].cpu_of(asking, *hops[1:])

            measure("ours")
            before = direct.get("count")
            asked = len(measure("ours").latencies)
            per_call = (direct.get("count") - before) / asked
            series = interleaved(ways, measure, rounds=rounds)
            for connections, _, _ in ways.values():
                for one in connections:
                    one.close()
    cpu = {name: each.cpu for name, each in series.items()}
    ratio, most = cpu["ours"] / cpu["direct"], LIMITS[era]
    table.add(
        f"{era}, CPU",
        {"direct": cpu["direct"], "ours": cpu["ours"]},
        ratio=ratio,
        target=f"≤ {most}×",
        met=ratio <= most,
    )
    table.add("… p50", {name: series[name].p50 for name in ("direct", "ours")})
    table.add("… of a tool that is on record before, CPU", {"ours": cpu["bare"]}, ratio=cpu["bare"] / cpu["direct"])
    table.add("… upstream requests per call", {"ours": per_call}, target="exactly 1", met=round(per_call, 2) == 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    packages = ("mcp", "uvicorn", "httptools")
    report = Report(circumstances(quick=False, packages=packages, beside="the SDK's own server as upstream"))
    table = report.table(
        "A tool of an upstream server through `toolgrove serve`, milliseconds (ratio to the direct call)"
    )
    with tempfile.TemporaryDirectory() as folder:
        for era in LIMITS:
            measured(table, era, Path(folder) / era)
    report.finish(chosen.json)


if __name__ == "__main__":
    main()
