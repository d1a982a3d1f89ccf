"""Runs the parts, and judges them."""

import argparse
from collections.abc import Callable
from pathlib import Path

from bench.gateway import scratch
from bench.pool import LOGS
from bench.replicas.costs import costs
from bench.replicas.fleet import FULL, QUICK, Setting, durable_postgres
from bench.replicas.holds import holds
from bench.replicas.lag import lag
from bench.replicas.races import races
from bench.replicas.reads import reads
from bench.replicas.stores import stores
from bench.replicas.takeover import takeover
from bench.report import Report, circumstances

Part = Callable[[Report, Setting], None]
PARTS: dict[str, Part] = {
    "stores": stores,
    "reads": reads,
    "races": races,
    "lag": lag,
    "takeover": takeover,
    "holds": holds,
    "costs": costs,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.replicas", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter and fewer rounds, for development")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="these parts and no other")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    chosen = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    with scratch() as folder, durable_postgres() as database:
        beside = f"PostgreSQL {database.ask('SHOW server_version')[0][0]}"
        report = Report(circumstances(chosen.quick, ("psycopg", "mcp", "uvicorn"), beside))
        setting = Setting(effort=QUICK if chosen.quick else FULL, folder=folder, database=database)
        for name in chosen.only or PARTS:
            PARTS[name](report, setting)
    report.finish(chosen.json)


if __name__ == "__main__":
    main()
