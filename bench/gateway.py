"""`python -m bench.gateway [--quick] [--load] [--json FILE]`: the whole gateway beside a bare SDK server and its peers.

Every ratio is of subjects that were measured turn by turn in one run. A call comes from a raw keep-alive client; the
gateway is `toolgrove serve` in a process of its own, with tokens and a SQLite store.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import resource
import selectors
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from bench.crowd import Crowd, crowd
from bench.gates import FASTMCP, FORGE, Forge, Ours, Profiled, environment
from bench.hop import ROOT
from bench.measure import Round, Series, interleaved
from bench.peers import free_port
from bench.pool import LOGS, Hop, running
from bench.report import Report, Table, circumstances, say
from bench.store import DEPTHS, PAYLOAD, WRITERS, mutations, opened, planted, sync
from bench.wire import LEGACY, MODERN, Connection, WrongAnswer, call, drive, message_of, request

NODES = 100_000
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
QUIET = ("gpu", "quic", "background-networking", "component-update", "sync")
FLAGS = ["--no-first-run", "--no-sandbox", *(f"--disable-{feature}" for feature in QUIET)]
_WATCH_ROWS = """
new MutationObserver((_, watching) => {
    if (document.querySelector("[data-testid=tree-row]")) {
        requestAnimationFrame(() => { window.__rows = performance.now() });
        watching.disconnect();
    }
}).observe(document, { childList: true, subtree: true });
"""
_ROWS_SHOWN = """
new Promise((done) => {
    const look = () => (window.__rows ? done(window.__rows) : requestAnimationFrame(look));
    look();
})
"""
_FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@dataclass(frozen=True, kw_only=True)
class Effort:
    rounds: int
    slice: float
    budget: float
    seconds: float
    visits: int
    nodes: int
    clients: int


FULL = Effort(rounds=15, slice=0.5, budget=60, seconds=2.0, visits=5, nodes=NODES, clients=1_000)
QUICK = Effort(rounds=3, slice=0.2, budget=15, seconds=0.5, visits=2, nodes=NODES, clients=200)


def project(store: str, **more: Any) -> dict[str, Any]:
    """The project of bench.store, with a token for each of its agents."""
    agents = {f"a{number}": {"role": "editor", "tools": ["*"]} for number in range(WRITERS)}
    return {"workspace": {"store": store, "concurrency": "node"}, "agents": agents, **more}


# Reading.


def reading(node_id: str = "root", era: str = MODERN) -> dict[str, Any]:
    return request(era, "tools/call", {"name": "get_node", "arguments": {"nodeId": node_id}})


def result_of(asked: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The result of a call that went well; the answer must belong to the question."""
    result: dict[str, Any] = answer.get("result", {"isError": True})
    if answer.get("id") != asked["id"] or result.get("isError"):
        raise WrongAnswer(f"asked {asked}, answered {str(answer)[:300]}")
    return result


def right_node(asked: dict[str, Any], answer: dict[str, Any]) -> None:
    found = result_of(asked, answer)["structuredContent"]["nodeId"]
    if found != asked["params"]["arguments"]["nodeId"]:
        raise WrongAnswer(f"asked {asked}, answered {found}")


def right_nothing(asked: dict[str, Any], answer: dict[str, Any]) -> None:
    if result_of(asked, answer)["content"]:
        raise WrongAnswer(f"the empty tool answered {str(answer)[:300]}")


def gate(report: Report, effort: Effort, folder: Path) -> None:
    """`get_node` through the whole gateway."""
    ours = Ours("ours", folder / "read", project(f"sqlite:{folder}/read.db"))
    with running(ours):
        plant(ours, 1_000)
        hops = [ours, *(Hop.over_http(name, "bare", MODERN, kind) for name, kind in BARE.items()), *fastmcp()]
        with running(*hops[1:]):
            say("get_node: one connection")
            alone = reads(hops, 1, effort)
            say("get_node: sixteen connections")
            together = reads(hops, 16, effort)
            say("get_node: sixteen sessions of the older era")
            sessions = reads([hop for hop in hops if hop.name in ("ours", "even")], 16, effort, LEGACY)
    table = report.table(
        "`get_node` over Streamable HTTP, 2026-07-28 (ratio to the bare SDK server with an empty tool)"
    )
    add_calls(table, "sdk", alone, together)
    for what, series in (("one connection", alone), ("16 connections", together)):
        rates = {name: series[name].rate for name in ("ours", "even")}
        ratio = rates["ours"] / rates["even"]
        judged = {"target": "≥ 2.00×", "met": ratio >= 2} if series is together else {}
        table.add(f"calls/s with {what}, both on our HTTP server", dict(rates), ratio=ratio, **judged)
    for era, series, most in ((MODERN, together, 0.5), (LEGACY, sessions, 0.8)):
        cpu = {name: series[name].cpu for name in ("ours", "even")}
        ratio = cpu["ours"] / cpu["even"]
        what = f"ms of the server's CPU with 16 connections, {era}, both on our HTTP server"
        table.add(what, dict(cpu), ratio=ratio, target=f"≤ {most:.2f}×", met=ratio <= most)
    say("get_node: profile")
    where_it_goes(report, ours)


