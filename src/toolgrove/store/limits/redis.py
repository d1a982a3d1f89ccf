"""Rate limits in Redis or Valkey, counted by the library `limits` with the time of the server."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from typing import Any

import redis.exceptions
from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import StorageError

from toolgrove.store.limits.windows import LimitsAway, Mark, Quota

_WAIT = 1
"""Seconds for a connection or an answer."""
_LEAST = 0.001
_PRESENT = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[3]))
redis.call('SET', KEYS[2], ARGV[2], 'NX')
return {redis.call('ZCARD', KEYS[1]), redis.call('GET', KEYS[2])}
"""
_SILENT = 60
"""After how many seconds without a call a process is not counted among the replicas."""
_LOST = (StorageError, redis.exceptions.RedisError, OSError)


class RedisWindows:
    """Each holder's window, under the name of the project."""

    def __init__(self, address: str, project: str) -> None:
        self._project = project
        self._storage = RedisStorage(
            f"async+{address}",
            wrap_exceptions=True,
            implementation="redispy",
            key_prefix="toolgrove",
            socket_timeout=_WAIT,
            socket_connect_timeout=_WAIT,
        )
        self._client: Any = self._storage.bridge.storage  # type: ignore[attr-defined]  # only the base is declared
        self._name = secrets.token_hex(8)
        self._replicas, self._lost_at, self._mark = 1, -math.inf, Mark()
        self._limiter = SlidingWindowCounterRateLimiter(self._storage)

    @property
    def replicas(self) -> int:
        """How many processes counted here when it last answered, this one included."""
        return self._replicas

    @property
    def losses(self) -> int:
        """How often this process has found its counts gone."""
        return self._mark.losses

    async def admit(self, quotas: Sequence[Quota]) -> tuple[Quota, float] | None:
        """Look for room in all of them before it is taken in any."""
        try:
            try:
                return await self._admit(quotas)
            except _LOST as problem:
                if isinstance(problem.__cause__ or problem, redis.exceptions.TimeoutError | TimeoutError):
                    raise
                await self._client.connection_pool.disconnect(inuse_connections=False)  # the others may be lost too
                return await self._admit(quotas)
        except _LOST as problem:
            raise LimitsAway(f"the store of the rate limits cannot be reached: {type(problem).__name__}") from problem

    async def _admit(self, quotas: Sequence[Quota]) -> tuple[Quota, float] | None:
        if len(quotas) > 1:
            for quota in quotas:
                if not await self._limiter.test(_item(quota), self._project, quota.holder):
                    return quota, await self._wait(quota)
        for quota in quotas:
            if not await self._limiter.hit(_item(quota), self._project, quota.holder):
                return quota, await self._wait(quota)
        await self._look()
        return None

    async def _look(self) -> None:
        """Say that this process is there, and see how many are, and whether the counts are those of before."""
        keys = [f"toolgrove:{self._project}:{name}" for name in ("replicas", "mark")]
        found = await self._client.eval(_PRESENT, len(keys), *keys, self._name, secrets.token_hex(8), _SILENT)
        before = self._mark.losses
        self._mark.see(str(found[1]))
        if self._mark.losses != before:  # the others were forgotten too, until each of them has called again
            self._lost_at = time.monotonic()
        is_whole = time.monotonic() - self._lost_at >= _SILENT
        self._replicas = int(found[0]) if is_whole else max(self._replicas, int(found[0]))

    async def _wait(self, quota: Quota) -> float:
        stats = await self._limiter.get_window_stats(_item(quota), self._project, quota.holder)
        return max(stats.reset_time - time.time(), _LEAST)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()


def _item(quota: Quota) -> RateLimitItemPerSecond:
    return RateLimitItemPerSecond(quota.rate.amount, quota.rate.seconds)
