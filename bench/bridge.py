"""`python -m bench.bridge [--quick] [--json FILE]`: the bridge beside its limit, the bare SDK and the public peer."""

import argparse
import contextlib
import gc
import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.measure import Round, Series, interleaved, resident_mb
from bench.peers import PEER, HttpServer, Process, StdioServer, Worker, peer_python
from bench.report import Report, circumstances, say
from bench.wire import ERAS, LEGACY, MODERN, WrongAnswer, call, drive, listing

PIPELINE = "pipeline"
NAMES = ("ours", "bare", "limit", "sdk", "lean", "peer")
SERVERS = ("ours", "sdk", "peer")
CLIENTS = 16
FEW = 10
Results = dict[str, Series]
Values = dict[str, float | None]


@dataclass(frozen=True, kw_only=True)
class Effort:
    rounds: int
    slice: float
    calls: int
    starts: int
    in_flight: tuple[int, ...]
    budget: float


FULL = Effort(rounds=12, slice=0.12, calls=100, starts=2, in_flight=(1, CLIENTS), budget=9)
QUICK = Effort(rounds=4, slice=0.08, calls=60, starts=1, in_flight=(1,), budget=4)


def speaking(era: str, names: tuple[str, ...] = NAMES) -> list[str]:
    """The peer speaks only the older era."""
    return [name for name in names if name != "peer" or era == LEGACY]


@contextlib.contextmanager
def closing(processes: dict[str, Process]) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes.values():
            process.close()


FEWER = {
    ("HTTP", MODERN): 10,
    ("HTTP", LEGACY): 8,
    ("stdio", MODERN): 8,
    ("stdio", LEGACY): 8,
    ("memory", MODERN): 5,
    ("memory", LEGACY): 5,
}
"""How many times less CPU than the peer a call is to take; in memory there is no lane."""


