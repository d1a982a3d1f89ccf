"""Calls in flight. A call that asks the user on 2026-07-28 is suspended until the client comes back with the answer."""

import asyncio
import logging
import math
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from apcore import CancelToken, Identity
from mcp_types import CallToolResult

from apcore_mcp.adapters.errors import error_result
from apcore_mcp.modules import Json

logger = logging.getLogger(__name__)

ANSWER_WITHIN, MAX_SUSPENDED = 600.0, 1_000
FREE_FORM: Json = {"type": "object", "properties": {"response": {"type": "string", "title": "Response"}}}
GONE = "This call no longer waits for an answer: it was answered, it expired, or the server restarted. Call again."
SHUTTING_DOWN = "The server is shutting down. Call again when it is back."


class Question(NamedTuple):
    """What the module wants to know, and the one-time id under which the answer resumes it."""

    id: str
    message: str
    schema: Json


Answer = CallToolResult | Json  # the SDK takes the form of the wire as well, and has less to do then
Outcome = Answer | Question


class Channel(NamedTuple):
    """How one request reaches its client. Without `ask`, a question ends the request and suspends the call."""

    send_progress: Callable[[float, float | None, str | None], Awaitable[None]] | None = None
    wants_chunks: bool = False
    can_answer: bool = False
    ask: Callable[[str, Json], Coroutine[Any, Any, Any]] | None = None
    meta: Any = None


class Call:
    """One run of a module, across every request it spans, and what the module may ask of its client."""

    def __init__(self, identity: Identity | None, suspend: Callable[["Call"], str | None]) -> None:
        self.identity, self.token, self._suspend = identity, CancelToken(), suspend
        self._loop, self._last = asyncio.get_running_loop(), -math.inf
        self._answer: asyncio.Future[Any | None] | None = None

    def attach(self, channel: Channel) -> None:
        """Let the run speak through this request from now on."""
        self.channel = channel
        self._turn: asyncio.Future[Outcome] = self._loop.create_future()

    async def turn(self) -> Outcome:
        """The result, or the next question; a request that goes away cancels the call."""
        try:
            return await self._turn
        except asyncio.CancelledError:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Tell the module through its token, and never let it speak to the client again."""
        self.token.cancel()
        self.channel = Channel()
        self.resume(None)

    def resume(self, answer: Any | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def finish(self, run: "asyncio.Future[Answer]") -> None:
        if not self._turn.done():
            self._turn.set_result(error_result(SHUTTING_DOWN) if run.cancelled() else run.result())

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self._at_home(self._send_progress(progress, total, message))

    async def elicit(self, message: str, schema: Json | None) -> Any | None:
        return await self._at_home(self._elicit(message, schema or FREE_FORM))

    async def _at_home(self, work: Any) -> Any:
        """Run on the server's loop, whichever loop and thread the module is in."""
        if asyncio.get_running_loop() is self._loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _send_progress(self, progress: float, total: float | None, message: str | None) -> None:
        send = self.channel.send_progress
        if send is None or not math.isfinite(progress):
            return
        # The protocol wants each value above the one before; the message is worth more than the exact number.
        self._last = progress if progress > self._last else math.nextafter(self._last, math.inf)
        await send(self._last, total, message)

    async def _elicit(self, message: str, schema: Json) -> Any | None:
        if not self.channel.can_answer or self._turn.done():
            return None
        self._answer = self._loop.create_future()
        if self.channel.ask is None:
            if (question_id := self._suspend(self)) is None:
                return None
            self.question = Question(question_id, message, schema)
            self._turn.set_result(self.question)
            return await self._answer
        asking = asyncio.ensure_future(self.channel.ask(message, schema))
        asking.add_done_callback(lambda ask: self.resume(None if ask.cancelled() or ask.exception() else ask.result()))
        try:
            return await self._answer
        finally:
            asking.cancel()


Run = Callable[[str, Json | None, Call], Awaitable[Answer]]
"""Runs one tool call; never raises."""


class Calls:
    """Starts, suspends, resumes and drains calls."""

    def __init__(self, run: Run) -> None:
        self._run, self._draining = run, False
        self._running: dict[asyncio.Future[Answer], Call] = {}
        self._suspended: dict[str, Call] = {}

    async def begin(self, name: str, arguments: Json | None, channel: Channel, who: Identity | None = None) -> Outcome:
        if self._draining:
            return error_result(SHUTTING_DOWN)
        call = Call(who, self._suspend)
        call.attach(channel)
        run = asyncio.ensure_future(self._run(name, arguments, call))
        self._running[run] = call
        run.add_done_callback(call.finish)
        run.add_done_callback(self._running.pop)
        return await call.turn()

    async def resume(self, question_id: str, answer: Any | None, channel: Channel, answered: bool = True) -> Outcome:
        call = self._suspended.pop(question_id, None)
        if call is None or call not in self._running.values():
            return error_result(GONE)
        if not answered and (again := self._suspend(call)):
            return call.question._replace(id=again)
        call.attach(channel)
        call.resume(answer)
        return await call.turn()

    async def drain(self, seconds: float) -> None:
        """Refuse new calls, let the running ones end, cancel what is left."""
        self._draining = True
        for question_id in list(self._suspended):
            self._expire(question_id)
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        for call in self._running.values():
            call.cancel()

    def _suspend(self, call: Call) -> str | None:
        if len(self._suspended) >= MAX_SUSPENDED:
            logger.warning("%d calls wait for an answer already; a further question is not asked", MAX_SUSPENDED)
            return None
        question_id = secrets.token_urlsafe(16)
        self._suspended[question_id] = call
        asyncio.get_running_loop().call_later(ANSWER_WITHIN, self._expire, question_id)
        return question_id

    def _expire(self, question_id: str) -> None:
        if call := self._suspended.pop(question_id, None):
            call.cancel()
