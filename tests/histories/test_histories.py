"""Histories of real gateways while things break; `python -m histories` runs them for as long as one likes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from histories.checks import findings, told
from histories.faults import kinds_for
from histories.run import Plan, observed
from services.postgres import Postgres

pytestmark = pytest.mark.anyio


def plan(seed: str, **form: Any) -> Plan:
    """A plan whose draws are those of the environment's seed, if it names one."""
    drawn = Plan(seed=os.environ.get("HISTORIES_SEED", seed), **form)
    return replace(drawn, faults=drawn.faults or kinds_for(drawn.store))


async def check(wanted: Plan, folder: Path, postgres: Postgres | None = None) -> None:
    """Run it; a seed that found something is told."""
    print(wanted)
    found = findings(await observed(wanted, folder, postgres))
    assert not found, f"seed {wanted.seed}: {told(found)}"


async def test_one_process_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    await check(plan("one", store="sqlite", seconds=6), tmp_path)


@pytest.mark.services
@pytest.mark.parametrize(("seed", "replicas", "seconds"), [("pair", 2, 14), ("three", 3, 8)])
async def test_replicas_keep_what_they_acknowledged(
    seed: str, replicas: int, seconds: float, tmp_path: Path, postgres: Postgres
) -> None:
    await check(plan(seed, replicas=replicas, seconds=seconds), tmp_path, postgres)


@pytest.mark.services
async def test_a_failover_to_a_standby_that_is_behind_loses_nothing_without_saying_so(tmp_path: Path) -> None:
    await check(plan("failover", seconds=10, faults=["failover"]), tmp_path)
