"""What counts as refused, failed or waiting: the one definition behind records, figures and filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgrove.store.audit.record import Outcome

_REFUSALS = frozenset(("forbidden", "rate_limited"))


def outcome_of(error: Mapping[str, Any]) -> Outcome:
    """How a call ended that answered with an error: one that a person is asked about waits, and has not failed."""
    if error.get("reason") == "approval_required":
        return "waiting"
    return "refused" if error["code"] in _REFUSALS else "failure"
