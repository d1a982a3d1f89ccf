"""Counts what happens, for Prometheus and for the console's traffic picture."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from itertools import accumulate

import anyio

from toolgrove.events import ApprovalDecided, ApprovalRequested, Event, Heard, PoolChanged, ToolFailed, TreeChanged
from toolgrove.store.audit import outcome_of
from toolgrove.types import Clock
from toolgrove.web.traffic import Traffic

LOOK = 0.25
"""How many seconds pass between two looks at how late the event loop is."""
_MINUTE = 60.0
_BOUNDS = (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


@dataclass(slots=True)
class Times:
    """How many calls took how long."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        bounds = (*(f"{bound:g}" for bound in _BOUNDS), "+Inf")
        return list(zip(bounds, map(float, accumulate(self.counts)), strict=True))


@dataclass(slots=True)
class Count:
    """How often something happened since when."""

    since: float
    value: int = 0


class LoopDelay:
    """How late the event loop is: while it runs one thing for long, whatever else is due waits as long.

    It is looked at four times a second for a minute back, so that several who scrape see the same.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._latest: deque[float] = deque(maxlen=int(_MINUTE / LOOK))

    @property
    def longest(self) -> float:
        """The longest delay of the last minute, in seconds."""
        return max(self._latest, default=0.0)

    async def follow(self) -> None:
        """Look again and again."""
        while True:
            due = self._clock.monotonic() + LOOK
            await anyio.sleep(LOOK)
            self._latest.append(max(0.0, self._clock.monotonic() - due))


class Metrics:
    """Counts that a call only adds to; tool names are the pool's own, so they are bounded.

    Prometheus's own counters take as long as half of the gate, so all is counted here, and `exposition` hands it to
    them when somebody asks.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.traffic = Traffic(clock)
        self.loop_delay = LoopDelay(clock)
        self.calls: Counter[tuple[str, str, str]] = Counter()
        self.times: defaultdict[str, Times] = defaultdict(Times)
        self.commits = Count(clock.wall())
        self.approvals: dict[str, Count] = {}
        self.refusals: dict[str, Count] = {}
        self.revision = 0

    def follow(self, heard: Heard) -> None:
        """Count what happens from now on."""
        heard.tally(self._succeeded)
        heard.listen(self._count, ToolFailed, TreeChanged, ApprovalRequested, ApprovalDecided, PoolChanged)

    def _succeeded(self, agent: str, tool: str, seconds: float) -> None:
        self._call(agent, tool, "success", seconds)
        self.traffic.add(agent, "success", seconds)

    def _count(self, event: Event) -> None:
        match event:
            case ToolFailed():
                outcome = outcome_of(event.error)
                told = outcome if outcome in ("waiting", "cancelled") else str(event.error["code"])
                self._call(event.agent, _known_tool(event), told, event.duration)
                self.traffic.add(event.agent, outcome, event.duration)
            case TreeChanged(elsewhere=None):
                self.commits.value += 1
            case ApprovalRequested():
                self._add(self.approvals, "requested")
            case ApprovalDecided():
                self._add(self.approvals, "approved" if event.approved else "rejected")
            case PoolChanged():
                self.revision = event.revision

    def refused(self, cause: str) -> None:
        """A request was refused at the edge."""
        self._add(self.refusals, cause)

    def _add(self, counts: dict[str, Count], label: str) -> None:
        if label not in counts:
            counts[label] = Count(self._clock.wall())
        counts[label].value += 1

    def _call(self, agent: str, tool: str, outcome: str, duration: float) -> None:
        self.calls[agent, tool, outcome] += 1
        self.times[agent].add(duration)


def _known_tool(event: ToolFailed) -> str:
    """The tool; empty where the call never got to it, so that no caller can make up labels."""
    code = event.error["code"]
    return "" if code == "rate_limited" or (code == "not_found" and "tool" in event.error) else event.tool
