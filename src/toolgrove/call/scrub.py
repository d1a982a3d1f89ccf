"""Keeps secrets out of what comes back from a source: its result, its failure, and what it says meanwhile.

This is the one place that scrubs what a tool answers. A source scrubs only what it cuts, since half a secret would not
be found any more. Large answers are scrubbed in a thread, so that no other call waits for them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol

import anyio.to_thread

from toolgrove.call.strip import STRIPPED, without_unseen
from toolgrove.errors import GroveError, ToolError
from toolgrove.notation.half_characters import whole, whole_text
from toolgrove.notation.json_value import text_size
from toolgrove.notation.unseen_text import stripped, visible
from toolgrove.types import Call, Client, Counterpart, Next, Result, Tool

WORKSPACE = "workspace"
SCRUBBED = "secrets"
LARGE = 64 * 1024
"""Characters of text that take about a millisecond to scrub; what has more goes to a thread."""


class Messages(Protocol):
    """Scrubs texts that belong together."""

    def feed(self, message: str) -> str: ...


class Stream(Messages, Protocol):
    """Scrubs one text that comes in pieces."""

    def end(self) -> str:
        """What was held back: no more comes."""


class Scrubs(Protocol):
    """Knows the secrets that were used so far."""

    @property
    def known(self) -> bool:
        """Whether there are any: without one, nothing is scrubbed."""

    def scrub(self, value: Any) -> Any: ...

    def scrub_text(self, text: str) -> str: ...

    def messages(self) -> Messages: ...

    def stream(self) -> Stream:
        """Scrubs one text that comes in pieces; what may be the beginning of a secret is held back."""


def is_scrubbed(tool: Tool) -> bool:
    """Whether results of the tool pass the scrubber; those of the workspace do not, since no secret gets there."""
    return tool.kind != "builtin" or tool.spec.source != WORKSPACE


class ScrubStep:
    """Inside of every step that keeps something, so that none of them ever holds what an agent must not see.

    Where the operator wants it, `strips` says so, characters that no reader can see go too. A secret may hold such a
    character, or be kept apart by some, so the answer is scrubbed before, and again if something was taken out.
    """

    def __init__(self, secrets: Scrubs, *, strips: Callable[[], bool] = lambda: False) -> None:
        self._secrets = secrets
        self._strips = strips
        # One at a time: more would take turns with each other and with the event loop, and none would be done sooner.
        self._room = anyio.CapacityLimiter(1)

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        if not is_scrubbed(call.granted):
            return onward(call)
        return self._scrubbed(call, onward, strips=call.granted.kind != "builtin" and self._strips())

    async def _scrubbed(self, call: Call, onward: Next, *, strips: bool) -> Result:
        client = call.client
        if client is not None:
            call.client = _Scrubbed(client, self._secrets, strips=strips)
        try:
            result = await onward(call)
        except GroveError as error:
            if self._clean(error, strips=strips):
                call.note_change(STRIPPED)
            if isinstance(error, ToolError):
                error.result = await self._shown(call, error.result, strips=strips)
            raise
        finally:
            call.client = client
        return await self._shown(call, result, strips=strips)

    async def _shown(self, call: Call, result: Result, *, strips: bool) -> Result:
        """The result as it can be shown."""
        if not self._secrets.known and not strips:
            return result
        work = partial(self._cleaned, result, of_mcp=call.granted.kind == "mcp", strips=strips)
        if text_size(result, enough=LARGE) < LARGE:
            clean, policies = work()
        else:
            clean, policies = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._room)
        for policy in policies:
            call.note_change(policy)
        return clean

    def _cleaned(self, result: Result, *, of_mcp: bool, strips: bool) -> tuple[Result, Sequence[str]]:
        """The result as it can be shown, and the policies that changed it."""
        clean = self._without_secrets(result, of_mcp)
        policies = [] if clean is result or clean == result else [SCRUBBED]
        if not strips:
            return clean, policies
        bare: Result = without_unseen(clean)
        if bare == clean:
            return clean, policies
        shown = self._without_secrets(bare, of_mcp)
        return shown, [*([SCRUBBED] if policies or shown != bare else []), STRIPPED]

    def _without_secrets(self, result: Result, of_mcp: bool) -> Result:
        if of_mcp and isinstance(messages := result.get("messages"), list):  # of a prompt
            blocks = self._blocks([message["content"] for message in messages])
            told = [
                {**self._secrets.scrub({**message, "content": None}), "content": block}
                for message, block in zip(messages, blocks, strict=True)
            ]
            return {**self._secrets.scrub({**result, "messages": None}), "messages": told}
        key = "contents" if "contents" in result else "content"  # of a resource, or of a call
        content = result.get(key)
        clean: Result
        if not of_mcp or not isinstance(content, list):
            clean = self._secrets.scrub(result)
        else:
            clean = {**self._secrets.scrub({**result, key: None}), key: self._blocks(content)}
        return clean

    def _blocks(self, content: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A model reads the blocks as one text, so a secret may be split between two."""
        messages = self._secrets.messages()
        blocks: list[dict[str, Any]] = []
        for block in content:
            text = block.get("text")
            if isinstance(text, str):
                clean = messages.feed(text)
                blocks.append({**self._secrets.scrub({**block, "text": None}), "text": clean})
            else:
                blocks.append(self._secrets.scrub(block))
        return blocks

    def _clean(self, error: GroveError, *, strips: bool) -> bool:
        """Clean a failure; whether characters were taken out of it."""
        said = self._secrets.scrub_text(error.message), self._secrets.scrub(error.facts)
        changed = False
        if strips:
            bare = stripped(said[0]), without_unseen(said[1])
            changed = bare != said
            if changed:
                said = self._secrets.scrub_text(bare[0]), self._secrets.scrub(bare[1])
        error.message, error.facts = said
        error.args = (error.message,)
        return changed


class _Scrubbed:
    """A client that hears no secret, not even one that comes in pieces; a person who is asked sees every character."""

    def __init__(self, client: Client, secrets: Scrubs, *, strips: bool) -> None:
        self._client = client
        self._secrets = secrets
        self._strips = strips
        self._messages = secrets.messages()
        self._bare_messages = secrets.messages()

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self._client.progress(progress, total, message if message is None else self._shown(message))

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        clean = self._secrets.scrub_text(message)
        if self._strips:
            clean = self._secrets.scrub_text(stripped(clean))
        return await self._client.elicit(visible(clean), self._secrets.scrub(schema))

    @property
    def hears_progress(self) -> bool:
        hears: bool = getattr(self._client, "hears_progress", True)
        return hears

    @property
    def log_level(self) -> str | None:
        level: str | None = getattr(self._client, "log_level", None)
        return level

    def answers(self, mode: str) -> bool:
        return isinstance(self._client, Counterpart) and self._client.answers(mode)

    async def log(self, level: str, data: Any, logger: str) -> None:
        if isinstance(self._client, Counterpart):
            clean = self._shown(data) if isinstance(data, str) else self._secrets.scrub(data)
            await self._client.log(level, whole(clean), logger)

    async def ask(self, question: dict[str, Any]) -> dict[str, Any] | None:
        if not isinstance(self._client, Counterpart):
            return None
        clean: dict[str, Any] = self._secrets.scrub(question)
        shown = stripped(clean["message"]) if self._strips else clean["message"]
        return await self._client.ask({**clean, "message": visible(self._secrets.scrub_text(shown))})

    def _shown(self, message: str) -> str:
        clean = self._messages.feed(message)
        return whole_text(self._bare_messages.feed(stripped(clean)) if self._strips else clean)
