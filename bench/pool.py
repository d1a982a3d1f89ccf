"""`python -m bench.pool [--quick] [--json FILE]`: resolving, calling through, and starting a pool, beside its peers."""

import argparse
import asyncio
import contextlib
import cProfile
import gc
import json
import pstats
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from apcore import CancelToken, Context, Executor

from bench.hop import ROOT, STDIO, child
from bench.measure import Round, Series, cpu_seconds, interleaved, percentile, resident_mb, timed
from bench.modules import ADD, TOTAL, Total, registry_of_size
from bench.peers import free_port
from bench.report import STARTED, Report, circumstances, say
from bench.subjects.ours import Direct
from bench.wire import LEGACY, MODERN, Connection, Pipe, call, drive
from toolgrove import Config, Grove
from toolgrove.config import AgentConfig
from toolgrove.pool.offer import Offer
from toolgrove.pool.resolve import resolve
from toolgrove.pool.snapshot import PoolSnapshot, SourceState, compose
from toolgrove.types import Annotations, Tool, ToolSpec

FAKE = ROOT / "tests" / "faults" / "upstream.py"
PROXY = "mcp-proxy==0.13.0"
PROXY_HOME = ROOT / ".cache" / "bench" / "mcp-proxy"
LOGS = ROOT / ".cache" / "bench"
WAIT = 60.0
Results = dict[str, Series]


@dataclass(frozen=True, kw_only=True)
class Effort:
    rounds: int
    slice: float
    budget: float
    calls: int


FULL = Effort(rounds=15, slice=0.3, budget=40, calls=500)
QUICK = Effort(rounds=4, slice=0.15, budget=10, calls=200)


# Resolving.


class Nowhere:
    """A source that is never called."""

    name = "nowhere"

    async def call(self, call: Any) -> Any:
        raise NotImplementedError


VERBS = ("get", "list", "search", "create", "update", "delete", "watch", "copy", "move", "tag")


def snapshot_of(count: int) -> PoolSnapshot:
    """So many tools of twenty servers."""
    schema = {"type": "object", "properties": {}}
    offers = []
    for number in range(count):
        server, own = f"server{number % 20:02}", f"{VERBS[number // 20 % 10]}_item{number // 20:04}"
        spec = ToolSpec(
            name=f"{server}_{own}",
            description="A tool.",
            input_schema=schema,
            output_schema={},
            annotations=Annotations(),
            source=server,
        )
        tool = Tool(spec=spec, source=Nowhere(), mutates=number % 3 == 0, kind="mcp", own_name=own, definition=own)
        offers.append(Offer(name=spec.name, own_name=own, source=server, kind="mcp", tool=tool))
    states = {f"server{each:02}": SourceState(name=f"server{each:02}", kind="mcp") for each in range(20)}
    return compose(1, [offers], states)


