import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pool.mcp.mcp_kit import Journal, over_http, over_stdio, web

BUBBLEWRAP = shutil.which("bwrap")
MISSING = "bubblewrap is not installed, so sandboxes are not tested: apt install bubblewrap"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if BUBBLEWRAP is None:
        terminalreporter.section(MISSING, sep="!", red=True)


@pytest.fixture
def bubblewrap() -> None:
    """Needs the real one; only outside of CI may it be missing."""
    if BUBBLEWRAP is None and os.environ.get("CI") == "true":
        pytest.fail(MISSING)
    if BUBBLEWRAP is None:
        pytest.skip(MISSING)


@pytest.fixture(scope="session")
def shared_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """One server over HTTP for all tests that leave it as it was."""
    path = tmp_path_factory.mktemp("web") / "journal"
    with web(path) as port:
        yield port, path


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["modern", "legacy"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def upstream(transport: str, protocol: str, journal: Journal, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The configuration of the server on the official SDK, in every way that one can reach it."""
    if transport == "stdio":
        return over_stdio(journal, protocol=protocol)
    port, _ = request.getfixturevalue("shared_web")
    return over_http(port, protocol=protocol)


@pytest.fixture
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    shared = "transport" in request.fixturenames and request.getfixturevalue("transport") == "http"
    return Journal(request.getfixturevalue("shared_web")[1] if shared else tmp_path / "journal")
