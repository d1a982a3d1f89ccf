"""What is kept of requests that are refused at the edge: enough to see who tries, too little to fill a disk."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from starlette.types import Scope

from toolgrove.web.metrics import Metrics
from toolgrove.web.project import Project

log = logging.getLogger("toolgrove.serve")
Cause = Literal["host", "origin", "token", "agent", "role"]
MINUTE = 60.0
LENGTH = 100
SOURCES = 256
_LOOK = 1.0
_OTHERS = "others"
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
_WORDS: dict[Cause, tuple[str, str]] = {
    "host": (
        "forbidden",
        "A request was refused at the edge: its Host is none of ours. If it should be, add it with --allowed-host.",
    ),
    "origin": ("forbidden", "A request was refused at the edge: a page of another origin sent it."),
    "token": ("unauthenticated", "A request was refused: it had no token, or one that is not good."),
    "agent": ("not_found", "A request was refused: an agent asked for an address that is not its own."),
    "role": ("forbidden", "A request was refused: an agent asked for an address of the operator."),
}


@dataclass(slots=True)
class _Burst:
    """The refusals of one cause and source since the last record of them."""

    agent: str
    since: float
    count: int = 0
    facts: Mapping[str, Any] | None = None


class Refusals:
    """Leaves one record per cause, source and minute; it says how many requests it stands for."""

    def __init__(self, project: Project, metrics: Metrics) -> None:
        self._project, self._metrics = project, metrics
        self._bursts: dict[tuple[Cause, str, str], _Burst] = {}

    async def record(self, cause: Cause, scope: Scope) -> None:
        """Count a refusal; the first of its source is put on record at once, those that follow after a minute."""
        self._metrics.refused(cause)
        source = (scope.get("client") or ("",))[0]
        agent = scope["user"].name if "user" in scope else ""
        place = (cause, source, agent)
        if place not in self._bursts and len(self._bursts) >= SOURCES:
            source = _OTHERS
            place = (cause, source, "")
        now = self._project.clock.monotonic()
        burst = self._bursts.get(place)
        if burst is None:
            burst = self._bursts[place] = _Burst(agent, now - MINUTE)
            log.warning("%s It came from %s; more of the kind are counted, once a minute.", _WORDS[cause][1], source)
        burst.count += 1
        burst.facts = self._facts(cause, scope, source)
        if now - burst.since >= MINUTE:
            await self._tell(cause, burst, now)

    async def follow(self) -> None:
        """Tell of bursts when their minute is over, until cancelled."""
        while True:
            await anyio.sleep(_LOOK)
            await self.settle()

    async def settle(self, *, at_the_end: bool = False) -> None:
        """Put on record what was only counted for a minute, and forget who has not come back."""
        now = self._project.clock.monotonic()
        for place, burst in [one for one in self._bursts.items() if at_the_end or now - one[1].since >= MINUTE]:
            if burst.count:
                await self._tell(place[0], burst, now)
            else:
                self._bursts.pop(place, None)

    async def _tell(self, cause: Cause, burst: _Burst, now: float) -> None:
        facts = {**(burst.facts or {}), "count": burst.count}
        burst.since, burst.count = now, 0
        said = facts.get(cause)
        await self._project.recorder.record(
            "refused_request",
            f"security.{cause}_rejected",
            agent=burst.agent,
            outcome="refused",
            targets=(said,) if said else (),
            error=facts,
        )

    def _facts(self, cause: Cause, scope: Scope, source: str) -> dict[str, Any]:
        code, message = _WORDS[cause]
        facts = {
            "code": code,
            "message": message,
            "reason": f"{cause}_rejected",
            "method": self._brief(scope["method"].encode()),
            "path": self._brief(scope["path"].encode("utf-8", "replace")),
            "from": source,
        }
        if cause in ("host", "origin"):
            said = b", ".join(value for name, value in scope["headers"] if name == cause.encode())
            facts[cause] = self._brief(said)
        return facts

    def _brief(self, said: bytes) -> str:
        """What a stranger said; scrubbed while it is whole, since half a secret is not found any more."""
        text = self._project.secrets.scrub_text(said.decode("utf-8", "replace"))
        return _UNPRINTABLE.sub("?", text[:LENGTH])
