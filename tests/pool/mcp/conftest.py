from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_kit import Journal, over_stdio, web


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["modern", "legacy"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def upstream(transport: str, protocol: str, journal: Journal) -> Iterator[dict[str, Any]]:
    """The configuration of the server on the official SDK, in every way that one can reach it."""
    if transport == "stdio":
        yield over_stdio(journal, protocol=protocol)
    else:
        with web(journal) as url:
            yield {"url": url, "protocol": protocol}
