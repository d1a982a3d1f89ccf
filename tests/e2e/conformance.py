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

_PROMPTS = (
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "prompts-get-embedded-resource",
)
_RESOURCES = ("resources-read-text", "resources-read-binary", "resources-templates-read")
_CONTENT = ("tools-call-image", "tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content")
ONLY_WITH_HANDLERS = {
    "2025-11-25": (
        *_PROMPTS,
        *_RESOURCES,
        *_CONTENT,
        "resources-subscribe",
        "resources-unsubscribe",
        "completion-complete",
        "logging-set-level",
        "tools-call-with-logging",
        "tools-call-sampling",
    ),
    "2026-07-28": (
        *_PROMPTS,
        *_RESOURCES,
        *_CONTENT,
        "completion-complete",
        "caching",
        "server-stateless",
        "input-required-result-basic-elicitation",
        "input-required-result-basic-list-roots",
        "input-required-result-basic-sampling",
        "input-required-result-capability-check",
        "input-required-result-multiple-input-requests",
        "input-required-result-non-tool-request",
    ),
}
"""Scenarios about what an apcore module cannot say, so that only handlers of the test make the bridge pass them."""

BARE = {
    "2025-11-25": (
        "dns-rebinding-protection",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "ping",
        "resources-list",
        "server-initialize",
        "server-session-lifecycle",
        "server-sse-multiple-streams",
        "tools-call-elicitation",
        "tools-call-error",
        "tools-call-simple-text",
        "tools-call-with-progress",
        "tools-list",
    ),
    "2026-07-28": (
        "dns-rebinding-protection",
        "http-custom-header-server-validation",
        "http-header-validation",
        "input-required-result-ignore-extra-params",
        "input-required-result-missing-input-response",
        "input-required-result-multi-round",
        "input-required-result-request-state",
        "input-required-result-result-type",
        "input-required-result-tampered-state",
        "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
        "resources-list",
        "sep-2164-resource-not-found",
        "server-sse-multiple-streams",
        "tasks-status-notifications",
        "tools-call-error",
        "tools-call-simple-text",
        "tools-call-with-progress",
        "tools-list",
    ),
}
"""Scenarios that the bridge passes as it is, with nothing but modules."""


def assert_bare(url: str, revision: str, results: Path) -> None:
    """The scenarios that we say a bare bridge passes are those that it passes."""
    node(CONFORMANCE, "server", "--url", url, "--requirements", revision, "-o", results)
    failures = checks(results, "FAILURE")
    failed = {name for name, ids in failures.items() if ids}
    assert failed == {*ONLY_WITH_HANDLERS[revision], *NOT_APPLICABLE[revision]}
    assert failures.keys() - failed == set(BARE[revision])


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
