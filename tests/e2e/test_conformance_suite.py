"""The official conformance suite against our bridge, for both protocol eras."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.conformance import assert_bare, assert_whole
from e2e.node_tools import CONFORMANCE, require
from e2e.servers import Address, http_child
from ports import free_port
from warm.command import python

pytestmark = pytest.mark.node


@pytest.fixture(scope="module", params=["whole", "bare"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Address]]:
    require(CONFORMANCE)
    port = free_port()
    with http_child(python("-m", "e2e.conformance_server", str(port), request.param), port) as (_, address):
        yield request.param, address


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.requirement("NFR-COMPAT-003", "NFR-COMPAT-004")
def test_the_suite_passes_bare_as_far_as_we_say_and_whole_with_handlers_of_the_test(
    server: tuple[str, Address], tmp_path: Path, revision: str
) -> None:
    kind, address = server
    (assert_bare if kind == "bare" else assert_whole)(address.mcp, revision, tmp_path)