def patterns_of(snapshot: PoolSnapshot) -> list[str]:
    """Fifty patterns: exact names, prefixes, and globs with a star in the middle."""
    exact = list(snapshot.offers)[:: max(1, len(snapshot.offers) // 20)][:20]
    prefixes = [f"server{each:02}_{VERBS[each % 10]}_*" for each in range(20)]
    globs = [f"server*_{verb}_item*{number}" for number, verb in enumerate(VERBS)]
    return [*exact, *prefixes, *globs]


def resolving(report: Report, effort: Effort) -> None:
    table = report.table("Resolving an agent with 50 patterns, milliseconds of CPU in the best quarter of runs")
    masks = {f"server{each:02}": {"mask": ["delete_*"]} for each in range(20)}
    also = {"deny": ["*_delete_*"], "mcp": masks, "approve": ["*_update_*"], "role": "editor"}
    for count, most in ((1_000, 1.5), (10_000, 15.0)):
        say(f"resolve: {count:,} tools")
        snapshot = snapshot_of(count)
        patterns = patterns_of(snapshot)
        plain = AgentConfig.model_validate({"tools": patterns})
        busy = AgentConfig.model_validate({"tools": patterns, **also})
        cold = _resolved(snapshot, plain, effort)
        table.add(f"{count:,} tools, cold", {"ours": cold}, target=f"≤ {most:g} ms", met=cold <= most)
        table.add("… with deny, approve and 20 masks besides", {"ours": _resolved(snapshot, busy, effort)})
    again = asyncio.run(cached_agent(effort)) * 1000
    table.add("`grove.agent` again, 1,000 tools, µs", {"ours": again}, target="≤ 10 µs", met=again <= 10)


def _resolved(snapshot: PoolSnapshot, agent: AgentConfig, effort: Effort) -> float:
    """Of the best quarter of runs: neighbours on the machine can only add to it."""

    def cold() -> None:
        re.purge()  # no pattern was compiled before
        if not resolve(snapshot, "bench", agent).specs:
            raise RuntimeError("the agent has no tools")

    cold()
    gc.collect()
    return percentile([timed(cold) for _ in range(effort.rounds * 4)], 25)


async def cached_agent(effort: Effort) -> float:
    """Milliseconds of CPU of `grove.agent` when neither pool nor agent changed."""
    say("grove.agent, cached")
    server = {"command": sys.executable, "args": ["-I", "-S", str(FAKE), "giant_list", "-", "1000"]}
    agents = {"bench": {"role": "editor", "tools": [f"up_tool_{each}*" for each in range(50)]}}
    config = Config.model_validate({"mcpServers": {"up": server}, "agents": agents, "startupBudget": 20})
    async with Grove(config) as grove:
        assert len((await grove.agent("bench")).tools) > 50
        taken = []
        for _ in range(effort.rounds):
            begun = time.process_time()
            for _ in range(1000):
                await grove.agent("bench")
            taken.append(time.process_time() - begun)
    return percentile(taken, 25)


# Calling through.


class Hop:
    """A hop in a process of its own."""

    def __init__(self, name: str, arguments: list[str], *, port: int | None = None) -> None:
        self.name, self.port = name, port
        with open(LOGS / f"hop-{name}.log", "ab") as log:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(arguments, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=log)

    @classmethod
    def over_http(cls, name: str, module: str, era: str, upstream: str) -> "Hop":
        port = free_port()
        arguments = [sys.executable, "-m", "bench.hop", module, "http", str(port), era, upstream]
        return cls(name, arguments, port=port)

    @classmethod
    def over_stdio(cls, name: str, module: str, era: str) -> "Hop":
        return cls(name, [sys.executable, "-m", "bench.hop", module, STDIO, era, STDIO])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def wait(self) -> None:
        """Until it listens."""
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", self.port or 0), timeout=WAIT).close()
                return
            if self._process.poll() is not None or time.monotonic() - STARTED > 1_000:
                raise RuntimeError(f"{self.name} did not start; see its log")
            time.sleep(0.02)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=WAIT) as answer:
            return json.load(answer)

    def cpu_of(self, work: Callable[[], Round], *others: "Hop") -> Round:
        """A round with the CPU that it took here, in our children and in the other hops on the way."""
        hops = {self, *others}
        before = sum(tree_cpu(hop._process.pid) for hop in hops)
        done = work()
        cpu = sum(tree_cpu(hop._process.pid) for hop in hops) - before
        return Round(latencies=done.latencies, seconds=done.seconds, cpu=cpu)

    def connect(self, era: str) -> Connection:
        return Connection(self.port or 0, "/mcp/" if self.name == "mcp_proxy" else "/mcp", era)

    def pipe(self, era: str) -> Pipe:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        return Pipe(stdin, stdout, era)  # type: ignore[arg-type]

    def close(self) -> None:
        """End it gently first, so that it can end its own child."""
        streams = self._process.stdin, self._process.stdout
        self._process.terminate() if self.port else streams[0] and streams[0].close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in filter(None, streams):
            with contextlib.suppress(OSError):
                stream.close()


def tree_cpu(pid: int) -> float:
    """CPU seconds of a process and all below it; none where it has just ended."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return cpu_seconds(pid) + sum(tree_cpu(int(child)) for child in children)
    except OSError:
        return 0.0


@contextlib.contextmanager
def running(*hops: Hop) -> Iterator[None]:
    try:
        for hop in hops:
            if hop.port:
                hop.wait()
        yield
    finally:
        for hop in reversed(hops):
            hop.close()


def calls_of(name: str, era: str) -> Callable[[], dict[str, Any]]:
    """Calls of the adding tool, under the name that it has behind this hop."""
    tool = "up_math_add" if name == "ours" else ADD

    def make() -> dict[str, Any]:
        made = call(era)
        made["params"]["name"] = tool
        return made

    return make


def through_http(report: Report, effort: Effort) -> None:
    table = report.table("A call over HTTP to an upstream over HTTP, milliseconds (p50; ratio to the direct call)")
    for kind in ("default", "lean"):
        for era in (MODERN, LEGACY):
            what = f"{era}, {'SDK as documented' if kind == 'default' else 'SDK with plain JSON'}"
            say(f"HTTP to HTTP: {what}")
            direct = Hop.over_http("direct", "upstream", era, kind)
            with running(direct):
                modules = (("limit", "limit"), ("ours", "ours"), ("fastmcp", "fastmcp_proxy"))
                hops = [Hop.over_http(name, module, era, direct.url) for name, module in modules]
                with running(*hops):
                    results, asked = _http_calls([direct, *hops], direct, era, effort)
                    if kind == "default" and era == MODERN:
                        where_it_goes(report, next(hop for hop in hops if hop.name == "ours"), era, effort)
            add_calls(table, what, results, most=3.5)
            one = asked["ours"] == 1
            table.add("… upstream requests per call", dict(asked), target="exactly 1", met=one)


def _http_calls(hops: list[Hop], upstream: Hop, era: str, effort: Effort) -> tuple[Results, dict[str, float]]:
    connections = {hop.name: hop.connect(era) for hop in hops}
    by_name = {hop.name: hop for hop in hops}
    asked: dict[str, float] = {}
    before = {}

    def measure(name: str) -> Round:
        asking = partial(drive, [connections[name]], calls_of(name, era), seconds=effort.slice, most=2000)
        return by_name[name].cpu_of(asking, upstream)

    try:
        for name in connections:  # warm, then count
            measure(name)
            before[name] = upstream.get("count")
            done = measure(name)
            asked[name] = round((upstream.get("count") - before[name]) / len(done.latencies), 2)
        return interleaved(connections, measure, rounds=effort.rounds, budget=effort.budget), asked
    finally:
        for one in connections.values():
            one.close()


def add_calls(table: Any, what: str, results: Results, *, most: float) -> None:
    p50 = {name: series.p50 for name, series in results.items()}
    ratio = p50["ours"] / p50["direct"]
    table.add(what, dict(p50), ratio=ratio, target=f"≤ {most:g}× direct", met=ratio <= most)
    table.add("… times the direct call", {name: each / p50["direct"] for name, each in p50.items()})
    table.add("… p99", {name: series.p99 for name, series in results.items()})
    quiet = {name: percentile([each.p50 for each in series.rounds], 25) for name, series in results.items()}
    table.add("… p50 in the quieter rounds", dict(quiet), ratio=quiet["ours"] / quiet["direct"])
    cpu = {name: series.cpu for name, series in results.items()}
    table.add("… CPU of every process on the way", dict(cpu), ratio=cpu["ours"] / cpu["direct"])


def where_it_goes(report: Report, ours: Hop, era: str, effort: Effort) -> None:
    """A profile of our own process; the profiler itself makes calls of small functions dearer than they are."""
    connection = ours.connect(era)
    try:
        asking = partial(drive, [connection], calls_of("ours", era), seconds=WAIT, most=effort.calls)
        asking()
        ours.get("profile")
        done = asking()
        spent = ours.get("profile")
    finally:
        connection.close()
    table = report.table("Where the time of a call through us goes over HTTP, % of our own CPU (by profile)")
    total = sum(spent.values())
    for bucket, seconds in spent.items():
        table.add(bucket, {"ours": 100 * seconds / total})
    table.add("all of it, ms per call under the profiler", {"ours": 1000 * total / len(done.latencies)})


def through_stdio(report: Report, effort: Effort) -> None:
    table = report.table("A call over stdio to an upstream over stdio, milliseconds (p50; ratio to the direct call)")
    for era in (MODERN, LEGACY):
        say(f"stdio to stdio: {era}")
        direct = Hop("direct", child(era))
        modules = (("limit", "limit"), ("ours", "ours"), ("fastmcp", "fastmcp_proxy"))
        hops = [direct, *(Hop.over_stdio(name, module, era) for name, module in modules)]
        with running(*hops):
            results = _stdio_calls(hops, era, effort)
        add_calls(table, era, results, most=3.0)


def _stdio_calls(hops: list[Hop], era: str, effort: Effort) -> Results:
    pipes = {hop.name: hop.pipe(era) for hop in hops}
    by_name = {hop.name: hop for hop in hops}

    def measure(name: str) -> Round:
        asking = partial(pipes[name].drive, calls_of(name, era), in_flight=1, seconds=effort.slice, most=2000)
        return by_name[name].cpu_of(asking)

    return interleaved(pipes, measure, rounds=effort.rounds, budget=effort.budget)


def through_both(report: Report, effort: Effort) -> None:
    """HTTP in front of a child process: what `mcp-proxy` is made for; it speaks the handshake era only."""
    title = "A call over HTTP to an upstream over stdio, milliseconds (p50; ratio to the direct call over stdio)"
    table = report.table(title)
    say(f"HTTP to stdio: {LEGACY}")
    direct = Hop("direct", child(LEGACY))
    modules = (("ours", "ours"), ("fastmcp", "fastmcp_proxy"))
    hops = [Hop.over_http(name, module, LEGACY, STDIO) for name, module in modules]
    program = mcp_proxy()
    if program is not None:
        port = free_port()
        command = [program, "--log-level", "ERROR", "--port", str(port), "--pass-environment", "--", *child(LEGACY)]
        hops.append(Hop("mcp_proxy", command, port=port))
    with running(direct, *hops):
        pipe = direct.pipe(LEGACY)
        connections = {hop.name: hop.connect(LEGACY) for hop in hops}

        def measure(name: str) -> Round:
            make = calls_of(name, LEGACY)
            if name == "direct":
                return pipe.drive(make, in_flight=1, seconds=effort.slice, most=2000)
            return drive([connections[name]], make, seconds=effort.slice, most=2000)

        try:
            names = ["direct", *connections]
            results = interleaved(names, measure, rounds=effort.rounds, budget=effort.budget)
        finally:
            for one in connections.values():
                one.close()
    p50 = {name: series.p50 for name, series in results.items()}
    table.add(LEGACY, dict(p50), ratio=p50["ours"] / p50["direct"])
    table.add("… times ours", {name: each / p50["ours"] for name, each in p50.items()})


def mcp_proxy() -> str | None:
    """The program in an environment of its own, made when it is first needed; None where it cannot be had."""
    program = PROXY_HOME / "bin" / "mcp-proxy"
    if not program.exists():
        uv, python = str(Path(sys.executable).parent / "uv"), str(PROXY_HOME / "bin" / "python")
        try:
            subprocess.run([uv, "venv", "-q", "--clear", "--python", sys.executable, str(PROXY_HOME)], check=True)
            subprocess.run([uv, "pip", "install", "-q", "--python", python, PROXY], check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
    return str(program)


# The gate.


async def gate(report: Report, effort: Effort) -> None:
    """A local call through every step, beside its source alone and apcore's pipeline alone."""
    say("gate")
    registry = registry_of_size(2)
    registry.register(TOTAL, Total())
    executor = Executor(registry)
    config = Config.model_validate({"agents": {"bench": {"role": "editor", "tools": ["*"]}}})
    async with Grove(config, extensions=executor) as whole, Grove(config, extensions=Direct(registry)) as bare:
        through, alone = await whole.agent("bench"), await bare.agent("bench")
        reads, changes = (module.replace(".", "-") for module in (TOTAL, ADD))

        async def trivial(number: int) -> Any:
            return await executor.call_async(ADD, {"a": number, "b": 1})

        async def with_context(number: int) -> Any:
            context: Any = Context.create(cancel_token=CancelToken(), data={})
            return await executor.call_async(ADD, {"a": number, "b": 1}, context)

        async def source_only(number: int) -> Any:
            begun = alone.begin(reads, {"a": number, "b": 1})
            assert begun.tool is not None
            return await begun.tool.source.call(begun)

        subjects: dict[str, Callable[[int], Awaitable[Any]]] = {
            "limit": trivial,
            "with context": with_context,
            "ours": lambda number: through.call(reads, {"a": number, "b": 1}),
            "gated": lambda number: alone.call(reads, {"a": number, "b": 1}),
            "changing": lambda number: alone.call(changes, {"a": number, "b": 1}),
            "source": source_only,
        }
        series = {name: Series() for name in subjects}
        for number in range(effort.rounds + 1):
            for name, subject in subjects.items():
                done = await _timed(subject, effort.calls)
                if number:
                    series[name].rounds.append(done)
        profile = cProfile.Profile(time.thread_time)
        profile.enable()
        await _timed(subjects["gated"], effort.calls)
        profile.disable()
    p50 = {name: each.p50 * 1000 for name, each in series.items()}
    net = p50["gated"] - p50["source"]
    table = report.table("A local call, microseconds (limit: apcore's `Executor.call_async`; net: the gate alone)")
    values = {"ours": p50["ours"], "limit": p50["limit"], "bare": net}
    table.add("p50", dict(values), ratio=net / p50["limit"], target="gate ≤ 30 µs", met=net <= 30)
    cpu = {name: each.cpu * 1000 for name, each in series.items()}
    spent = cpu["gated"] - cpu["source"]
    table.add("… CPU, with all that goes on beside", {"ours": cpu["ours"], "limit": cpu["limit"], "bare": spent})
    given = p50["with context"]
    table.add("… of a call with a context made before", {"limit": given}, ratio=net / given)
    changing = p50["changing"] - p50["source"]
    table.add("… of a module that may change something, on record before it runs", {"bare": changing})
    for step, share in steps_of(profile):
        table.add(f"… {step}, % of the gate by profile", {"bare": share})


def steps_of(profile: cProfile.Profile) -> list[tuple[str, float]]:
    """The share of each step: each contains the next, so what is left between two of them is its own."""
    stats: Any = pstats.Stats(profile)
    within = [
        (cumulative, Path(file).stem)
        for (file, _, function), (_, _, _, cumulative, _) in stats.stats.items()
        if ("toolgrove/call/" in file and (function == "__call__" or function.endswith("_step")))
        or ("toolgrove/pool/" in file and function == "call")
    ]
    within.sort(reverse=True)
    own = [(step, outer - inner) for (outer, step), (inner, _) in pairwise(within)]
    total = sum(seconds for _, seconds in own)
    return [(step, 100 * seconds / total) for step, seconds in own]


async def _timed(subject: Callable[[int], Awaitable[Any]], calls: int) -> Round:
    latencies = []
    gc.collect()
    started, used = time.perf_counter(), time.thread_time()
    for number in range(calls):
        begun = time.perf_counter()
        result = await subject(number)
        latencies.append((time.perf_counter() - begun) * 1000)
        if result != {"sum": number + 1}:
            raise RuntimeError(f"wrong answer: {result}")
    return Round(latencies=latencies, seconds=time.perf_counter() - started, cpu=time.thread_time() - used)


# Many servers.


async def many_servers(report: Report, *, count: int = 100, dead: int = 5, budget: float = 5.0) -> None:
    say(f"{count} servers, {dead} dead")
    modes = {f"s{number:02}": "never_init" if number < dead else "few" for number in range(count)}
    servers = {name: {"command": sys.executable, "args": ["-I", "-S", str(FAKE), mode]} for name, mode in modes.items()}
    agents = {"bench": {"role": "editor", "tools": ["s*"]}}
    config = Config.model_validate({"mcpServers": servers, "agents": agents, "startupBudget": budget})
    before, begun = resident_mb(), time.monotonic()
    async with Grove(config) as grove:
        agent = await grove.agent("bench")
        ready = time.monotonic() - begun
        up = sum(spec.name.endswith("_echo") for spec in agent.tools)
        late = sum(not state.problem for state in agent.receipt.sources.values())
        grown = resident_mb() - before
        answer = await agent.call(f"s{count - 1:02}_echo", {"text": "x"})
        assert "error" not in answer, answer
        leaving = time.monotonic()
    ended = time.monotonic() - leaving
    table = report.table(f"{count} upstream servers over stdio, {dead} of them dead")
    # The dead ones use the budget up to its end, so the moment after it is the earliest there is.
    most = budget + 0.5
    table.add("seconds until ready", {"ours": ready}, target=f"≤ {budget:g} s + 0.5 s", met=ready <= most)
    table.add("servers up by then", {"ours": up}, target=f"{count - dead}", met=up == count - dead == late)
    table.add("seconds to end them all", {"ours": ended}, target="≤ 5 s", met=ended <= 5)
    table.add("memory grown, MB", {"ours": grown})


def facts(quick: bool) -> dict[str, str]:
    peer = PROXY if mcp_proxy() is not None else f"{PROXY} is ABSENT: it could not be installed"
    return circumstances(quick, ("apcore", "mcp", "fastmcp", "starlette", "uvicorn"), peer)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pool", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter and fewer rounds, for development")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    arguments = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    effort = QUICK if arguments.quick else FULL
    report = Report(facts(arguments.quick))
    resolving(report, effort)
    through_http(report, effort)
    through_stdio(report, effort)
    through_both(report, effort)
    asyncio.run(gate(report, effort))
    asyncio.run(many_servers(report))
    report.finish(arguments.json)


if __name__ == "__main__":
    main()
