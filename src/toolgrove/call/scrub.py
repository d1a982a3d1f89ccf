"""Keeps secrets out of what comes back from a source: its result, its failure, and what it says meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from toolgrove.errors import GroveError
from toolgrove.notation.unseen_text import visible
from toolgrove.types import Call, Client, Next, Result, Tool

WORKSPACE = "workspace"


class Messages(Protocol):
    """Scrubs texts that belong together."""

    def feed(self, message: str) -> str: ...


class Scrubs(Protocol):
    """Knows the secrets that were used so far."""

    def scrub(self, value: Any) -> Any: ...

    def scrub_text(self, text: str) -> str: ...

    def messages(self) -> Messages: ...

    def stream(self) -> Messages:
        """Scrubs one text that comes in pieces; what may be the beginning of a secret is held back."""


def is_scrubbed(tool: Tool) -> bool:
    """Whether results of the tool pass the scrubber; those of the workspace do not, since no secret gets there."""
    return tool.kind != "builtin" or tool.spec.source != WORKSPACE


class ScrubStep:
    """Inside of every step that keeps something, so that none of them ever holds what an agent must not see."""

    def __init__(self, secrets: Scrubs) -> None:
        self._secrets = secrets

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        if call.tool is None or not is_scrubbed(call.tool):
            return onward(call)
        return self._scrubbed(call, onward)

    async def _scrubbed(self, call: Call, onward: Next) -> Result:
        client = call.client
        if client is not None:
            call.client = _Scrubbed(client, self._secrets)
        try:
            result = await onward(call)
        except GroveError as error:
            self._clean(error)
            raise
        finally:
            call.client = client
        content = call.content
        if content is not None:
            call.content = self._blocks(content)
            if result.get("content") is content:  # the result of a tool that has nothing but its blocks
                return {**self._secrets.scrub({**result, "content": None}), "content": call.content}
        clean: Result = self._secrets.scrub(result)
        return clean

    def _blocks(self, content: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A model reads the blocks as one text, so a secret may be split between two."""
        messages = self._secrets.messages()
        blocks: list[dict[str, Any]] = []
        for block in content:
            text = block.get("text")
            if isinstance(text, str):
                block = {**block, "text": messages.feed(text)}
            blocks.append(self._secrets.scrub(block))
        return blocks

    def _clean(self, error: GroveError) -> None:
        error.message = self._secrets.scrub_text(error.message)
        error.facts = self._secrets.scrub(error.facts)
        error.args = (error.message,)


class _Scrubbed:
    """A client that hears no secret, not even one that comes in pieces; a person who is asked sees every character."""

    def __init__(self, client: Client, secrets: Scrubs) -> None:
        self._client = client
        self._secrets = secrets
        self._messages = secrets.messages()

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        shown = message if message is None else self._messages.feed(message)
        await self._client.progress(progress, total, shown)

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        return await self._client.elicit(visible(self._secrets.scrub_text(message)), self._secrets.scrub(schema))
