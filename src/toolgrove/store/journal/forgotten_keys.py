"""Telling the operator of idempotency keys that had to go before their time."""

from __future__ import annotations

import logging

from toolgrove.store.journal.journal import KeyLimits

log = logging.getLogger("toolgrove.store")


class ForgottenKeys:
    """Says once for each agent that its retries are no longer safe for the whole lifetime of a key."""

    def __init__(self, limits: KeyLimits) -> None:
        self._limits = limits
        self._told: set[str] = set()

    def note(self, agent: str) -> None:
        """The oldest keys of this agent were forgotten early."""
        if agent not in self._told:
            self._told.add(agent)
            log.warning(
                "Agent %s used more than %d idempotency keys within %g hours: its oldest are forgotten, and a retry "
                "with one of those runs as a new call.",
                agent,
                self._limits.per_agent,
                self._limits.lifetime / 3600,
            )
