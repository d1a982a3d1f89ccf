"""The official conformance suite against our bridge, for both protocol eras."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.conformance import assert_whole
from e2e.node_tools import CONFORMANCE, require
from e2e.servers import Address, http_child
from ports import free_port
from warm.command import python

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def server() -> Iterator[Address]:
    require(CONFORMANCE)
    port = free_port()
    with http_child(python("-m", "e2e.conformance_server", str(port)), port) as (_, address):
        yield address


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.requirement("NFR-COMPAT-003", "NFR-COMPAT-004")
def test_every_scored_scenario_of_the_suite_passes(server: Address, tmp_path: Path, revision: str) -> None:
    assert_whole(server.mcp, revision, tmp_path)
