"""One replica on PostgreSQL beside one on SQLite and one in memory."""

from functools import partial

from bench.gates import Ours
from bench.gateway import Lane, write
from bench.measure import Round, interleaved
from bench.pool import running
from bench.replicas.fleet import AGENTS, Setting, project
from bench.report import Report, say
from bench.store import sync


def stores(report: Report, setting: Setting) -> None:
    effort, folder = setting.effort, setting.folder
    places = {"memory": "memory", "sqlite": f"sqlite:{folder}/one.db", "postgres": setting.database.fresh()}
    gates = {name: Ours(name, folder / f"store-{name}", project(place)) for name, place in places.items()}
    one = sync(folder / "sync") * 1000
    table = report.table(f"Mutations over HTTP, one replica (ratio to SQLite; a sync of the disk takes {one:.2f} ms)")
    with running(*gates.values()):
        for count in (len(AGENTS), 1):
            say(f"mutations, {count} at a time")
            lanes = {name: [Lane(gate, agent) for agent in AGENTS[:count]] for name, gate in gates.items()}
            spent = 0.0

            def measure(name: str) -> Round:
                nonlocal spent
                before = setting.database_cpu
                done = gates[name].cpu_of(partial(write, lanes[name], effort.slice))  # noqa: B023
                spent += setting.database_cpu - before if name == "postgres" else 0.0
                return done

            found = interleaved(gates, measure, rounds=effort.rounds, budget=effort.budget)
            if count > 1:
                setting.figures["change"] = found["postgres"].cpu
            rates = {name: each.rate for name, each in found.items()}
            what = f"{count} writers" if count > 1 else "one writer"
            table.add(f"{what}: mutations/s", dict(rates), ratio=rates["postgres"] / rates["sqlite"])
            table.add("… ms, p50", {name: each.p50 for name, each in found.items()})
            table.add("… ms, p99", {name: each.p99 for name, each in found.items()})
            table.add("… ms of the gateway's CPU", {name: each.cpu for name, each in found.items()})
            done = sum(len(each.latencies) for each in found["postgres"].rounds)
            warm_up = len(found["postgres"].rounds) / (len(found["postgres"].rounds) + 1)
            table.add("… ms of the database's CPU", {"postgres": 1000 * spent * warm_up / done})
