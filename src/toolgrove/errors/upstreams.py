"""What a tool's own server did, or what is missing to reach it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolgrove.errors.kinds import Conflict, Forbidden, GroveError, NotFound, RateLimited
from toolgrove.errors.wording import NAME, brief, did_you_mean


class UpstreamFailed(GroveError):
    """A tool's own server failed, hung or answered nonsense; `reason` says which."""

    code = "internal"

    def __init__(self, message: str, *, reason: str, retryable: bool = False, **facts: Any) -> None:
        super().__init__(message, reason=reason, **facts)
        self.retryable = retryable


class ResourceNotFound(NotFound):
    """No server that the agent may read from has a resource with that address."""

    def __init__(self, uri: str) -> None:
        super().__init__(f"There is no resource {brief(uri, NAME)!r}. List the resources to see which exist.")


class PromptNotFound(NotFound):
    """The agent has no prompt of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no prompt {brief(name, NAME)!r}. List the prompts to see which exist.")


class RightsMissing(Forbidden):
    """Our login to a server does not have the rights that a call needs; only the operator can get them."""

    def __init__(self, *, server: str, what: str, scopes: Sequence[str]) -> None:
        super().__init__(
            f"Server {server!r} {what}. Nothing ran. Only the operator can do that; do not retry until then.",
            reason="insufficient_scope",
            scopes=list(scopes) or None,
        )


class ToolError(GroveError):
    """A tool of an MCP server says that it failed. The agent gets `result`, what the tool said; this is for records."""

    def __init__(self, message: str, *, result: dict[str, Any]) -> None:
        super().__init__(message, reason="tool_error")
        self.result = result

    def answer(self) -> dict[str, Any]:
        """What the tool said, and nothing of ours."""
        return self.result


class OutcomeUnknown(Conflict):
    """The same call was cut off before. Nobody knows whether it ran, or it became known too late to be its answer."""

    def __init__(self, *, tool: str, call_id: str, begun_at: str, became: str | None = None) -> None:
        ran = "may have run" if became is None else f"its outcome became known later: {became}"
        advice = "Find out whether it did." if became is None else "Look at what it did."
        super().__init__(
            f"The last call of {tool!r} with these arguments ({call_id}, started at {begun_at}) was cut off and {ran}. "
            f"{advice} To run it anyway, send this call again.",
            reason="outcome_unknown",
            callId=call_id,
            **({} if became is None else {"laterOutcome": became}),
        )


class ShareSpent(RateLimited):
    """The agent has as many calls under way at an upstream as it may."""

    def __init__(self, *, of: str, running: int, waiting: int, retry_after: float) -> None:
        GroveError.__init__(
            self,
            f"{of} already has {running} calls of this agent running and {waiting} waiting; the rest is reserved for "
            f"others. Wait {retry_after:g} s before the next call.",
            reason="upstream_busy",
            retryAfter=retry_after,
        )


class SecretUnset(GroveError):
    """A reference to a secret leads to nothing; names the field and the reference, never a value."""

    code = "internal"

    def __init__(self, *, reference: str, field: str, problem: str) -> None:
        super().__init__(
            f"{field} refers to {reference}, but {problem}. The operator must set it; do not retry until then.",
            reason="secret_unset",
            field=field,
            reference=reference,
        )


class SecretOutOfScope(Forbidden):
    """A tool's settings refer to a secret that is not meant for it."""

    def __init__(self, *, reference: str, field: str, user: str, allowed: Sequence[str]) -> None:
        tools = ", ".join(allowed) or "no tool"
        super().__init__(
            f"{field} refers to {reference}, which {user} may not use; it is for {tools}. "
            "The operator can add the tool to that secret's 'tools'; do not retry.",
            reason="secret_scope",
            field=field,
        )


class PinNotFound(NotFound):
    """No tool of that server has a pin."""

    def __init__(self, *, server: str, own_name: str, known: Sequence[str]) -> None:
        name = f"{server}/{own_name}"
        super().__init__(
            f"There is no pin for {name!r}.{did_you_mean(name, known)} 'toolgrove pins' lists all.", reason="pin"
        )


class PinMoved(Conflict):
    """The definition to accept is not the one that the server has now."""

    def __init__(self, *, server: str, own_name: str, given: str, seen: str) -> None:
        now = f"the server now offers {seen}" if seen else "nothing waits to be accepted"
        super().__init__(
            f"{server}/{own_name} has no definition {given} to accept: {now}. Review the difference again.",
            reason="pin_moved",
            seen=seen or None,
        )
