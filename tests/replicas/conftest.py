"""Fixtures of the journeys."""

from typing import Any

import pytest

from replicas.writers import PROJECT
from services.redis import Redis


@pytest.fixture
def project(database: str, redis: Redis) -> dict[str, Any]:
    """A project that replicas can share."""
    return {
        **PROJECT,
        "workspace": {
            "store": database,
            "concurrency": "node",
            "payloadTypes": {"Note": {}},
            "auditKey": "${env:GROVE_AUDIT_KEY}",
        },
        "rateLimits": {"store": redis.address},
        "drain": 600,
    }
