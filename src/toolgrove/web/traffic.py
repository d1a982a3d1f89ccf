"""How many calls there were in each minute of the last day, by agent: what the console's figures and charts show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, cast

import anyio.to_thread

from toolgrove.notation.times import to_milliseconds
from toolgrove.store.audit import AuditLog, AuditQuery, Outcome
from toolgrove.types import Clock

if TYPE_CHECKING:
    from toolgrove.web.schemas import TrafficMinute

MINUTES = 24 * 60
SOURCES = 200
"""How many agents are told apart in one minute; there are seldom more, and each costs room."""
_PAGE = 1_000
_PAGES = 20
_OTHERS = ""
# In the order in which every record has them; JSON escapes quotes, so that no text can pass for a key.
_RECORD = re.compile(
    r'\{(?>.*?"timestamp":"(?P<at>[^"]+)")(?>.*?"agent":(?P<agent>"(?:[^"\\]|\\.)*+"))'
    r'(?>.*?"outcome":"(?P<outcome>\w+)")(?>.*?"durationMs":(?P<took>[\d.eE+-]+))'
)
_DONE = frozenset(("success", "replayed"))
_UNFINISHED = frozenset(("cancelled", "unknown"))


@dataclass(slots=True)
class _Count:
    calls: int = 0
    failures: int = 0
    refusals: int = 0
    waiting: int = 0
    cancelled: int = 0
    seconds: float = 0.0
    slowest: float = 0.0

    def add(self, outcome: Outcome, seconds: float) -> None:
        self.calls += 1
        if outcome not in _DONE:
            self.refusals += outcome == "refused"
            self.waiting += outcome == "waiting"
            self.failures += outcome == "failure"
            self.cancelled += outcome in _UNFINISHED
        self.seconds += seconds
        if seconds > self.slowest:
            self.slowest = seconds

    def merge(self, other: _Count) -> None:
        self.calls += other.calls
        self.failures += other.failures
        self.refusals += other.refusals
        self.waiting += other.waiting
        self.cancelled += other.cancelled
        self.seconds += other.seconds
        self.slowest = max(self.slowest, other.slowest)


class Traffic:
    """Counts calls as they end; what the audit log knows from before is counted in once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._minutes: dict[int, dict[str, _Count]] = {}

    def add(self, agent: str, outcome: Outcome, seconds: float, at: float | None = None) -> None:
        """A call ended, now or at a time of the last day."""
        minute = int((self._clock.wall() if at is None else at) // 60)
        agents = self._minutes.get(minute)
        if agents is None:
            agents = self._minutes[minute] = {}
            self._forget()
        if agent not in agents and len(agents) >= SOURCES:
            agent = _OTHERS
        count = agents.get(agent)
        if count is None:
            count = agents[agent] = _Count()
        count.add(outcome, seconds)

    async def recall(self, log: AuditLog, last: int) -> None:
        """Count in what the log has of the last day up to a record: the newest first, and not more than a lot."""
        since = to_milliseconds(self._clock.wall() - MINUTES * 60)
        query = AuditQuery(kind="call", newest=True, limit=_PAGE, since=since, before=last + 1)
        for _ in range(_PAGES):
            page = await log.records(query)
            for agent, outcome, seconds, at in await anyio.to_thread.run_sync(_calls, page.lines):
                self.add(agent, outcome, seconds, at)
            if page.next is None:
                return
            query = replace(query, before=page.next)

    def minutes(self, agent: str | None = None, *, last: int = MINUTES) -> list[TrafficMinute]:
        """The minutes that had any calls, oldest first."""
        first = int(self._clock.wall() // 60) - last + 1
        kind: type[TrafficMinute] = import_module("toolgrove.web.schemas").TrafficMinute  # only for those who look
        return [
            kind(
                minute=minute * 60,
                calls=total.calls,
                failures=total.failures,
                refusals=total.refusals,
                waiting=total.waiting,
                cancelled=total.cancelled,
                mean_ms=round(total.seconds * 1000 / total.calls, 3),
                slowest_ms=round(total.slowest * 1000, 3),
            )
            for minute, total in self._sums(agent)
            if minute >= first
        ]

    def _sums(self, agent: str | None) -> Iterator[tuple[int, _Count]]:
        for minute in sorted(self._minutes):
            total = _Count()
            for name, count in self._minutes[minute].items():
                if agent in (None, name):
                    total.merge(count)
            if total.calls:
                yield minute, total

    def _forget(self) -> None:
        oldest = int(self._clock.wall() // 60) - MINUTES
        for minute in [minute for minute in self._minutes if minute <= oldest]:
            del self._minutes[minute]


def _calls(lines: Iterable[str]) -> list[tuple[str, Outcome, float, float]]:
    """Agent, outcome, duration and time of records; what the calls were given and answered is not read."""
    found = (_RECORD.match(line) for line in lines)
    return [
        (json.loads(one["agent"]), cast(Outcome, one["outcome"]), float(one["took"]) / 1000, _seconds(one["at"]))
        for one in found
        if one is not None and one["outcome"] != "begun"
    ]


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
