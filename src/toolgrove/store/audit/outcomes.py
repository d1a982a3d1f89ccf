"""What counts as refused, failed or waiting: the one definition behind records, figures and filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgrove.store.audit.record import Outcome

_BY_REASON: dict[Any, Outcome] = {"approval_required": "waiting", "cancelled": "cancelled", "cut_off": "cancelled"}
_REFUSALS = frozenset(("forbidden", "rate_limited"))


def outcome_of(error: Mapping[str, Any]) -> Outcome:
    """How a call ended that has an error: one that asks a person waits, one that was ended has not failed."""
    if (reason := error.get("reason")) in _BY_REASON:
        return _BY_REASON[reason]
    return "refused" if error["code"] in _REFUSALS else "failure"
