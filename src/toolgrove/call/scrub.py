"""Keeps secrets out of what comes back from a source: its result, its failure, and what it says meanwhile.

This is the one place that scrubs what a tool answers. A source scrubs only what it cuts, since half a secret would not
be found any more. Large answers are scrubbed in a thread, so that no other call waits for them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import anyio.to_thread

from toolgrove.call.strip import POLICY, without_unseen
from toolgrove.errors import GroveError
from toolgrove.notation.json_value import text_size
from toolgrove.notation.unseen_text import stripped, visible
from toolgrove.types import Call, Client, Next, Result, Tool

WORKSPACE = "workspace"
LARGE = 64 * 1024
"""Characters of text that take about a millisecond to scrub; what has more goes to a thread."""
Content = list[dict[str, Any]] | None


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


class _Answer(NamedTuple):
    """What a source answered: the result, and the blocks of one that speaks MCP."""

    result: Result
    content: Content


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
                call.changed = (POLICY,)
            await self._put(call, {}, strips=strips)
            raise
        finally:
            call.client = client
        return await self._put(call, result, strips=strips)

    async def _put(self, call: Call, result: Result, *, strips: bool) -> Result:
        """The result as it can be shown; the blocks on the call become so too."""
        answer = _Answer(result, call.content)
        call.content = None  # whatever happens meanwhile, nobody reads them as they are
        work = partial(self._cleaned, answer, strips=strips)
        if text_size(answer, enough=LARGE) < LARGE:
            clean, changed = work()
        else:
            clean, changed = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._room)
        call.content = clean.content
        if changed:
            call.changed = (POLICY,)
        return clean.result

    def _cleaned(self, answer: _Answer, *, strips: bool) -> tuple[_Answer, bool]:
        """The answer as it can be shown, and whether characters were taken out of it."""
        clean = self._without_secrets(answer)
        if not strips:
            return clean, False
        bare = _both(clean, without_unseen, without_unseen)
        return (clean, False) if bare == clean else (self._without_secrets(bare), True)

    def _without_secrets(self, answer: _Answer) -> _Answer:
        return _both(answer, self._secrets.scrub, self._blocks)

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


def _both(answer: _Answer, of_result: Callable[[Any], Any], of_content: Callable[[Any], Any]) -> _Answer:
    """The answer with both parts changed; blocks that are the result as well are changed once."""
    result, content = answer
    if content is None:
        return _Answer(of_result(result), None)
    blocks = of_content(content)
    if result.get("content") is content:  # the result of a tool that has nothing but its blocks
        return _Answer({**of_result({**result, "content": None}), "content": blocks}, blocks)
    return _Answer(of_result(result), blocks)


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

    def _shown(self, message: str) -> str:
        clean = self._messages.feed(message)
        return self._bare_messages.feed(stripped(clean)) if self._strips else clean
