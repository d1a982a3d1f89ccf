"""What the tests of the official conformance suite share: its run, its results, and what no server of ours has."""

import json
import re
from pathlib import Path

from e2e.node_tools import CONFORMANCE, node

_TASKS = "tasks are an extension that the SDK we build on does not have"
TASKS = dict.fromkeys(
    (
        "tasks-lifecycle",
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-dispatch-and-envelope",
        "tasks-required-task-error",
        "tasks-mrtr-composition",
    ),
    _TASKS,
)
RESUMING = {"server-sse-polling": "resumable streams need a store of past events; here a call ends with its stream"}
"""Scenarios that fail, and why that is right."""

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


def assert_whole(url: str, revision: str, results: Path) -> None:
    """Every scored scenario of the suite passes at the address."""
    done = node(CONFORMANCE, "server", "--url", url, "--requirements", revision, "-o", results)
    assert done.returncode == 0, done.stdout[-6000:]
    failures = checks(results, "FAILURE")
    failed = {name: ids for name, ids in failures.items() if ids}
    assert set(failed) == set(NOT_APPLICABLE[revision]), failed
    assert len(failures) - len(failed) >= SCORED[revision], sorted(failures)
    warned = {id for name, ids in checks(results, "WARNING").items() if name not in failed for id in ids}
    assert warned == set(WARNED[revision]), f"a SHOULD that the suite only warns about is a must for us: {warned}"


def checks(results: Path, status: str) -> dict[str, list[str]]:
    """Scenario to the ids of its checks that have the status."""
    return {
        re.sub(r"^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$", r"\1", file.parent.name): [
            check["id"] for check in json.loads(file.read_text()) if check["status"] == status
        ]
        for file in results.glob("server-*/checks.json")
    }
