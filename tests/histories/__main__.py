"""Histories for as long as one likes: run from the folder `tests`, `python -m histories --help`."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from histories import checks
from histories.faults import KINDS, kinds_for
from histories.history import History
from histories.run import Plan, observed


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m histories", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long clients work, in all (60)")
    parser.add_argument("--part", type=float, default=60, help="after how many of them a new store is begun (60)")
    parser.add_argument("--replicas", type=int, default=2, choices=(1, 2, 3), help="gateways on one database (2)")
    parser.add_argument("--store", default="postgres", choices=("memory", "sqlite", "postgres"))
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--payers", type=int, default=2, help="agents whose calls need an approval (2)")
    parser.add_argument("--pause", type=float, default=0.06, help="seconds that a client thinks, on average (0.06)")
    parser.add_argument(
        "--faults",
        default="all",
        help=f"all, none, or some of {', '.join(KINDS)}; all has neither failover nor forgotten",
    )
    parser.add_argument("--longest", type=float, default=5.0, help="seconds that a fault lasts, at most (5)")
    parser.add_argument("--rest", type=float, default=1.5, help="seconds between two faults, on average (1.5)")
    parser.add_argument("--concurrency", choices=("tree", "node"), help="drawn from the seed if not given")
    parser.add_argument("--seed", default=os.environ.get("HISTORIES_SEED"), help="draws as before (HISTORIES_SEED)")
    parser.add_argument("--patience", type=float, default=45, help="how long replicas may take to be ready again (45)")
    parser.add_argument("--until-found", action="store_true", help="stop at the first part that finds something")
    parser.add_argument("--save", type=Path, help="a folder for the histories, as JSON Lines")
    return parser.parse_args()


def main() -> int:
    asked = _arguments()
    seed = asked.seed or secrets.token_hex(4)
    kinds = {"all": kinds_for(asked.store), "none": ()}.get(asked.faults, asked.faults.split(","))
    left, part, is_bad = asked.seconds, 0, False
    print(f"seed {seed}: {asked.store}, {asked.replicas} replicas, faults: {', '.join(kinds) or 'none'}", flush=True)
    while left > 0 and not (is_bad and asked.until_found):
        part += 1
        plan = Plan(
            seed=f"{seed}/{part}" if asked.seconds > asked.part else seed,
            store=asked.store,
            replicas=asked.replicas,
            clients=asked.clients,
            payers=asked.payers,
            seconds=min(left, asked.part),
            pause=asked.pause,
            faults=kinds,
            longest=asked.longest,
            rest=asked.rest,
            concurrency=asked.concurrency,
            patience=asked.patience,
        )
        left -= plan.seconds
        began = time.monotonic()
        with TemporaryDirectory(prefix="histories-") as folder:
            history = anyio.run(observed, plan, Path(folder))
        found = checks.findings(history)
        print(_summary(plan, history, time.monotonic() - began), flush=True)
        if found:
            is_bad = True
            print(checks.told(found), flush=True)
        if asked.save is not None:
            asked.save.mkdir(parents=True, exist_ok=True)
            history.save(asked.save / f"{plan.seed.replace('/', '-')}.jsonl")
    return int(is_bad)


def _summary(plan: Plan, history: History, seconds: float) -> str:
    fates = Counter(one.fate for one in history.operations)
    faults = Counter(fault.kind for fault in history.faults)
    tools = Counter(one.tool for one in history.operations if one.fate == "took")
    states = Counter(one["state"] for one in history.approvals)
    return (
        f"{plan.seed}: {len(history.operations)} changes in {plan.seconds:g} s of work ({seconds:.0f} s in all): "
        f"{dict(fates)}; took {dict(tools)}; {len(history.reads)} reads; {len(history.arrivals)} payments "
        f"{dict(states)}; faults {dict(faults)}"
    )


if __name__ == "__main__":
    sys.exit(main())
