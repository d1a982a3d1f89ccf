"""Fixtures of the journeys."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replicas.fleet import Fleet, fleet_of
from replicas.writers import PROJECT
from services.postgres import Postgres
from services.redis import Redis


@pytest.fixture
def project(postgres: Postgres, redis: Redis) -> dict[str, Any]:
    """A project that replicas can share."""
    schema = postgres.fresh().rpartition("=")[2]
    return {
        **PROJECT,
        "workspace": {
            "store": f"postgresql://postgres@${{env:GROVE_DB}}/postgres?schema={schema}",
            "concurrency": "node",
            "payloadTypes": {"Note": {}},
            "auditKey": "${env:GROVE_AUDIT_KEY}",
        },
        "rateLimits": {"store": redis.address},
        "drain": 600,
    }


@pytest.fixture
def fleet(tmp_path: Path, project: dict[str, Any], postgres: Postgres) -> Iterator[Fleet]:
    """Both replicas, ready, behind HAProxy."""
    with fleet_of(tmp_path, project, postgres.port, postgres.port) as both:
        yield both
