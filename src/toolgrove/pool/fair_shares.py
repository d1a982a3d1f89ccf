"""Fair shares of an upstream: so many calls at a time, and no agent can take so many that none are left."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from toolgrove.errors import ShareSpent
from toolgrove.types import Call, Clock

GREED = 3
"""An agent may hold this many times as many places as are free: alone it gets most of them, never the last."""
LINE = 16
"""How many calls may wait for each place there is."""
_SHORTEST, _LONGEST = 0.5, 60.0


def share_of(call: Call) -> str:
    """Whose share a call uses: a sub-agent draws on that of the agent at the root of its chain."""
    return call.caller.chain[0]


class Overdue(Exception):
    """No place became free in time."""


class Place:
    """One of the places, from the moment that an agent has it; given back twice, it is given back once."""

    def __init__(self, shares: FairShares, agent: str, since: float) -> None:
        self._shares: FairShares | None = shares
        self._agent = agent
        self._since = since
        self._is_lost = False

    def give_back(self) -> None:
        """Make room for another call."""
        shares, self._shares = self._shares, None
        if shares is not None:
            shares.learn(self._since)
            shares.give_back(self._agent, is_lost=self._is_lost)

    def lose(self) -> None:
        """Let others have one in its stead; for the agent it counts on until it is given back."""
        if self._shares is not None and not self._is_lost:
            self._is_lost = True
            self._shares.replace()


class FairShares:
    """Hands out the places of one upstream, to waiting agents in turn.

    Each agent may wait as often as there is room left in the line, so that nobody fills it.
    """

    def __init__(self, places: int, clock: Clock, *, of: str) -> None:
        self._of = of
        self._clock = clock
        self._most = GREED * places
        self._free = places
        self._room = places * LINE
        self._held: Counter[str] = Counter()
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._usual = 0.0

    @asynccontextmanager
    async def place(self, agent: str, patience: float) -> AsyncIterator[None]:
        """A place for one call of an agent; Overdue if none is free within so many seconds."""
        place = await self.take(agent, patience)
        try:
            yield
        finally:
            place.give_back()

    async def take(self, agent: str, patience: float) -> Place:
        """A place that is the agent's until it is given back."""
        if self._may_take(agent):
            self._take(agent)
        else:
            await self._wait(agent, patience)
        return Place(self, agent, self._clock.monotonic())

    def learn(self, since: float) -> None:
        """Hear how long a place was held, to tell others when to come back."""
        self._usual += (self._clock.monotonic() - since - self._usual) / 8

    def replace(self) -> None:
        """Have one place more, for one that is lost."""
        self._free += 1
        self._hand_out()

    def give_back(self, agent: str, *, is_lost: bool = False) -> None:
        """Take a place back; one that is lost was replaced long ago."""
        self._free += not is_lost
        self._held[agent] -= 1
        if not self._held[agent]:
            del self._held[agent]
        self._hand_out()

    def _may_take(self, agent: str) -> bool:
        return self._held[agent] < GREED * self._free

    def _take(self, agent: str) -> None:
        self._free -= 1
        self._held[agent] += 1

    def _hand_out(self) -> None:
        """Let those in who may come in now, one of each agent in turn."""
        agents = deque(self._lines)
        while agents:
            agent = agents.popleft()
            line = self._lines[agent]
            if not self._may_take(agent):
                continue
            turn = line.popleft()
            if not turn.done():  # one that was cancelled in this very moment is still in line
                self._take(agent)
                turn.set_result(None)
            self._lines.move_to_end(agent)
            if line:
                agents.append(agent)
            else:
                del self._lines[agent]

    async def _wait(self, agent: str, patience: float) -> None:
        line = self._lines.get(agent, ())
        is_hopeless = self._held[agent] >= self._most  # for all places that it lost: those who wait would wait in vain
        if is_hopeless or len(line) >= self._room - sum(map(len, self._lines.values())):
            raise ShareSpent(of=self._of, running=self._held[agent], waiting=len(line), retry_after=self._until(agent))
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(agent, deque()).append(turn)
        try:
            with anyio.fail_after(patience):
                await turn
        except BaseException as end:
            if turn.done() and not turn.cancelled():
                self.give_back(agent)  # it was handed out while its caller was leaving
            else:
                self._leave(agent, turn)
            if isinstance(end, TimeoutError):
                raise Overdue from None
            raise

    def _leave(self, agent: str, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(agent)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._lines[agent]

    def _until(self, agent: str) -> float:
        """About how many seconds pass until the agent's line has moved by one."""
        return round(min(max(self._usual / max(self._held[agent], 1), _SHORTEST), _LONGEST), 3)
