"""A call that the end of its gateway cut off, or kept from beginning."""

from __future__ import annotations

from toolgrove.errors.kinds import GroveError


class CutShort(GroveError):
    """The gateway ends; what it cannot take back it does not deny."""

    code = "internal"

    def __init__(self, *, tool: str, sent: bool, mutates: bool = False) -> None:
        if not sent:
            text = f"The gateway is shutting down, and {tool} was not run. Call it again when the gateway is back."
        elif mutates:
            text = (
                f"The gateway is shutting down, and {tool} had not finished. "
                "It may have run anyway: check before you call it again."
            )
        else:
            text = f"The gateway is shutting down, and {tool} had not finished. Call it again when the gateway is back."
        super().__init__(text, reason="cut_off")
        self.retryable = not mutates
