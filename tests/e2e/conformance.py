"""What the tests of the official conformance suite share: how to read its results, and what no server of ours has."""

import json
import re
from pathlib import Path

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


def checks(results: Path, status: str) -> dict[str, list[str]]:
    """Scenario to the ids of its checks that have the status."""
    return {
        re.sub(r"^server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z$", r"\1", file.parent.name): [
            check["id"] for check in json.loads(file.read_text()) if check["status"] == status
        ]
        for file in results.glob("server-*/checks.json")
    }