BARE = {"sdk": "empty", "even": "even", "lean": "lean"}


def fastmcp() -> list[Hop]:
    programs = environment("fastmcp", FASTMCP)
    if programs is None:
        return []
    port = free_port()
    command = [str(programs / "python"), "-m", "bench.hop", "fastmcp_tool", "http", str(port), MODERN, "1000"]
    return [Hop("fastmcp", command, port=port)]


def plant(ours: Ours, nodes: int) -> None:
    items = [
        {"nodeId": f"i{at}", "parentId": "root", "payloadType": "T", "payload": {**PAYLOAD, "size": at}}
        for at in range(nodes)
    ]
    with contextlib.closing(ours.connect(MODERN)) as one:
        form = {"json": {"items": items}, "strategy": "upsert", "versionToken": version_of(one)}
        said(one, "import_merge", form)


def said(one: Connection, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    asked = request(MODERN, "tools/call", {"name": tool, "arguments": arguments})
    content: dict[str, Any] = result_of(asked, message_of(*one.ask(asked)))["structuredContent"]
    return content


def version_of(one: Connection) -> str:
    return str(said(one, "get_node", {"nodeId": "root"})["version"])


def reads(hops: Sequence[Hop], count: int, effort: Effort, era: str = MODERN) -> dict[str, Series]:
    by_name = {hop.name: hop for hop in hops}
    numbers = itertools.count()

    def make() -> dict[str, Any]:
        return reading(f"i{next(numbers) % 1000}", era)

    def measure(name: str) -> Round:
        hop, right = by_name[name], right_nothing if name in BARE else right_node
        with connected(hop, era, count) as connections:
            return hop.cpu_of(partial(drive, connections, make, seconds=effort.slice, most=2000, right=right))

    return interleaved(by_name, measure, rounds=effort.rounds, budget=effort.budget)


@contextlib.contextmanager
def connected(hop: Hop, era: str, count: int) -> Iterator[list[Connection]]:
    """Connections for one round: between two of them a server closes those that are idle."""
    connections = [hop.connect(era) for _ in range(count)]
    try:
        yield connections
    finally:
        for one in connections:
            one.close()


def add_calls(
    table: Table,
    beside: str,
    alone: dict[str, Series],
    together: dict[str, Series],
    *,
    p50: float | None = None,
    rate: float | None = None,
) -> None:
    """The time of a call, the calls per second, and what each costs the server, beside one subject."""

    def add(what: str, values: dict[str, float], *, most: float | None = None, least: float | None = None) -> None:
        ratio = values["ours"] / values[beside]
        judged: dict[str, Any] = {}
        if most is not None:
            judged = {"target": f"≤ {most:.2f}×", "met": ratio <= most}
        elif least is not None:
            judged = {"target": f"≥ {least:.2f}×", "met": ratio >= least}
        table.add(what, dict(values), ratio=ratio, **judged)

    add("ms with one connection, p50", {name: each.p50 for name, each in alone.items()}, most=p50)
    table.add("… p99", {name: each.p99 for name, each in alone.items()})
    add("… of the server's CPU", {name: each.cpu for name, each in alone.items()})
    add("calls/s with 16 connections", {name: each.rate for name, each in together.items()}, least=rate)
    add("… by the server's CPU alone", {name: 1000 / each.cpu for name, each in together.items()})
    add("… ms, p50", {name: each.p50 for name, each in together.items()})
    table.add("… p99", {name: each.p99 for name, each in together.items()})


def where_it_goes(report: Report, ours: Ours) -> None:
    """A profile of our own loop; the profiler itself makes calls of small functions dearer than they are."""
    profiled = Profiled(ours)
    with running(profiled), contextlib.closing(profiled.connect(MODERN)) as one:
        asking = partial(drive, [one], reading, seconds=60, most=500, right=right_node)
        asking()
        profiled.get("profile")
        done = asking()
        spent = profiled.get("profile")
    table = report.table("Where the time of `get_node` goes, % of the CPU of the gateway's loop (by profile)")
    total = sum(spent.values())
    for bucket, seconds in spent.items():
        table.add(bucket, {"ours": 100 * seconds / total})
    table.add("all of it, ms per call under the profiler", {"ours": 1000 * total / len(done.latencies)})


# Another gateway.


def beside_forge(report: Report, effort: Effort, folder: Path) -> None:
    """A tool of the same upstream through both gateways: ContextForge has none of its own."""
    programs = environment("contextforge", FORGE)
    if programs is None:
        return
    say("ContextForge: an upstream's tool")
    upstream = Hop.over_http("direct", "upstream", LEGACY, "lean")
    with running(upstream):
        server = {"url": upstream.url, "protocol": "legacy"}
        ours = Ours("ours", folder / "through", project(f"sqlite:{folder}/through.db", mcpServers={"up": server}))
        with running(ours):
            forge = Forge(programs, folder / "forge", upstream.url)
            try:
                with running(forge):
                    alone, together = (through([upstream, ours, forge], count, effort) for count in (1, 16))
            except (OSError, RuntimeError, TimeoutError, WrongAnswer) as problem:
                report.facts["ContextForge"] = f"ABSENT: {problem}"
                return
    table = report.table("A tool of an upstream server through a gateway, 2025-11-25 (ratio to ContextForge)")
    add_calls(table, "forge", alone, together)


TOOLS = {"ours": "up_math_add", "forge": "up-math-add", "direct": "math.add"}


def through(hops: Sequence[Hop], count: int, effort: Effort) -> dict[str, Series]:
    by_name = {hop.name: hop for hop in hops}

    def make(name: str) -> dict[str, Any]:
        asked = call(LEGACY)
        asked["params"]["name"] = TOOLS[name]
        return asked

    def measure(name: str) -> Round:
        with connected(by_name[name], LEGACY, count) as connections:
            asking = partial(drive, connections, partial(make, name), seconds=effort.slice, most=1000)
            return by_name[name].cpu_of(asking)

    return interleaved(by_name, measure, rounds=effort.rounds, budget=effort.budget)


# Writing.


class Lane:
    """A writer of its own node: each of its calls rests on the version that the one before gave it."""

    def __init__(self, ours: Ours, agent: str) -> None:
        self._ours, self._agent, self._count = ours, agent, 0
        self.connect()
        version = version_of(self.connection)
        form = {"parentNodeId": "root", "payloadType": "T", "payloadProps": PAYLOAD, "versionToken": version}
        made = said(self.connection, "add_child", form)
        self._node, self._version = made["nodeId"], made["version"]
        self.connection.close()

    def connect(self) -> None:
        self.connection = self._ours.connect(MODERN, self._agent)

    def put(self) -> float:
        self._count += 1
        change = {"nodeId": self._node, "propertyName": "size", "newValue": self._count, "versionToken": self._version}
        self._asked = request(MODERN, "tools/call", {"name": "update_payload_property", "arguments": change})
        self.connection.socket.sendall(self.connection.encode(self._asked))
        return time.perf_counter()

    def take(self) -> None:
        self._version = result_of(self._asked, message_of(*self.connection.take()))["structuredContent"]["version"]


def write(lanes: Sequence[Lane], seconds: float) -> Round:
    """One change at a time on every lane."""
    latencies: list[float] = []
    for lane in lanes:
        lane.connect()
    with selectors.DefaultSelector() as selector:
        begun = time.perf_counter()
        pending = {lane: lane.put() for lane in lanes}
        for lane in lanes:
            selector.register(lane.connection.socket, selectors.EVENT_READ, lane)
        while pending:
            for key, _ in selector.select(20):
                lane = key.data
                if lane.connection.read():
                    now = time.perf_counter()
                    latencies.append((now - pending.pop(lane)) * 1000)
                    lane.take()
                    if now - begun < seconds:
                        pending[lane] = lane.put()
    for lane in lanes:
        lane.connection.close()
    return Round(latencies=latencies, seconds=time.perf_counter() - begun)


def writing(report: Report, effort: Effort, folder: Path) -> None:
    table = report.table(f"Mutations per second with {WRITERS} writers (ratio of the SQLite store to the memory store)")
    in_process(table, effort, folder)
    say("mutations over HTTP")
    stores = {"memory": "memory", "ours": f"sqlite:{folder}/write.db"}
    gates = {name: Ours(name, folder / f"write-{name}", project(store)) for name, store in stores.items()}
    with running(*gates.values()):
        lanes = {name: [Lane(gate, f"a{at}") for at in range(WRITERS)] for name, gate in gates.items()}
        results = interleaved(
            gates,
            lambda name: gates[name].cpu_of(partial(write, lanes[name], effort.slice)),
            rounds=effort.rounds,
            budget=effort.budget,
        )
    rates = {name: each.rate for name, each in results.items()}
    ratio = rates["ours"] / rates["memory"]
    table.add("over HTTP", dict(rates), ratio=ratio, target="≥ 0.90×", met=ratio >= 0.9)
    by_cpu = {name: 1000 / each.cpu for name, each in results.items()}
    table.add("… by the server's CPU alone", dict(by_cpu), ratio=by_cpu["ours"] / by_cpu["memory"])
    table.add("… ms of one, p50", {name: each.p50 for name, each in results.items()})


def in_process(table: Table, effort: Effort, folder: Path) -> None:
    one = sync(folder / "sync")
    for depth in DEPTHS:
        say(f"mutations in-process, {depth} of each writer in flight")
        found: dict[str, list[tuple[float, float, float]]] = {"memory": [], "ours": []}
        for at in range(max(2, effort.rounds // 3)):
            found["memory"].append(asyncio.run(mutations("memory", effort.seconds, depth)))
            found["ours"].append(asyncio.run(mutations(f"sqlite:{folder}/m{depth}-{at}.db", effort.seconds, depth)))
        rates = {name: statistics.median(each[0] for each in rounds) for name, rounds in found.items()}
        judged: dict[str, Any] = {}
        if depth == DEPTHS[0]:
            judged = {"target": "≥ 0.75×", "met": rates["ours"] / rates["memory"] >= 0.75}
        what = "in-process" if depth == DEPTHS[0] else f"… {depth} calls of each writer in flight"
        table.add(what, dict(rates), ratio=rates["ours"] / rates["memory"], **judged)
        table.add("… by CPU alone", {name: 1 / min(each[2] for each in rounds) for name, rounds in found.items()})
        if depth == DEPTHS[0]:
            table.add(f"… at most, as a sync takes {one * 1000:.2f} ms", {"limit": WRITERS / one})


# A large tree.


def large(report: Report, effort: Effort, folder: Path) -> None:
    say(f"a tree of {effort.nodes:,} nodes")
    path = folder / "large.db"
    asyncio.run(planted(f"sqlite:{path}", effort.nodes))
    wall, cpu = asyncio.run(opened(path))
    table = report.table(f"A project with {effort.nodes:,} nodes")
    table.add("seconds to open the store", {"ours": wall}, target="< 2 s", met=wall < 2)
    table.add("… of CPU", {"ours": cpu})
    ours = Ours("ours", folder / "large", project(f"sqlite:{path}"))
    with running(ours):
        table.add("seconds until `toolgrove serve` greets", {"ours": ours.started})
        table.add("megabytes of the process", {"ours": ours.megabytes})
        painting(report, table, ours, effort)


def painting(report: Report, table: Table, ours: Ours, effort: Effort) -> None:
    if CHROMIUM is None:
        report.facts["Chromium"] = "ABSENT: the console was not painted (apt install chromium, or CHROMIUM=/path)"
        return
    say("the console's first paint")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        painted, shown = zip(*(visit(browser, ours) for _ in range(effort.visits + 1)), strict=True)
        browser.close()
    # The first visit also starts the browser's own processes.
    first, rows = statistics.median(painted[1:]), statistics.median(shown[1:])
    table.add("ms until the console's first contentful paint", {"ours": first}, target="< 1,000 ms", met=first < 1000)
    table.add("ms until the tree's first rows show", {"ours": rows}, target="< 1,000 ms", met=rows < 1000)


def visit(browser: Browser, ours: Ours) -> tuple[float, float]:
    """Milliseconds from the navigation to the first paint, and to the rows of the tree, in a tab that is signed in."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        page = context.new_page()
        page.goto(ours.console)
        page.get_by_test_id("live-state").wait_for()
        first = float(page.evaluate(_FIRST_PAINT))
        page.add_init_script(_WATCH_ROWS)
        page.goto("about:blank")
        page.goto(f"{ours.console.partition('#')[0]}#/tree/a0")
        page.get_by_test_id("tree-row").first.wait_for()
        return first, float(page.evaluate(_ROWS_SHOWN))
    finally:
        context.close()


# A crowd.


def loaded(report: Report, effort: Effort, folder: Path) -> None:
    """Calm clients alone, then beside a flood and an upstream that does not answer."""
    say(f"{effort.clients:,} clients")
    with crowd(folder / "crowd", effort.clients, project("memory")) as people:
        before = people.gate.megabytes
        alone, besides = people.alone(effort.seconds * 5), people.besides(effort.seconds * 5)
        table = report.table(f"{effort.clients:,} clients that call now and then")
        add_crowd(table, people, alone, besides, before)


def add_crowd(table: Table, people: Crowd, alone: Round, besides: Round, before: float) -> None:
    table.add("their calls, all answered", {"alone": len(alone.latencies), "ours": len(besides.latencies)})
    ratio = besides.p50 / alone.p50
    table.add(
        "ms, p50, alone and beside a flood and a slow upstream", {"alone": alone.p50, "ours": besides.p50}, ratio=ratio
    )
    p99 = {"alone": Series([alone]).p99, "ours": Series([besides]).p99}
    table.add("… p99", dict(p99), ratio=p99["ours"] / p99["alone"])
    table.add("calls/s of the flood", {"ours": people.flooded / besides.seconds})
    share = 100 * people.limited / max(1, people.flooded)
    table.add("… % of them `rate_limited`", {"ours": share}, target="≥ 90 %", met=share >= 90)
    table.add("calls that wait for the slow upstream", {"ours": people.held})
    grown = people.gate.megabytes - before
    table.add("megabytes grown", {"ours": grown}, target="≤ 200", met=grown <= 200)


def crowded(report: Report, effort: Effort, folder: Path) -> None:
    """As many connections as there are clients, which call without a pause, in both eras."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the gateway inherits it
    ours = Ours("crowded", folder / "crowded", project(f"sqlite:{folder}/crowded.db"))
    table = report.table(f"{effort.clients:,} connections that call without a pause, all answered right")
    with running(ours):
        for era in (MODERN, LEGACY):
            say(f"{effort.clients:,} connections, {era}")
            make = partial(reading, "root", era)
            with connected(ours, era, 16) as few:
                rate = drive(few, make, seconds=effort.seconds, most=16_000, right=right_node).rate
            before = ours.megabytes
            with connected(ours, era, effort.clients) as many:
                seconds, most = effort.seconds * 15, effort.clients * 400
                done = drive(many, make, seconds=seconds, most=most, wait=60, right=right_node, ahead=1)
            p99, limit = Series([done]).p99, 2_500 * effort.clients / rate
            table.add(f"{era}: calls/s", {"ours": done.rate})
            table.add("… ms, p99", {"ours": p99}, target=f"≤ {limit:,.0f} ms", met=p99 <= limit)
            table.add("… megabytes grown", {"ours": ours.megabytes - before})


def facts(quick: bool) -> dict[str, str]:
    packages = ("mcp", "starlette", "uvicorn", "httptools", "h11", "pydantic")
    peers = {FASTMCP: environment("fastmcp", FASTMCP), FORGE: environment("contextforge", FORGE)}
    told = ", ".join(name if there else f"{name} is ABSENT: it could not be installed" for name, there in peers.items())
    return circumstances(quick, packages, told)


Part = Callable[[Report, Effort, Path], None]
PARTS: dict[str, Part] = {"gate": gate, "forge": beside_forge, "writing": writing, "large": large}

CROWDS: dict[str, Part] = {"load": loaded, "crowded": crowded}


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder on the disk of the repository: a file system in memory would make durability free."""
    folder = Path(tempfile.mkdtemp(dir=ROOT / ".cache"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter and fewer rounds, for development")
    parser.add_argument("--load", action="store_true", help="1,000 clients, a flood and a slow upstream besides")
    parser.add_argument("--only", nargs="+", choices=[*PARTS, *CROWDS], help="these parts and no other")
    parser.add_argument("--nodes", type=int, help="of the large tree (100,000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    chosen = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    effort = QUICK if chosen.quick else FULL
    effort = effort if chosen.nodes is None else replace(effort, nodes=chosen.nodes)
    wanted = chosen.only or [*PARTS, *(CROWDS if chosen.load else ())]
    report = Report(facts(chosen.quick))
    with scratch() as folder:
        for name in wanted:
            {**PARTS, **CROWDS}[name](report, effort, folder)
    report.finish(chosen.json)


if __name__ == "__main__":
    main()
