"""Deeds: what people did to the state, on its way into the audit log.

A deed is kept in the transaction of what was done, whichever process does it. The process that has the audit log puts
it on record, and only then lets go of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolgrove.store.audit import Kind


@dataclass(frozen=True, kw_only=True, slots=True)
class Deed:
    """Something that was decided: by whom, when, and about which agent.

    What is about a call says on whose behalf that was made: `chain`, `parent_call_id` and `run_id`.
    """

    kind: Kind
    operation: str
    at: float
    by: str
    agent: str = ""
    targets: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    chain: tuple[str, ...] = ()
    parent_call_id: str | None = None
    run_id: str = ""


class Deeds(Protocol):
    """Those that are not on record yet."""

    def waiting(self) -> Sequence[tuple[int, Deed]]:
        """The oldest of them, each with its number."""

    def recorded(self, last: int) -> None:
        """Let go of all up to this number."""


def read_deed(facts: Mapping[str, Any]) -> Deed:
    """A deed from what was kept of it as JSON."""
    return Deed(**{**facts, "targets": tuple(facts["targets"]), "chain": tuple(facts.get("chain", ()))})