class Bench:
    """Asks one question after the other and keeps what later questions need."""

    def __init__(self, effort: Effort, report: Report) -> None:
        self.effort, self.report = effort, report
        self.counts: list[int] = []
        self.http: dict[tuple[str, int], Results] = {}
        self.stdio: dict[tuple[str, int], Results] = {}
        self.memory: dict[tuple[str, int], Results] = {}

    def run(self) -> None:
        thousand = self.start_up()
        self.pipeline = Worker("ours", FEW)
        with closing({**thousand, "pipeline": self.pipeline}):
            self.pipeline.wait()
            self._ask_everything(thousand)
        self.report.facts["rounds"] = f"{min(self.counts)} to {max(self.counts)} per question, as time allowed"
        self.calls()
        self.against_the_peer()
        self.net_of_the_module()
        self.requirements()

    def _ask_everything(self, thousand: dict[str, HttpServer]) -> None:
        say("100 tools: servers")
        hundred = {name: HttpServer(name, 100) for name in NAMES}
        with closing(dict(hundred)):
            for server in hundred.values():
                server.wait()
            self.over_http(hundred)
            self.answers = self.concurrent_clients(hundred)
            self.lists(hundred, thousand)
            self.resident(hundred, thousand)
        self.over_stdio()
        self.in_memory()

    def _rounds(self, names: Iterable[str], measure: Callable[[str], Round]) -> Results:
        """The named subjects and, as one of them, apcore's pipeline alone."""

        def measured(name: str) -> Round:
            return self.pipeline.time("executor", calls=50) if name == PIPELINE else measure(name)

        effort = self.effort
        results = interleaved([*names, PIPELINE], measured, rounds=effort.rounds, budget=effort.budget)
        self.counts.append(len(results[PIPELINE].rounds))
        return results

    def start_up(self) -> dict[str, HttpServer]:
        """Start one after the other, as nothing else here may run meanwhile; the last ones stay."""
        say("start-up with 1,000 modules")
        times: dict[str, list[dict[str, float]]] = {"ours": [], "peer": []}
        last: dict[str, HttpServer] = {}
        for _ in range(self.effort.starts):
            for name, stages in times.items():
                if name in last:
                    last.pop(name).close()
                last[name] = HttpServer(name, 1000)
                last[name].wait()
                stages.append(last[name].stages)
        table = self.report.table("Start-up: 1,000 modules of 10 properties, seconds until the first answer")
        for stage, what in (
            ("serve", "from `serve()`"),
            ("cpu", "… CPU"),
            ("process", "from the start of the process"),
        ):
            values = {name: statistics.median(each[stage] for each in stages) for name, stages in times.items()}
            ratio = values["ours"] / values["peer"]
            judged = {"target": "≤ 0.70 of peer", "met": ratio <= 0.7} if stage == "cpu" else {}
            table.add(what, dict(values), ratio=ratio, **judged)
        self.starting = table
        for name in ("sdk", "limit"):
            last[name] = HttpServer(name, 1000)
        for name in ("sdk", "limit"):
            last[name].wait()
        return last

    def over_http(self, servers: dict[str, HttpServer]) -> None:
        for era in ERAS:
            for clients in (1, CLIENTS):
                say(f"tools/call over HTTP, {era}, {clients} clients")
                self.http[era, clients] = self._http_calls(servers, era, clients)

    def _http_calls(self, servers: dict[str, HttpServer], era: str, clients: int) -> Results:
        connections = {name: [servers[name].connect(era) for _ in range(clients)] for name in speaking(era)}

        def measure(name: str) -> Round:
            return servers[name].cpu_of(
                lambda: drive(connections[name], lambda: call(era), seconds=self.effort.slice, most=2000)
            )

        try:
            return self._rounds(connections, measure)
        finally:
            for each in connections.values():
                for one in each:
                    one.close()

    def concurrent_clients(self, servers: dict[str, HttpServer]) -> Values:
        """The share of rounds with right answers only, when every client counts its requests from one."""
        say("equal request ids at once")
        return {name: statistics.fmean(self._all_right(servers[name]) for _ in range(3)) for name in SERVERS}

    def _all_right(self, server: HttpServer) -> float:
        connections = [server.connect(LEGACY) for _ in range(CLIENTS)]
        numbers = itertools.count(1000)
        try:
            drive(connections, lambda: call(LEGACY, 1, next(numbers)), seconds=1, most=CLIENTS, wait=3)
        except (WrongAnswer, TimeoutError, ConnectionError, StopIteration):
            return 0
        finally:
            for one in connections:
                one.close()
        return 100

    def lists(self, hundred: dict[str, HttpServer], thousand: dict[str, HttpServer]) -> None:
        table = self.report.table("tools/list over HTTP, milliseconds (p50)")
        for tools, servers in ((100, hundred), (1000, thousand)):
            for era in ERAS:
                say(f"tools/list, {tools} tools, {era}")
                results = self._http_lists(servers, era, tools)
                p50 = {name: series.p50 for name, series in results.items()}
                ratio = results["ours"].cpu / results["sdk"].cpu
                cpu = results["ours"].cpu
                judged = {"target": "≤ 3 ms of ours", "met": cpu <= 3} if tools == 1000 else {}
                table.add(f"{tools:,} tools, {era}", {**p50}, ratio=p50["ours"] / p50["sdk"])
                table.add("… server CPU", {name: each.cpu for name, each in results.items()}, ratio=ratio, **judged)

    def _http_lists(self, servers: dict[str, HttpServer], era: str, tools: int) -> Results:
        connections = {name: [servers[name].connect(era)] for name in speaking(era, ("limit", *SERVERS))}

        def measure(name: str) -> Round:
            asking = partial(drive, connections[name], lambda: listing(era), most=40, tools=tools)
            return servers[name].cpu_of(lambda: asking(seconds=self.effort.slice))

        try:
            return self._rounds(connections, measure)
        finally:
            for one in connections.values():
                one[0].close()

    def resident(self, hundred: dict[str, HttpServer], thousand: dict[str, HttpServer]) -> None:
        table = self.report.table("Resident memory of the server, MB")
        for tools, servers in ((100, hundred), (1000, thousand)):
            names = ("ours", "limit", "sdk", "peer")
            added = {name: servers[name].rss_ready - servers[name].rss_before for name in names}
            now = {name: resident_mb(servers[name].pid) for name in names}
            table.add(f"{tools:,} tools, after the calls above", dict(now), ratio=now["ours"] / now["peer"])
            table.add("… added from `serve()` until ready", dict(added), ratio=added["ours"] / added["peer"])

    def over_stdio(self) -> None:
        for era in ERAS:
            say(f"tools/call over stdio, {era}")
            servers = {name: StdioServer(name, FEW, era) for name in speaking(era)}
            with closing(dict(servers)):
                for server in servers.values():
                    server.wait()
                for in_flight in self.effort.in_flight:
                    self.stdio[era, in_flight] = self._stdio_calls(servers, era, in_flight)

    def _stdio_calls(self, servers: dict[str, StdioServer], era: str, in_flight: int) -> Results:
        def measure(name: str) -> Round:
            asking = partial(servers[name].pipe.drive, lambda: call(era), in_flight=in_flight, most=1000)
            return servers[name].cpu_of(lambda: asking(seconds=self.effort.slice / 2))

        return self._rounds(servers, measure)

    def in_memory(self) -> None:
        say("workers")
        workers = {name: Worker(name, FEW) for name in NAMES}
        with closing(dict(workers)):
            for worker in workers.values():
                worker.wait()
            for era in ERAS:
                for in_flight in self.effort.in_flight:
                    say(f"tools/call in memory, {era}, {in_flight} at once")

                    def measure(name: str, e: str = era, n: int = in_flight) -> Round:
                        count = self.effort.calls // (5 if name == "peer" else 1)
                        return workers[name].ask(e, [call(e) for _ in range(max(count, n))], n)

                    self.memory[era, in_flight] = self._rounds(speaking(era), measure)
            self._inside(workers)

    def _inside(self, workers: dict[str, Worker]) -> None:
        say("executor, router, build_tools")
        both, effort = ("ours", "peer"), self.effort
        run = partial(interleaved, both, rounds=max(5, effort.rounds), budget=effort.budget)
        self.executor: Results = run(lambda name: workers[name].time("executor", calls=200))
        self.router: Results = run(lambda name: workers[name].time("router", calls=250))
        self.builds: dict[str, dict[str, float]] = {}
        timings: dict[str, list[dict[str, float]]] = {name: [] for name in both}
        for _ in range(max(5, effort.rounds)):
            for name in both:
                timings[name].append(workers[name].do("build", modules=100))
        for name in both:
            self.builds[name] = {
                key: statistics.median(each[key] for each in timings[name]) for key in timings[name][0]
            }
        alone = workers["ours"].do("build", modules=1000)["definitions"] / 1000
        self.starting.add("apcore's `get_definition` alone, CPU", {"limit": alone})
        self.weights = {name: workers[name].do("weigh", modules=100)["mb"] for name in both}

    def calls(self) -> None:
        table = self.report.table("tools/call: milliseconds and calls per second (ratio: how many times the peer's)")
        for where, results in self._everywhere():
            for (era, clients), series in results.items():
                what = f"{where} {era}, {clients} at once"
                peer, ours = series.get("peer"), series["ours"]
                table.add(
                    f"{what}: p50",
                    {name: each.p50 for name, each in series.items()},
                    ratio=peer.p50 / ours.p50 if peer else None,
                )
                table.add("… p99", {name: each.p99 for name, each in series.items()})
                table.add("… server CPU", {name: each.cpu for name, each in series.items()})
                rates = {name: each.rate for name, each in series.items()}
                table.add("… calls/s", dict(rates), ratio=rates["ours"] / rates["peer"] if peer else None)

    def _everywhere(self) -> list[tuple[str, dict[tuple[str, int], Results]]]:
        return [("HTTP", self.http), ("stdio", self.stdio), ("memory", self.memory)]

    def against_the_peer(self) -> None:
        table = self.report.table("Milliseconds per call against the peer, one client")
        for where, results in self._everywhere():
            peer = results[LEGACY, 1]["peer"]
            for era in (LEGACY, MODERN):
                ours = results[era, 1]["ours"]
                what = f"{where}, {era}" + (" against the peer's only era" if era == MODERN else "")
                table.add(f"{what}: p50", {"ours": ours.p50, "peer": peer.p50}, ratio=peer.p50 / ours.p50)
                ratio = peer.cpu / ours.cpu
                least = FEWER[where, era]
                judged = {"target": f"≥ {least}× fewer", "met": ratio >= least}
                table.add("… server CPU", {"ours": ours.cpu, "peer": peer.cpu}, ratio=ratio, **judged)

    def net_of_the_module(self) -> None:
        """The executor's CPU is taken off each of our calls; `bare` is the same without it in the first place."""
        title = "Calls per CPU second of the server, a module's own cost taken out (ratio to the bare SDK)"
        table = self.report.table(title)
        table.add("Executor.call_async alone, p50 ms", {name: each.p50 for name, each in self.executor.items()})
        table.add("… CPU ms", {name: each.cpu for name, each in self.executor.items()})
        for where, results in self._everywhere():
            for (era, clients), series in results.items():
                rates: Values = {name: 1000 / each.cpu for name, each in series.items() if name not in ("bare", "peer")}
                net, bare = 1000 / (series["ours"].cpu - series[PIPELINE].cpu), 1000 / series["bare"].cpu
                sdk, lean = 1000 / series["sdk"].cpu, 1000 / series["lean"].cpu
                judged = {"ratio": net / sdk, "target": "≥ 0.80 of bare SDK", "met": net >= 0.8 * sdk}
                table.add(f"{where} {era}, {clients} at once, subtracted", {**rates, "bare": net}, **judged)
                table.add("… measured without the pipeline", {"bare": bare}, ratio=bare / sdk)
                table.add("… the same against the lean SDK", {"bare": bare}, ratio=bare / lean)

    def requirements(self) -> None:
        table = self.report.table("Requirements of the specification")
        tools = {name: each["tools"] for name, each in self.builds.items()}
        definitions = {name: each["definitions"] for name, each in self.builds.items()}
        net = {name: each["net"] for name, each in self.builds.items()}
        table.add(
            "NFR-PERF-001 build_tools, 100 × 10 properties, CPU ms",
            dict(tools),
            target="≤ peer",
            met=tools["ours"] <= tools["peer"],
        )
        table.add("… of which get_definition", dict(definitions))
        table.add("… net of it", dict(net), target="≤ 5 ms", met=net["ours"] <= 5)
        router = {name: each.p50 for name, each in self.router.items()}
        mean = {
            name: statistics.fmean(t for r in each.rounds for t in r.latencies) for name, each in self.router.items()
        }
        table.add("NFR-PERF-002 router overhead, ms (p50)", dict(router), target="< 0.1 ms", met=router["ours"] < 0.1)
        table.add("… mean", dict(mean), target="< 5 ms", met=mean["ours"] < 5)
        heavy = dict(self.weights)
        table.add("NFR-PERF-003 100 tools, MB", dict(heavy), target="< 10 MB", met=heavy["ours"] < 10)
        table.add(
            f"NFR-PERF-004 rounds of {CLIENTS} clients all answered right, equal ids, %",
            self.answers,
            target="100 %",
            met=self.answers["ours"] == 100,
        )


def facts(quick: bool) -> dict[str, str]:
    told = circumstances(quick, ("apcore", "mcp", "starlette", "uvicorn"), f"peer {PEER}")
    return {**told, "GC": "on in the servers, as they ship; off in the client"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bridge", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter and fewer rounds, for development")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    arguments = parser.parse_args()
    peer_python()
    report = Report(facts(arguments.quick))
    gc.disable()
    Bench(QUICK if arguments.quick else FULL, report).run()
    report.finish(arguments.json)


if __name__ == "__main__":
    main()
