"""The sample's yesterday: real calls of its agents, made at its first start by a clock that begins a day earlier."""

from __future__ import annotations

import time

from toolgrove.grove import Grove
from toolgrove.sample.hand import Hand
from toolgrove.sample.watering import water
from toolgrove.store.audit import AuditQuery

SESSION = "sample"
"""Marks the records of what nobody but the sample did."""
BACK = 25 * 3600.0
_STEP = 300.0
_BUSY = (0, 0, 0, 0, 0, 1, 3, 4, 2, 1, 1, 2, 3, 2, 1, 1, 2, 3, 4, 3, 2, 1, 0, 0)
"""How much there is to do in each hour of a gardener's day."""


class SampleClock:
    """The machine's clock, which can be set back once and then catches up; it never runs backwards for long waits."""

    def __init__(self) -> None:
        self._behind = self._skipped = 0.0

    def wall(self) -> float:
        return time.time() - self._behind

    def monotonic(self) -> float:
        return time.monotonic() + self._skipped

    def go_back(self) -> None:
        """Begin a day earlier."""
        self._behind = BACK

    def skip(self, seconds: float) -> bool:
        """Let some time pass; whether it is still earlier than now."""
        passed = min(seconds, self._behind)
        self._behind, self._skipped = self._behind - passed, self._skipped + passed
        return self._behind > 0


async def is_new(grove: Grove) -> bool:
    """Whether no agent of this project has called anything yet."""
    return not (await grove.audit_log.records(AuditQuery(kind="call", limit=1))).lines


async def live_through(grove: Grove, clock: SampleClock) -> None:
    """A day of the garden, until now."""
    sprinkler, gardener, researcher = (Hand(grove, name, SESSION) for name in ("sprinkler", "gardener", "researcher"))
    listed = await sprinkler.call("list_children", nodeId="beds", includedProperties=["name"])
    beds = [item["nodeId"] for item in listed.get("items", ())]
    turn = 0
    while clock.skip(_STEP):
        turn += 1
        busy = _BUSY[time.localtime(clock.wall()).tm_hour]
        if beds and busy:
            await water(sprinkler, beds[turn % len(beds)])
        if turn % 6 == 0:
            await researcher.call("select_nodes", queryDsl="//Bed/Crop[status = growing]")
        for number in range(busy):
            await researcher.call("get_view", rootNodeId="beds", maxTokens=300 + 50 * number)
            await gardener.call("get_node", nodeId="beds")
        if busy > 2 and turn % 4 == 0:
            await gardener.do("tag_node", nodeId="courgette", tags=[f"seen-{turn}"])
        await _stumble(turn, sprinkler, researcher)


async def _stumble(turn: int, sprinkler: Hand, researcher: Hand) -> None:
    """Now and then something is refused, or does not work."""
    if turn % 46 == 5:
        await sprinkler.change("update_payload", nodeId="shed", patch={"wet": True})
    if turn % 74 == 8:
        await researcher.call("select_nodes", queryDsl="//Crop[status = = growing]")
    if turn % 82 == 12:
        await researcher.call("get_node", nodeId="greenhouse")
