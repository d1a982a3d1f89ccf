"""Why an agent has a tool, or has not: the answer must never need a debugger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from toolgrove.pool.offer import Offer
from toolgrove.pool.snapshot import SourceState

Standing = Literal["granted", "denied", "masked", "unvalidated", "quarantined", "unavailable", "restricted"]


class Verdict(NamedTuple):
    """What was decided about a tool, and the rule that decided."""

    verdict: Standing
    rule: str
    source: str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Receipt(Mapping[str, Verdict]):
    """The resolution of an agent, tool by tool; `hash` is stamped on its calls, events and audit records."""

    agent: str
    depth: int
    revision: int
    hash: str
    verdicts: Mapping[str, Verdict]
    sources: Mapping[str, SourceState]
    rejected: Sequence[Offer]
    warnings: tuple[str, ...]

    def __getitem__(self, tool: str) -> Verdict:
        return self.verdicts[tool]

    def __iter__(self) -> Iterator[str]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def to_json(self) -> dict[str, Any]:
        """The receipt as every face shows it."""
        return {
            "agent": self.agent,
            "depth": self.depth,
            "revision": self.revision,
            "hash": self.hash,
            "tools": {name: verdict._asdict() for name, verdict in sorted(self.verdicts.items())},
            "sources": {name: asdict(state) for name, state in sorted(self.sources.items())},
            "rejected": [{"name": o.name, "source": o.source, "reason": o.reason} for o in self.rejected],
            "warnings": list(self.warnings),
        }
