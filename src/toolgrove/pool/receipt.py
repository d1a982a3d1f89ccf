"""Why an agent has a tool, or does not: the answer must never need a debugger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from toolgrove.pool.offer import Offer
from toolgrove.pool.snapshot import SourceState

Standing = Literal["granted", "denied", "masked", "unvalidated", "quarantined", "pending", "unavailable", "restricted"]


class Verdict(NamedTuple):
    """What was decided about a tool, and the rule that decided; `ancestor` is whose, if an agent above took it away."""

    verdict: Standing
    rule: str
    source: str
    ancestor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ListCost:
    """About how many tokens an agent's list costs: by tool and by source, beside its budget. An estimate."""

    tools: Mapping[str, int]
    sources: Mapping[str, int]
    budget: int

    @property
    def total(self) -> int:
        """What the whole list costs."""
        return sum(self.tools.values())


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Receipt(Mapping[str, Verdict]):
    """The resolution of an agent, tool by tool; `hash` is stamped on its calls, events and audit records.

    `chain` names the agents above it, the outermost first, and the agent itself; `cost` is that of its list.
    """

    agent: str
    depth: int
    chain: tuple[str, ...]
    revision: int
    hash: str
    verdicts: Mapping[str, Verdict]
    sources: Mapping[str, SourceState]
    rejected: Sequence[Offer]
    warnings: tuple[str, ...]
    cost: ListCost

    def __getitem__(self, tool: str) -> Verdict:
        return self.verdicts[tool]

    def __iter__(self) -> Iterator[str]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def about(self, tools: Collection[str]) -> Receipt:
        """The part that tells of these tools alone: no other name, and no source that has none of them."""
        verdicts = {name: verdict for name, verdict in self.verdicts.items() if name in tools}
        counts = Counter(verdict.source for verdict in verdicts.values())
        sources = {
            name: replace(state, tools=counts[name], problem="")
            for name, state in self.sources.items()
            if name in counts
        }
        return replace(self, verdicts=verdicts, sources=sources, rejected=(), warnings=())
