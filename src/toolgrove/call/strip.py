"""Takes characters that no reader can see out of what foreign tools answer, where the operator wants that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolgrove.errors import GroveError
from toolgrove.notation.unseen_text import stripped
from toolgrove.types import Call, Client, Next, Result, Step

CHANGED = "toolgrove/changed"
POLICY = "results.stripControl"


class StripStep:
    """Stands between two scrubbers: `scrub` sees a secret that holds such a character itself, the one outside sees a
    secret whose letters were kept apart by them."""

    def __init__(self, wanted: Callable[[], bool], scrub: Step) -> None:
        self._wanted = wanted
        self._scrub = scrub

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        if call.tool is None or call.tool.kind == "builtin" or not self._wanted():
            return onward(call)
        return self._stripped(call, onward)

    async def _stripped(self, call: Call, onward: Next) -> Result:
        client = call.client
        if client is not None:
            call.client = _Stripped(client)
        try:
            result = await self._scrub(call, onward)
        except GroveError as error:
            message, facts = stripped(error.message), _without(error.facts)
            _note(call, (message, facts) != (error.message, error.facts))
            error.message, error.facts, error.args = message, facts, (message,)
            raise
        finally:
            call.client = client
        content = call.content
        if content is not None:
            call.content = _without(content)
            _note(call, call.content != content)
            if result.get("content") is content:  # the result of a tool that has nothing but its blocks
                return {**_without({**result, "content": None}), "content": call.content}
        clean: Result = _without(result)
        _note(call, clean != result)
        return clean


def marked(call: Call, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer that says which policies changed it."""
    return {**answer, "_meta": {CHANGED: list(call.changed)}} if call.changed else answer


def _note(call: Call, changed: bool) -> None:
    if changed:
        call.changed = (POLICY,)


def _without(value: Any) -> Any:
    if isinstance(value, str):
        return stripped(value)
    if isinstance(value, dict):
        return {stripped(key): _without(item) for key, item in value.items()}
    return [_without(item) for item in value] if isinstance(value, list) else value


class _Stripped:
    """A client that hears nothing which cannot be seen."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self._client.progress(progress, total, message if message is None else stripped(message))

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        return await self._client.elicit(stripped(message), schema)
