"""Who makes a call: the agent itself, or the operator who acts as the agent."""

from __future__ import annotations

from toolgrove.store.state import OPERATOR
from toolgrove.types import Caller


def actor(caller: Caller) -> str | None:
    """Who acts for the agent; None where the agent does so itself. No agent can have such a session."""
    return "operator" if caller.session.startswith(OPERATOR) else None
