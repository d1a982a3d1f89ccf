"""How the tools do, each by itself: calls, failures, and how long the latest took."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from toolgrove.events import Event, Heard, ToolFailed

if TYPE_CHECKING:
    from toolgrove.web.schemas import Figures

_KEPT = 200
_REFUSALS = frozenset(("forbidden", "rate_limited"))
_WAITS = "approval_required"


@dataclass(slots=True)
class _Tally:
    calls: int = 0
    failures: int = 0
    refusals: int = 0
    latest: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT))


class ToolFigures:
    """Counts since the gateway started; a call only adds to it. Names are the pool's own, so they are bounded."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}

    def follow(self, heard: Heard) -> None:
        """Count calls from now on."""
        heard.tally(self._succeeded)
        heard.listen(self._failed, ToolFailed)

    def _succeeded(self, agent: str, tool: str, seconds: float) -> None:
        self._add(tool, seconds)

    def _failed(self, event: Event) -> None:
        if isinstance(event, ToolFailed) and "tool" not in event.error:  # which names a tool that nobody has
            if event.error.get("reason") == _WAITS:
                self._add(event.tool, None)
            elif event.error["code"] in _REFUSALS:
                self._add(event.tool, None, refusals=1)
            else:
                self._add(event.tool, event.duration, failures=1)

    def of(self, tools: Iterable[str]) -> Figures:
        """The figures of some tools together."""
        found = [self._tallies[tool] for tool in tools if tool in self._tallies]
        latest = sorted(seconds for tally in found for seconds in tally.latest)
        kind: type[Figures] = import_module("toolgrove.web.schemas").Figures  # only those who look pay for its import
        return kind(
            calls=sum(tally.calls for tally in found),
            failures=sum(tally.failures for tally in found),
            refusals=sum(tally.refusals for tally in found),
            median_ms=_at(latest, 0.5),
            slow_ms=_at(latest, 0.95),
        )

    def _add(self, tool: str, took: float | None, *, failures: int = 0, refusals: int = 0) -> None:
        tally = self._tallies.get(tool)
        if tally is None:
            tally = self._tallies[tool] = _Tally()
        tally.calls += 1
        tally.failures += failures
        tally.refusals += refusals
        if took is not None:
            tally.latest.append(took)


def _at(latest: list[float], share: float) -> float | None:
    return round(latest[min(int(len(latest) * share), len(latest) - 1)] * 1_000, 2) if latest else None
