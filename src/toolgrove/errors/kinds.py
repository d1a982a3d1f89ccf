"""The kinds of failure, one for each code; the code tells an agent what to do next."""

from __future__ import annotations

from typing import Any, ClassVar

from toolgrove.errors.wording import MESSAGE, brief


class GroveError(Exception):
    """A failure with a code for machines, a message for readers and facts for both."""

    code: ClassVar[str] = "internal"
    retryable: bool = False

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = {name: value for name, value in facts.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """The error object as every face returns it; what a caller wrote comes back in part if it is long."""
        facts = {name: brief(one, MESSAGE) if isinstance(one, str) else one for name, one in self.facts.items()}
        return {"error": {"code": self.code, "message": brief(self.message, MESSAGE), **facts}}

    def answer(self) -> dict[str, Any]:
        """What the agent gets."""
        return self.to_json()


class InvalidArgument(GroveError):
    """The request cannot be carried out as written."""

    code = "invalid_argument"


class NotFound(GroveError):
    """Nothing has that name."""

    code = "not_found"


class Forbidden(GroveError):
    """This agent may not do that."""

    code = "forbidden"


class Conflict(GroveError):
    """The request rests on something that is no longer so."""

    code = "conflict"
    retryable = True


class RateLimited(GroveError):
    """The agent called too often."""

    code = "rate_limited"
    retryable = True

    def __init__(self, *, limit: str, retry_after: float, of: str | None = None) -> None:
        holder = f" of agent {of!r}, on whose behalf you work," if of is not None else ""
        super().__init__(
            f"The limit of {limit}{holder} is used up. Wait {retry_after:g} s before the next call; "
            "fewer, larger calls help.",
            retryAfter=retry_after,
        )


class Internal(GroveError):
    """Something broke on our side; the detail is in the server's log under the call id."""

    code = "internal"

    def __init__(self, *, call_id: str, reason: str | None = None) -> None:
        super().__init__(
            f"The call failed on our side; nothing was changed. Report call {call_id!r} to the operator.",
            callId=call_id,
            reason=reason,
        )
