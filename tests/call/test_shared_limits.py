"""Rate limits that replicas share: one count for all, closed to changes while nobody can count."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import ValidationError

from grove_kit import ManualClock, config
from services.postgres import Postgres
from services.proxy import Proxy
from services.redis import Redis
from toolgrove import Config, Grove
from toolgrove.call.rate_limit import AWAY
from toolgrove.config import ConfigError
from toolgrove.store.postgres import DatabaseAddress
from waiting import eventually

pytestmark = pytest.mark.anyio
KEY = {"auditKey": "${env:GROVE_AUDIT_KEY}"}
"""Replicas of one project share it."""
STORES = [pytest.param(kind, marks=pytest.mark.services) for kind in ("redis", "database")]


@pytest.fixture(autouse=True)
def audit_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROVE_AUDIT_KEY", "k" * 64)


@pytest.fixture(params=STORES)
def limited(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A project with three calls in an hour, and where it counts them."""
    agents = {"ann": {"role": "editor", "tools": ["*"], "rateLimit": "3/hour"}}
    if request.param == "redis":
        redis: Redis = request.getfixturevalue("redis")
        yield {"agents": agents, "rateLimits": {"store": redis.address}, "project": tmp_path.name}
    else:
        yield {"agents": agents, "workspace": {"store": request.getfixturevalue("database"), **KEY}}


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


AMOUNT, REPLICAS = 6, 2
SHARE = AMOUNT // REPLICAS


class Counted:
    """What may be let through, worked out from the faults alone: a limit of six in an hour, which never ends here."""

    def __init__(self) -> None:
        self.own = [0] * REPLICAS
        self.by_store = 0
        self.is_away = self.was_away = self.was_lost = False

    def lose(self) -> None:
        """The store forgot what it had counted, if it had counted anything."""
        self.was_lost = self.was_lost or sum(self.own) > 0
        self.by_store = 0

    def judge(self, at: int, answer: dict[str, Any], *, changes: bool) -> None:
        refusal = answer.get("error", {})
        if refusal.get("code") == "rate_limited":
            if changes and not self.is_away:
                assert refusal.get("reason") != "limits_unavailable", "the store is there"
            if not self.was_away and not self.was_lost:  # what was asked of a frozen store is counted when it goes on
                assert self.by_store >= AMOUNT, "there was room"
            return
        assert not (self.is_away and changes), "nobody could count this change"
        if self.is_away or self.was_lost:
            assert self.own[at] < SHARE, "more than its share"
        if not self.is_away:
            assert self.by_store < AMOUNT, "more than the rate"
            self.by_store += 1
        self.own[at] += 1


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", STORES)
async def test_no_fault_of_the_store_lets_more_through_than_the_rate_and_each_ones_share(
    kind: str, seed: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    draw, clock, model = random.Random(f"{kind} {seed}"), ManualClock(), Counted()
    agents = {"ann": {"role": "editor", "tools": ["*"], "rateLimit": f"{AMOUNT}/hour"}}
    with ExitStack() as faults:
        server: Any = request.getfixturevalue("redis" if kind == "redis" else "postgres")
        proxy = faults.enter_context(Proxy(server.port))
        if kind == "redis":
            form = {"rateLimits": {"store": f"redis://127.0.0.1:{proxy.port}/0"}, "project": tmp_path.name}
            ways = ["cut", "cut", "flush", "restart", "freeze"]
        else:
            address = request.getfixturevalue("database").replace(f":{server.port}/", f":{proxy.port}/")
            form, ways = {"workspace": {"store": address, "concurrency": "node", **KEY}}, ["cut", "cut", "flush"]
        async with AsyncExitStack() as stack:
            groves = [
                await stack.enter_async_context(
                    Grove(config(**form, agents=agents, state=str(tmp_path / name)), clock=clock)
                )
                for name in ("a", "b")
            ]
            anns = [await grove.agent("ann") for grove in groves]

            async def call(at: int, *, changes: bool) -> None:
                change = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {}}
                tool, arguments = ("add_child", change) if changes else ("get_node", {"nodeId": "root"})
                model.judge(at, await anns[at].call(tool, arguments), changes=changes)

            for at in range(REPLICAS):
                await call(at, changes=False)  # each knows the other from here on
            if kind == "redis":
                await call(0, changes=False)
            for _ in range(14):
                at, changes = draw.randrange(REPLICAS), draw.random() < 0.5
                if draw.random() < 0.6:
                    await call(at, changes=changes)
                    continue
                way = draw.choice(ways)
                if way == "cut":
                    proxy.cut()
                    await call(at, changes=True)
                elif way == "flush":
                    emptied(server, request)
                    model.lose()
                elif way == "restart":
                    server.stop()
                    server.start()
                    model.lose()
                else:
                    with frozen(server.pid):
                        model.is_away = model.was_away = True
                        await call(at, changes=changes)
                        await call(at, changes=False)
                        assert "limits_narrowed" in groves[at].troubles
                    model.is_away = False
                    clock.now += AWAY
            if model.was_lost:
                for at in range(REPLICAS):
                    await call(at, changes=False)


def emptied(server: Any, request: pytest.FixtureRequest) -> None:
    if isinstance(server, Redis):
        server.ask("FLUSHALL")
    else:
        schema = DatabaseAddress.of(request.getfixturevalue("database")).schema
        server.ask(f"DELETE FROM {schema}.rate_window RETURNING 1")


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.services
async def test_a_narrowed_limit_is_told_while_agents_are_served(redis: Redis, tmp_path: Path) -> None:
    agents = {"ann": {"role": "editor", "tools": ["*"], "rateLimit": "2/hour"}}
    limits = {"store": redis.address}
    async with Grove(config(agents=agents, rateLimits=limits, project=tmp_path.name), clock=ManualClock()) as grove:
        ann = await grove.agent("ann")
        transport = httpx2.ASGITransport(grove.gateway().app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            assert (await http.get("/ready")).json() == {"status": "ready", "troubles": []}
            for _ in range(2):
                assert "error" not in await ann.call("get_node", {"nodeId": "root"})
            redis.ask("FLUSHALL")
            assert (await ann.call("get_node", {"nodeId": "root"}))["error"]["code"] == "rate_limited"
            told = await http.get("/ready")
            assert (told.status_code, told.json()) == (200, {"status": "ready", "troubles": ["limits_narrowed"]})
            with frozen(redis.pid):
                assert (await ann.call("get_node", {"nodeId": "root"}))["error"]["code"] == "rate_limited"


@pytest.mark.parametrize("store", ["database", "memcached://x", ""])
def test_where_nobody_can_count_is_refused(store: str) -> None:
    with pytest.raises((ConfigError, ValidationError), match=r"rateLimits|rate_limits"):
        Config.model_validate({"rateLimits": {"store": store}})
