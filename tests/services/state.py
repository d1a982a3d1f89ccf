"""The state in each of its places, for tests that hold of all of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.state.postgres import StateDatabase

STATES = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.services)]


@contextmanager
def state_database(request: pytest.FixtureRequest) -> Iterator[StateDatabase]:
    """The state in a schema of its own; only the tests that get here need a server."""
    with StateDatabase(DatabaseAddress.of(request.getfixturevalue("database"))) as state:
        yield state
