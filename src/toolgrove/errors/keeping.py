"""What a call would leave behind cannot be kept, so it did not happen."""

from __future__ import annotations

from toolgrove.errors.kinds import GroveError

_WORDS = {
    "store_locked": "Another program has locked the store",
    "store_unreachable": "The database does not answer",
    "version_outdated": "A newer version of Toolgrove has taken the database over from this replica",
    "store_gone": "The store's files were deleted, replaced or overwritten",
}


class NotKept(GroveError):
    """The store refused a change, or the record without which a call must not leave; neither happened."""

    code = "internal"

    def __init__(self, *, call_id: str, trouble: str | None, retry_after: float) -> None:
        self.retryable = trouble != "store_gone"
        what = _WORDS.get(trouble or "", "The store cannot be written")
        advice = (
            f"It is safe to repeat the call: try again in {retry_after:g} s. If it continues, report call "
            f"{call_id!r} to the operator."
            if self.retryable
            else f"The operator must restore them and restart. Report call {call_id!r}; do not retry until then."
        )
        super().__init__(
            f"{what}, so nothing was changed or sent. {advice}",
            callId=call_id,
            reason="journal_unavailable",
            retryAfter=retry_after if self.retryable else None,
        )


class StoreDiverged(GroveError):
    """What this process holds is not in the stored history, so nothing is answered from it."""

    code = "internal"
    retryable = True

    def __init__(self, *, retry_after: float) -> None:
        super().__init__(
            "The store was set back to an earlier state, and this process is about to read it again. Nothing was read "
            f"or changed. Try again in {retry_after:g} s; versions from before may be lost then.",
            reason="store_diverged",
            retryAfter=retry_after,
        )


class LimitUnknown(GroveError):
    """Whether the agent called too often cannot be known, and the call would change something."""

    code = "rate_limited"
    retryable = True

    def __init__(self, *, retry_after: float) -> None:
        super().__init__(
            "Calls cannot be counted right now, so changes are refused; nothing was changed. "
            f"Wait {retry_after:g} s, then repeat the call.",
            reason="limits_unavailable",
            retryAfter=retry_after,
        )
