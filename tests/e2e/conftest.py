"""A journal per test or module, the sample modules, and a client for every way to reach them."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from apcore import Registry
from mcp import Client

from apcore_mcp.bridge import Bridge
from apcore_mcp.options import Options
from e2e.modules import Journal, sample_registry
from e2e.servers import Address, over_stdio, server_command, serving
from e2e.wire import MODERN

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def samples(journal: Journal) -> Registry:
    return sample_registry(journal)


@pytest.fixture
def address(samples: Registry) -> Iterator[Address]:
    with serving(samples) as served:
        yield served


@pytest.fixture(scope="module")
def shared_journal(tmp_path_factory: pytest.TempPathFactory) -> Journal:
    return Journal(tmp_path_factory.mktemp("shared") / "journal")


@pytest.fixture(scope="module")
def shared_samples(shared_journal: Journal) -> Registry:
    return sample_registry(shared_journal)


@pytest.fixture(scope="module")
def http(shared_samples: Registry) -> Iterator[Address]:
    """One server, with the Explorer, for all tests of a module."""
    with serving(shared_samples, explorer=True, allow_execute=True) as served:
        yield served


@pytest.fixture(params=["memory", "http", "stdio"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[MODERN, "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connect(transport: str, era: str, samples: Registry, journal: Journal) -> Connect:
    """Connects the `mcp` client to the sample modules over the transport, in the era, of this test."""

    @asynccontextmanager
    async def connected(**callbacks: Any) -> AsyncIterator[Client]:
        keywords: dict[str, Any] = {"mode": era, "read_timeout_seconds": 30.0} | callbacks
        if transport == "stdio":
            async with Client(over_stdio(server_command(journal)), **keywords) as client:
                yield client
        elif transport == "http":
            with serving(samples) as served:
                async with Client(served.mcp, **keywords) as client:
                    yield client
        else:
            bridge = Bridge(samples, Options())
            async with bridge.running(), Client(bridge.endpoint.server, **keywords) as client:
                yield client

    return connected
