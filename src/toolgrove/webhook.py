"""One notice to one address: signed, tried again while that can help, and silent about secrets."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Awaitable, Callable, Sequence
from random import random

import anyio
import httpx2

from toolgrove.notation.retry_after import http_date, seconds_to_wait

log = logging.getLogger("toolgrove.notify")
DELAYS = (1.0, 5.0, 30.0, 120.0, 600.0)
"""Seconds between attempts, with up to half as much again by chance."""
TIMEOUT = 10.0
SIGNATURE = "Toolgrove-Signature"
_AGAIN = frozenset((408, 425, 429))


def signature(secret: str, at: int, body: bytes) -> str:
    """What proves that a notice is ours: HMAC-SHA256 of the time, a full stop and the body."""
    made = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={made}"


class Webhook:
    """Sends notices to one address."""

    def __init__(self, url: str, secret: str, *, now: Callable[[], float], delays: Sequence[float] = DELAYS) -> None:
        self._url, self._secret, self._now, self._delays = url, secret, now, delays

    async def send(self, notice: bytes, delivery: str, *, wanted: Callable[[], Awaitable[bool]]) -> bool:
        """Whether the notice arrived; it is given up when nobody wants it any more, or no attempt is left."""
        async with httpx2.AsyncClient(timeout=TIMEOUT, follow_redirects=False) as http:
            for delay in (*self._delays, None):
                status, wait = await self._attempt(http, notice, delivery)
                if 200 <= status < 300:
                    return True
                if delay is None or (0 < status < 500 and status not in _AGAIN):
                    break
                await anyio.sleep(max(wait, delay * (1 + random() / 2)))  # noqa: S311 (it only spreads them)
                if not await wanted():
                    return False
        log.warning("The webhook of notify.url took no notice of %s: %s.", delivery, status or "no answer")
        return False

    async def _attempt(self, http: httpx2.AsyncClient, notice: bytes, delivery: str) -> tuple[int, float]:
        """The status, 0 where there was no answer, and how long the other side asks us to wait."""
        at = int(self._now())
        headers = {
            "Content-Type": "application/json",
            "Toolgrove-Event": "approval_requested",
            "Toolgrove-Delivery": delivery,
            SIGNATURE: signature(self._secret, at, notice),
        }
        try:
            answer = await http.post(self._url, content=notice, headers=headers)
        except (httpx2.HTTPError, httpx2.InvalidURL):
            return 0, 0.0
        return answer.status_code, _asked_for(answer)


def _asked_for(answer: httpx2.Response) -> float:
    now = http_date(answer.headers.get("date", ""))
    asked = seconds_to_wait(answer.headers.get("retry-after", ""), now=now)
    return min(asked or 0.0, DELAYS[-1])
