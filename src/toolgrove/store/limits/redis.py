"""Rate limits in Redis or Valkey, counted by the library `limits` with the time of the server."""

from __future__ import annotations

import time
from collections.abc import Sequence

import redis.exceptions
from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from limits.errors import StorageError

from toolgrove.store.limits.windows import LimitsAway, Quota

_WAIT = 1
"""Seconds for a connection or an answer."""
_LEAST = 0.001


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
        self._limiter = SlidingWindowCounterRateLimiter(self._storage)

    async def admit(self, quotas: Sequence[Quota]) -> tuple[Quota, float] | None:
        """Look for room in all of them before it is taken in any."""
        try:
            if len(quotas) > 1:
                for quota in quotas:
                    if not await self._limiter.test(_item(quota), self._project, quota.holder):
                        return quota, await self._wait(quota)
            for quota in quotas:
                if not await self._limiter.hit(_item(quota), self._project, quota.holder):
                    return quota, await self._wait(quota)
        except (StorageError, redis.exceptions.RedisError, OSError) as problem:
            raise LimitsAway(f"the store of the rate limits cannot be reached: {type(problem).__name__}") from problem
        return None

    async def _wait(self, quota: Quota) -> float:
        stats = await self._limiter.get_window_stats(_item(quota), self._project, quota.holder)
        return max(stats.reset_time - time.time(), _LEAST)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._storage.bridge.storage.aclose()  # type: ignore[attr-defined]  # only the base is declared


def _item(quota: Quota) -> RateLimitItemPerSecond:
    return RateLimitItemPerSecond(quota.rate.amount, quota.rate.seconds)
