"""An HTTP status of 400 and more as an error that says what to do next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolgrove.errors import Conflict, GroveError, InvalidArgument, NotFound, RateLimited, UpstreamFailed
from toolgrove.notation.retry_after import seconds_to_wait
from toolgrove.notation.unseen_text import blanked
from toolgrove.pool.http.answer import content_type, text_of_body
from toolgrove.pool.http.exchange import HttpAnswer
from toolgrove.pool.http.operation import HttpOperation

Beginning = Callable[[str, int], str]
"""At most so many characters of a text, scrubbed before the rest is cut off."""
REASON = "http_status"
_EXCERPT = 300
_LOOKED_AT = 4_000
_WAIT = 10.0


def status_error(answer: HttpAnswer, operation: HttpOperation, beginning: Beginning, now: float) -> GroveError:
    """What a failed call tells the agent."""
    tool, status = operation.name, answer.status
    facts: dict[str, Any] = {"reason": REASON, "status": status, "excerpt": _excerpt(answer, beginning)}
    if status in (400, 422):
        return InvalidArgument(f"The server of {tool} refuses the arguments ({status}); see excerpt.", **facts)
    if status in (404, 410):
        return NotFound(f"The server of {tool} does not have that ({status}).", **facts)
    if status in (409, 412):
        return Conflict(
            f"The server of {tool} sees a conflict ({status}). Read the current state, then decide again.", **facts
        )
    if status == 429:
        limited = RateLimited(limit=f"the server of {tool}", retry_after=_retry_after(answer, now) or _WAIT)
        limited.facts |= {name: value for name, value in facts.items() if value is not None}
        return limited
    if status in (401, 403, 407):
        advice = f"does not accept our credentials ({status}). Tell the operator to check {operation.entry}.headers"
        return UpstreamFailed(f"The server of {tool} {advice}; do not retry.", **facts)
    if status >= 500:
        facts["retryAfter"] = _retry_after(answer, now)
        advice = "Whether it took effect is unknown: look first." if operation.mutates else "Try again later."
        return UpstreamFailed(
            f"The server of {tool} failed ({status}). {advice}", retryable=not operation.mutates, **facts
        )
    return UpstreamFailed(f"The server of {tool} refuses the call ({status}); see excerpt.", **facts)


def _excerpt(answer: HttpAnswer, beginning: Beginning) -> str | None:
    if b"\0" in answer.body or content_type(answer).startswith(("image/", "audio/", "video/", "application/octet")):
        return None
    text = " ".join(blanked(beginning(text_of_body(answer), _LOOKED_AT)).split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"


def _retry_after(answer: HttpAnswer, now: float) -> float | None:
    return seconds_to_wait(answer.headers.get("retry-after", ""), now=now)
