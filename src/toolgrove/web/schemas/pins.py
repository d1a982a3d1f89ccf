"""Pinned definitions, and a person's decision about one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from toolgrove.pool.definition_lint import ToolNames, flags
from toolgrove.store import state as project_state
from toolgrove.web.schemas.json_object import Answer, Body


@dataclass(frozen=True, kw_only=True, slots=True)
class Pin(Answer):
    """A pinned definition, and what its server says now if that differs."""

    server: str
    tool: str
    state: Annotated[
        project_state.PinState, Field(description="Pending: nothing was accepted yet. Refused: a person keeps it out.")
    ]
    hash: Annotated[str, Field(description="Empty while nothing was accepted.")]
    pinned_at: float
    pinned_by: str
    seen_hash: str | None
    seen_at: float | None
    diff: Annotated[str | None, Field(description="What waits, held against what was accepted.")]
    remarks: Annotated[list[str], Field(description="What in the waiting definition is worth a second look.")]
    refused_by: str | None

    @classmethod
    def of(cls, kept: project_state.Pin, names: ToolNames) -> Pin:
        """A pin, as the person who accepts definitions needs it; the names tell which tools are another's."""
        return cls(
            server=kept.server,
            tool=kept.own_name,
            state=kept.state,
            hash=kept.hash,
            pinned_at=kept.pinned_at,
            pinned_by=kept.pinned_by,
            seen_hash=kept.seen_hash or None,
            seen_at=kept.seen_at,
            diff=kept.diff() or None,
            remarks=flags(kept.server, kept.seen_definition or {}, names),
            refused_by=kept.refused_by or None,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PinList(Answer):
    """Pins, by server and tool."""

    items: list[Pin]


class PinDecision(Body):
    """A person's word on the definition that was looked at, by its hash: accept or refuse, one of the two."""

    accept: str = Field(default="", description="seenHash, or at least its first eight characters.")
    refuse: str = Field(default="", description="The same, to keep it out.")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if bool(self.accept) == bool(self.refuse):
            raise ValueError("accept or refuse, one of the two")
        return self
