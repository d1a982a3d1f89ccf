"""How calls wait for a person."""

from __future__ import annotations

from pydantic import Field

from toolgrove.config.section import Section


class ApprovalsConfig(Section):
    """What happens to a call until a person has decided about it."""

    hold: float = Field(
        default=20.0,
        ge=0,
        le=600,
        description="Seconds for which the call of a client that asked for progress is held open, so that a quick "
        "approval needs no second call. Other clients learn at once that it waits.",
    )
