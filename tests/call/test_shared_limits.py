"""Rate limits that replicas share: one count for all, closed to changes while nobody can count."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from grove_kit import config
from services.postgres import Postgres
from services.redis import Redis
from toolgrove import Config, Grove
from toolgrove.config import ConfigError
from waiting import eventually

pytestmark = pytest.mark.anyio
STORES = [pytest.param(kind, marks=pytest.mark.services) for kind in ("redis", "database")]


@pytest.fixture(params=STORES)
def limited(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A project with three calls in an hour, and where it counts them."""
    agents = {"ann": {"role": "editor", "tools": ["*"], "rateLimit": "3/hour"}}
    if request.param == "redis":
        redis: Redis = request.getfixturevalue("redis")
        yield {"agents": agents, "rateLimits": {"store": redis.address}, "project": tmp_path.name}
    else:
        yield {"agents": agents, "workspace": {"store": request.getfixturevalue("database")}}


async def test_replicas_count_together(limited: dict[str, Any], tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        agents = []
        for name in ("a", "b"):
            grove = await stack.enter_async_context(Grove(config(**limited, state=str(tmp_path / name))))
            agents.append(await grove.agent("ann"))
        answers = [await agents[number % 2].call("get_node", {"nodeId": "root"}) for number in range(4)]
        assert ["error" in one for one in answers] == [False, False, False, True]
        refusal = answers[3]["error"]
        assert refusal["code"] == "rate_limited"
        assert "3/hour" in refusal["message"]
        assert 0 < refusal["retryAfter"] <= 3_600


async def test_while_nobody_can_count_reads_are_counted_here_and_nothing_is_changed(
    redis: Redis, tmp_path: Path
) -> None:
    agents = {"ann": {"role": "editor", "tools": ["*"], "rateLimit": "2/hour"}}
    async with Grove(config(agents=agents, rateLimits={"store": redis.address}, project=tmp_path.name)) as grove:
        ann = await grove.agent("ann")
        redis.stop()
        read = [await ann.call("get_node", {"nodeId": "root"}) for _ in range(3)]
        assert ["error" in one for one in read] == [False, False, True]
        change = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}}
        refused = (await ann.call("add_child", change))["error"]
        assert (refused["code"], refused["reason"]) == ("rate_limited", "limits_unavailable")
        assert refused["retryAfter"] > 0
        assert grove.limit_faults == 4
        redis.start()

        async def counted() -> bool:
            return "error" not in await ann.call("get_node", {"nodeId": "root"})

        await eventually(counted)


async def test_a_database_that_was_restarted_counts_on(database: str, postgres: Postgres) -> None:
    agents = {"ann": {"role": "editor", "tools": ["*"], "rateLimit": "3/hour"}}
    async with Grove(config(agents=agents, workspace={"store": database})) as grove:
        ann = await grove.agent("ann")
        assert "error" not in await ann.call("get_node", {"nodeId": "root"})
        postgres.restart()

        async def counted() -> bool:
            before = grove.limit_faults
            await ann.call("get_node", {"nodeId": "root"})
            return grove.limit_faults == before

        await eventually(counted)


@pytest.mark.parametrize("store", ["database", "memcached://x", ""])
def test_where_nobody_can_count_is_refused(store: str) -> None:
    with pytest.raises((ConfigError, ValidationError), match=r"rateLimits|rate_limits"):
        Config.model_validate({"rateLimits": {"store": store}})
