"""One figure beside its limit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """What was measured, and how much it may be."""

    name: str
    value: float
    limit: float
    unit: str

    @property
    def holds(self) -> bool:
        return self.value <= self.limit

    def row(self) -> str:
        """The figure as a line of the report."""
        verdict = "ok" if self.holds else "TOO MUCH"
        return f"{self.name:<44} {self.value:>9,.0f} {self.unit:<7} limit {self.limit:>7,.0f}  {verdict}"
