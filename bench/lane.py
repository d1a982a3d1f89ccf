"""`python -m bench.lane [--only PART …] [--json FILE]`: what is promised between the socket and the gate.

Each row stands beside its target, and the whole takes about four minutes. Ratios are of subjects that were measured
turn by turn in this run, by the CPU of their servers; the SDK stands on our HTTP server and event loop.
"""

import argparse
import contextlib
import gc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.bridge import FEWER
from bench.gates import Ours
from bench.gateway import FULL, Effort, crowded, plant, project, reads, scratch
from bench.measure import Round, Series, interleaved
from bench.peers import PEER, HttpServer, StdioServer, peer_python
from bench.pool import LOGS, Hop, running
from bench.report import Report, Table, circumstances, say
from bench.turns import longest_of_lists, longest_of_scrubbing
from bench.wire import ERAS, LEGACY, MODERN, Connection, call, drive, listing

ROUNDS, SLICE, BUDGET = 12, 0.3, 30.0
GATE = {MODERN: 0.5, LEGACY: 0.8}
HELD = 20.0
MANY = 4_000


def gate(report: Report, folder: Path) -> None:
    """`get_node` through the gateway, with tokens, the gate, the audit log and SQLite, beside an empty tool."""
    table = report.table("`get_node` through the gateway, 16 connections (ratio to an empty tool of a bare SDK server)")
    ours = Ours("ours", folder / "read", project(f"sqlite:{folder}/read.db"))
    even = Hop.over_http("even", "bare", MODERN, "even")
    with running(ours, even):
        plant(ours, 1_000)
        for era in ERAS:
            say(f"get_node, {era}")
            effort = Effort(**{**vars(FULL), "rounds": ROUNDS, "slice": SLICE, "budget": BUDGET})
            found = reads([ours, even], 16, effort, era)
            cpu, rate = ({name: pick(each) for name, each in found.items()} for pick in (_cpu, _rate))
            ratio = cpu["ours"] / cpu["even"]
            judged = {"target": f"≤ {GATE[era]:.2f}×", "met": ratio <= GATE[era]}
            table.add(f"{era}: ms of the server's CPU", dict(cpu), ratio=ratio, **judged)
            ratio = rate["ours"] / rate["even"]
            judged = {"target": "≥ 2.00×", "met": ratio >= 2} if era == MODERN else {}
            table.add("… calls/s", dict(rate), ratio=ratio, **judged)


def bridge(report: Report, folder: Path) -> None:
    """A trivial module; the peer speaks only the older era."""
    table = report.table(f"A call of a module, ms of the server's CPU, one client (ratio: {PEER} to ours)")
    say("bridge over HTTP")
    servers = {name: HttpServer(name, 100) for name in ("ours", "peer")}
    with contextlib.ExitStack() as stack:
        for server in servers.values():
            stack.callback(server.close)
        for server in servers.values():
            server.wait()
        ways = {
            "ours": (servers["ours"], LEGACY),
            "newer": (servers["ours"], MODERN),
            "peer": (servers["peer"], LEGACY),
        }
        found = interleaved(ways, lambda name: _called(*ways[name]), rounds=ROUNDS, budget=BUDGET)
    _against(table, "HTTP", found)
    say("bridge over stdio")
    pipes = {"ours": StdioServer("ours", 10, LEGACY), "newer": StdioServer("ours", 10, MODERN)}
    pipes["peer"] = StdioServer("peer", 10, LEGACY)
    with contextlib.ExitStack() as stack:
        for pipe in pipes.values():
            stack.callback(pipe.close)
        for pipe in pipes.values():
            pipe.wait()

        def piped(name: str) -> Round:
            make = partial(call, MODERN if name == "newer" else LEGACY)
            return pipes[name].cpu_of(lambda: pipes[name].pipe.drive(make, in_flight=1, seconds=SLICE, most=2000))

        found = interleaved(pipes, piped, rounds=ROUNDS, budget=BUDGET)
    _against(table, "stdio", found)


def _called(server: HttpServer, era: str) -> Round:
    with _connected(server, era) as connections:
        return server.cpu_of(partial(drive, connections, partial(call, era), seconds=SLICE, most=2000))


@contextlib.contextmanager
def _connected(server: HttpServer, era: str) -> Iterator[list[Connection]]:
    with contextlib.closing(server.connect(era)) as one:
        yield [one]


def _against(table: Table, where: str, found: dict[str, Series]) -> None:
    peer = found["peer"].cpu
    for era, name in ((MODERN, "newer"), (LEGACY, "ours")):
        ours, least = found[name].cpu, FEWER[where, era]
        judged = {"target": f"≥ {least}×", "met": peer / ours >= least}
        table.add(f"{where}, {era}", {"ours": ours, "peer": peer}, ratio=peer / ours, **judged)


def lists(report: Report, folder: Path) -> None:
    """`tools/list`, from the second time on."""
    table = report.table("What is large")
    server = HttpServer("ours", 1_000)
    with contextlib.closing(server):
        server.wait()
        for era in ERAS:
            say(f"tools/list of 1,000 tools, {era}")
            with _connected(server, era) as connections:
                asking = partial(drive, connections, partial(listing, era), seconds=SLICE, most=40, tools=1_000)
                found = interleaved(["ours"], lambda _: server.cpu_of(asking), rounds=ROUNDS, budget=BUDGET)  # noqa: B023
            cpu = found["ours"].cpu
            table.add(f"`tools/list` of 1,000 tools, {era}, ms of CPU", {"ours": cpu}, target="≤ 3 ms", met=cpu <= 3)
    say(f"tools/list of {MANY:,} tools")
    for era, held in longest_of_lists(MANY).items():
        what = f"`tools/list` of {MANY:,} tools, {era}, longest turn of the loop, ms of CPU"
        table.add(what, {"ours": held}, target="≤ 20 ms", met=held <= HELD)
    say("1 MiB of text")
    held = longest_of_scrubbing()
    what = "1 MiB of text from an HTTP tool, scrubbed, longest turn of the loop, ms of CPU"
    table.add(what, {"ours": held}, target="≤ 20 ms", met=held <= HELD)


def crowd(report: Report, folder: Path) -> None:
    """1,000 connections without a pause, 30 seconds in each era."""
    crowded(report, FULL, folder)


def _cpu(series: Series) -> float:
    return series.cpu


def _rate(series: Series) -> float:
    return series.rate


PARTS: dict[str, Callable[[Report, Path], None]] = {"gate": gate, "bridge": bridge, "lists": lists, "crowd": crowd}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.lane", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="these parts and no other")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    chosen = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    peer_python()
    packages = ("apcore", "mcp", "starlette", "uvicorn", "httptools", "pydantic")
    report = Report(circumstances(False, packages, f"peer {PEER}"))
    gc.disable()
    with scratch() as folder:
        for name in chosen.only or PARTS:
            PARTS[name](report, folder)
    report.finish(chosen.json)


if __name__ == "__main__":
    main()
