"""Who is told that a call waits for a person."""

from __future__ import annotations

from pydantic import Field

from toolgrove.config.reference import Filled
from toolgrove.config.section import Section


class NotifyConfig(Section):
    """A webhook: it hears of every call that begins to wait, and never of its arguments."""

    url: str = Field(
        pattern=r"^https?://", description="Where each notice is sent, by POST; redirects are not followed."
    )
    secret: Filled = Field(
        min_length=1, repr=False, description="A reference such as ${env:HOOK_SECRET}; notices are signed with it."
    )
    console: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="Where people reach this gateway, such as https://tools.example; notices link to the call there.",
    )
