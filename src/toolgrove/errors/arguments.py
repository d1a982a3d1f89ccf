"""What is wrong with what a call was given."""

from __future__ import annotations

from toolgrove.errors.kinds import InvalidArgument


class SchemaMismatch(InvalidArgument):
    """An argument does not match the tool's input schema."""

    def __init__(self, *, path: str, problem: str, hint: str | None = None) -> None:
        where = f"Argument {path!r}" if path else "The arguments"
        tail = f" {hint}" if hint else ""
        super().__init__(f"{where}: {problem}.{tail}", reason="schema", path=path, hint=hint)


class NotJson(InvalidArgument):
    """An argument holds something that JSON cannot carry."""

    def __init__(self, *, path: str, problem: str) -> None:
        where = f"Argument {path!r}" if path else "The arguments object"
        super().__init__(f"{where} {problem}. Send plain JSON in well-formed text.", reason="not_json", path=path)


class UnreadableArguments(InvalidArgument):
    """A model wrote arguments that are not a JSON object."""

    def __init__(self, *, tool: str, problem: str) -> None:
        super().__init__(
            f"The arguments for {tool!r} cannot be read: {problem}. Send one complete JSON object, {{}} for none.",
            reason="not_json",
        )


class BatchTooLarge(InvalidArgument):
    """A request asks for more at once than is configured."""

    def __init__(self, *, argument: str, count: int, limit: int, hint: str | None = None) -> None:
        advice = hint or f"Send batches of at most {limit}."
        super().__init__(
            f"{argument!r} covers {count} items; the limit is {limit}. {advice}",
            reason="batch_limit",
            argument=argument,
            count=count,
            limit=limit,
        )


class BadPageToken(InvalidArgument):
    """A page token was altered or belongs to another question."""

    def __init__(self) -> None:
        super().__init__(
            "This pageToken was not issued for this agent, tool and arguments. Repeat the call without "
            "pageToken to start at the first page, and keep every other argument unchanged between pages.",
            reason="page_token",
        )


class KeyReused(InvalidArgument):
    """An idempotency key came back with another request."""

    def __init__(self, *, key: str) -> None:
        super().__init__(
            f"idempotencyKey {key!r} was already used for a different request. Use a new key for a new "
            "request, or repeat the first one unchanged.",
            reason="idempotency_key_reused",
        )
