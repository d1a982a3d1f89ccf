"""The official conformance suite against our bridge, for both protocol eras."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.conformance import RESUMING, TASKS, checks
from e2e.node_tools import CONFORMANCE, node, require
from e2e.servers import Address, free_port, http_child

pytestmark = pytest.mark.node

DEFS = "FR-SCHEMA-002 wants $defs inlined, so they are not there to be preserved (the suite does not score it)"
NOT_APPLICABLE = {
    "2025-11-25": {"json-schema-2020-12": DEFS, **RESUMING},
    "2026-07-28": {"json-schema-2020-12": DEFS, **TASKS},
}
"""Scenarios that fail, and why that is right; none of them is scored. One that starts to pass fails the test."""

WARNED = {
    "2025-11-25": {},
    "2026-07-28": {
        "sep-2322-ignore-unexpected-params": "the suite answers a question that was never asked, with no requestState; "
        "we suspend the call that asks, so an answer without its state is a new call"
    },
}

SCORED = {"2025-11-25": 30, "2026-07-28": 37}


@pytest.fixture(scope="module")
def server() -> Iterator[Address]:
    require(CONFORMANCE)
    port = free_port()
    with http_child([sys.executable, "-m", "e2e.conformance_server", str(port)], port) as (_, address):
        yield address


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.requirement("NFR-COMPAT-003", "NFR-COMPAT-004")
def test_every_scored_scenario_of_the_suite_passes(server: Address, tmp_path: Path, revision: str) -> None:
    done = node(CONFORMANCE, "server", "--url", server.mcp, "--requirements", revision, "-o", tmp_path)
    assert done.returncode == 0, done.stdout[-6000:]
    failed = {name: ids for name, ids in checks(tmp_path, "FAILURE").items() if ids}
    assert set(failed) == set(NOT_APPLICABLE[revision]), failed
    assert len(checks(tmp_path, "FAILURE")) - len(failed) >= SCORED[revision]
    warned = {id for name, ids in checks(tmp_path, "WARNING").items() if name not in failed for id in ids}
    assert warned == set(WARNED[revision]), "a SHOULD that the suite only warns about is a must for us"
