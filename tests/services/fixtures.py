"""Fixtures of the services; a test that asks for one is marked `services` too."""

from collections.abc import Iterator

import pytest

from services.postgres import Postgres
from services.redis import Redis


@pytest.fixture(scope="session")
def running_postgres() -> Iterator[Postgres]:
    """One server for all tests of this process."""
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def postgres(running_postgres: Postgres) -> Iterator[Postgres]:
    """The server, to be killed and started at will; the next test finds it up."""
    yield running_postgres
    if not running_postgres.runs:
        running_postgres.start()


@pytest.fixture
def database(postgres: Postgres) -> str:
    """An address with a schema that nobody has used."""
    return postgres.fresh()


@pytest.fixture(scope="session")
def running_redis() -> Iterator[Redis]:
    """One for all tests of this process."""
    server = Redis()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def redis(running_redis: Redis) -> Iterator[Redis]:
    """The server, to be stopped and started at will; the next test finds it up and empty."""
    yield running_redis
    running_redis.stop()
    running_redis.start()
