"""Fixtures and the collection of requirement markers."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from services.fixtures import database, postgres, redis, running_postgres, running_redis
from services.programs import missing

__all__ = ["database", "postgres", "redis", "running_postgres", "running_redis"]

# A shell's background jobs are born ignoring it, and so would be every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test speaks TLS with the world, and reading the machine's authorities takes every client 20 ms.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("nobody.pem"))

# The same examples on every run, however slow the machine.
settings.register_profile(
    "toolgrove", deadline=None, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
# For runs that only ask whether a test fails: finding the smallest example takes minutes.
settings.register_profile(
    "no-shrink", parent=settings.get_profile("toolgrove"), phases=[Phase.explicit, Phase.generate]
)
# For other versions of Python and of dependencies: does a law hold there at all, after it was tried at length on one?
settings.register_profile("brief", parent=settings.get_profile("toolgrove"), max_examples=20)
settings.load_profile("toolgrove")

# Folders whose tests are mostly other programs at work: the rest covers the same code.
UNMEASURED = {"browser", "faults", "histories", "replicas"}
REQUIREMENTS = pytest.StashKey[dict[str, list[str]]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Gather requirement id -> node ids of the tests collected in this run, and mark what is not measured."""
    gathered = config.stash.setdefault(REQUIREMENTS, {})
    for item in items:
        if UNMEASURED & set(item.path.parts):
            item.add_marker("long")
        if {"running_postgres", "running_redis"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("services")
        for marker in item.iter_markers("requirement"):
            for requirement in marker.args:
                gathered.setdefault(requirement, []).append(item.nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what did not run for want of a service."""
    lacking = missing()
    if lacking and os.environ.get("PYTEST_XDIST_WORKER") is None:
        text = f"Missing, so tests marked services did not all run: apt install {' '.join(lacking)}"
        terminalreporter.section(text, sep="!", red=True)


@pytest.fixture
def collected_requirements(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    return request.config.stash[REQUIREMENTS]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
