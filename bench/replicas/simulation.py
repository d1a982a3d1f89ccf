"""Ten and a hundred replicas, simulated from what one and two cost.

What is assumed: changes come at random, evenly spread; the database lets one transaction at a time hold the row of the
head, in the order in which they ask, and each holds it for a fixed time and a little for each change in it; a replica
runs all that waits and sends it as one group, which is kept if nothing was kept since it ran, else it catches up and
runs it again; a notice reaches a replica after a fixed time, and each change that it takes over costs it CPU;
whoever serves reads puts their records into a transaction of its own every fifty milliseconds. Each replica has a core
of its own, and the network between them and the database is as quick as the one that the costs were measured on.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from bench.measure import percentile

GROUPS_PER_SECOND = 20.0
"""How often a replica that serves reads writes down their records."""
RUNS = 50
"""How often a change is run before its agent is told to try again."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """In seconds, as measured."""

    transaction: float
    """How long a transaction holds the head."""
    entry: float
    """… and how much longer for each change in it."""
    notice: float
    """From a commit until another replica begins to take it over."""
    follow: float
    """CPU of a replica for each change of another."""
    read: float
    """CPU of a replica for a read."""
    change: float
    """CPU of a replica for a change, each time that it is run."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    kept: int
    refused: int
    reruns: float
    """Per change that was kept."""
    p50: float
    p99: float
    head: float
    """The share of the time for which somebody held the head."""
    follow: float
    """The share of a core that each replica spends on the changes of others."""


@dataclass
class Change:
    at: float
    runs: int = 0


@dataclass
class Replica:
    """One of them: what waits to be sent, and how far it has come."""

    waiting: list[Change] = field(default_factory=list)
    group: list[Change] = field(default_factory=list)
    audit: bool = False
    revision: int = 0
    base: int = 0
    busy: bool = False


class Simulation:
    """Events in the order of their time; the head is the one thing that all share."""

    def __init__(self, costs: Costs, replicas: int, changes: float, *, reading: bool, seed: int = 1) -> None:
        self._costs, self._rate = costs, changes
        self._replicas = [Replica() for _ in range(replicas)]
        self._random = random.Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._now = 0.0
        self._line: deque[Replica] = deque()
        self._is_held = False
        self._revision = 0
        self._held = 0.0
        self._latencies: list[float] = []
        self._reruns = self._refused = 0
        self._ends = self._last = 0.0
        if reading:
            for replica in self._replicas:
                self._after(self._random.random() / GROUPS_PER_SECOND, partial(self._audit, replica))
        self._after(self._pause(), self._arrive)

    def run(self, seconds: float) -> Outcome:
        """So many seconds of traffic; what came in them is seen through to its end."""
        self._ends = seconds
        while self._events:
            self._now, _, event = heapq.heappop(self._events)
            event()
        kept, spent = len(self._latencies), max(self._last, seconds)
        others = (len(self._replicas) - 1) / len(self._replicas)
        return Outcome(
            kept=kept,
            refused=self._refused,
            reruns=self._reruns / max(1, kept),
            p50=percentile(self._latencies or [0.0], 50),
            p99=percentile(self._latencies or [0.0], 99),
            head=self._held / spent,
            follow=self._costs.follow * kept * others / spent,
        )

    def _after(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now + seconds, next(self._order), event))

    def _pause(self) -> float:
        return self._random.expovariate(self._rate)

    def _arrive(self) -> None:
        if self._now > self._ends:
            return
        replica = self._random.choice(self._replicas)
        replica.waiting.append(Change(self._now))
        self._ask(replica)
        self._after(self._pause(), self._arrive)

    def _audit(self, replica: Replica) -> None:
        if self._now > self._ends:
            return
        replica.audit = True
        self._ask(replica)
        self._after(1 / GROUPS_PER_SECOND, partial(self._audit, replica))

    def _ask(self, replica: Replica) -> None:
        """Run what waits, then stand in line for the head; a replica stands there once."""
        if not replica.busy and (replica.waiting or replica.audit):
            replica.busy = True
            replica.group, replica.waiting, replica.base = replica.waiting, [], replica.revision
            self._after(self._costs.change * len(replica.group), partial(self._stand, replica))

    def _stand(self, replica: Replica) -> None:
        self._line.append(replica)
        self._next()

    def _next(self) -> None:
        if self._is_held or not self._line:
            return
        replica = self._line.popleft()
        self._is_held = True
        group, replica.audit = replica.group, False
        is_current = replica.base == self._revision
        held = self._costs.transaction + (self._costs.entry * len(group) if is_current else 0.0)
        self._held += held
        self._after(held, lambda: self._done(replica, group, is_current))

    def _done(self, replica: Replica, group: list[Change], is_current: bool) -> None:
        self._is_held, self._last = False, self._now
        catching_up = 0.0
        if is_current:
            self._latencies += [self._now - change.at for change in group]
            if group:
                self._revision += len(group)
                replica.revision = self._revision
                self._tell(self._revision, replica)
        elif group:
            catching_up = self._costs.notice + self._costs.follow * (self._revision - replica.revision)
            self._reruns += len(group)
            for change in group:
                change.runs += 1
            self._refused += sum(change.runs >= RUNS for change in group)
            replica.waiting[:0] = [change for change in group if change.runs < RUNS]
        self._after(catching_up, lambda: self._free(replica, seen=catching_up > 0))
        self._next()

    def _free(self, replica: Replica, *, seen: bool) -> None:
        replica.busy = False
        if seen:
            replica.revision = self._revision
        self._ask(replica)

    def _tell(self, revision: int, by: Replica) -> None:
        """The others take it over a moment later, unless they are in the middle of something."""

        def heard() -> None:
            for replica in self._replicas:
                if replica is not by and replica.revision < revision:
                    replica.revision = revision

        self._after(self._costs.notice + self._costs.follow, heard)


def most_changes(costs: Costs, replicas: int, *, reading: bool, within: float = 0.5, seconds: float = 10.0) -> Outcome:
    """The outcome at the most changes per second of which 99 in a hundred are kept within so many seconds."""
    least, most = 1.0, 1 / costs.entry
    best = Simulation(costs, replicas, least, reading=reading).run(seconds)
    for _ in range(9):
        middle = (least + most) / 2
        outcome = Simulation(costs, replicas, middle, reading=reading).run(seconds)
        if outcome.p99 <= within and not outcome.refused and outcome.kept:
            least, best = middle, outcome
        else:
            most = middle
    return best
