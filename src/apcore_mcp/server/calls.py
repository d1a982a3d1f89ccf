"""Calls in flight. A call that asks the user on 2026-07-28 is suspended until the client comes back with the answer."""

import asyncio
import logging
import math
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from apcore import CancelToken, Identity
from mcp_types import CallToolResult

from apcore_mcp.adapters.errors import error_result
from apcore_mcp.server.router import Caller

logger = logging.getLogger(__name__)

ANSWER_WITHIN = 600.0
MAX_SUSPENDED = 1_000
FREE_FORM: dict[str, Any] = {"type": "object", "properties": {"response": {"type": "string", "title": "Response"}}}
GONE = (
    "This call is no longer waiting for an answer: it was answered already, expired, or belongs to another server. "
    "Call the tool again."
)

SendProgress = Callable[[float, float | None, str | None], Awaitable[None]]
Ask = Callable[[str, dict[str, Any]], Awaitable[Any | None]]


class Router(Protocol):
    """Runs one tool call for a caller; never raises."""

    async def handle_call(
        self, tool_name: str, arguments: dict[str, Any] | None, caller: Caller | None = None
    ) -> CallToolResult: ...


@dataclass(frozen=True, kw_only=True)
class Question:
    """What the module wants to know, and the one-time id under which the answer resumes it."""

    id: str
    message: str
    schema: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Channel:
    """How one request reaches its client. Without `ask`, a question ends the request and suspends the call."""

    send_progress: SendProgress | None = None
    wants_chunks: bool = False
    ask: Ask | None = None
    can_answer: bool = False


class Call:
    """One run of a module: the `Caller` that the router hands to it, across every request the run spans."""

    def __init__(self, channel: Channel, identity: Identity | None, suspend: Callable[["Call"], str | None]) -> None:
        self.identity = identity
        self.token = CancelToken()
        self._loop = asyncio.get_running_loop()
        self._suspend = suspend
        self._last = -math.inf
        self._answer: asyncio.Future[Any | None] | None = None
        self.attach(channel)

    @property
    def wants_chunks(self) -> bool:
        return self._channel.wants_chunks

    def attach(self, channel: Channel) -> None:
        """Let the run speak through this request from now on."""
        self._channel = channel
        self._turn: asyncio.Future[CallToolResult | Question] = self._loop.create_future()

    def start(self, run: Awaitable[CallToolResult]) -> "asyncio.Future[CallToolResult]":
        task = asyncio.ensure_future(run)
        task.add_done_callback(self._finish)
        return task

    async def turn(self) -> CallToolResult | Question:
        """The result, or the next question; a request that goes away cancels the call."""
        try:
            return await self._turn
        except asyncio.CancelledError:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Tell the module through its token, and never let it speak to the client again."""
        self.token.cancel()
        self._channel = Channel()
        self.resume(None)

    def resume(self, answer: Any | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self._at_home(self._send_progress, progress, total, message)

    async def elicit(self, message: str, schema: dict[str, Any] | None) -> Any | None:
        return await self._at_home(self._elicit, message, schema or FREE_FORM)

    async def _at_home(self, function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """Run on the server's loop, whichever loop and thread the module is in."""
        if asyncio.get_running_loop() is self._loop:
            return await function(*args)

        async def run() -> Any:
            return await function(*args)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), self._loop))

    async def _send_progress(self, progress: float, total: float | None, message: str | None) -> None:
        send = self._channel.send_progress
        if send is None or not math.isfinite(progress):
            return
        # The protocol wants each value above the one before; the message is worth more than the exact number.
        self._last = progress if progress > self._last else math.nextafter(self._last, math.inf)
        try:
            await send(self._last, total, message)
        except Exception:  # a client that went away; the call's own end says so
            logger.debug("progress not delivered", exc_info=True)

    async def _elicit(self, message: str, schema: dict[str, Any]) -> Any | None:
        if not self._channel.can_answer or self.token.is_cancelled:
            return None
        if self._channel.ask is not None:
            try:
                return await self._channel.ask(message, schema)
            except Exception:
                logger.warning("The client could not be asked", exc_info=True)
                return None
        question_id = self._suspend(self)
        if question_id is None or self._turn.done():
            return None
        self._answer = self._loop.create_future()
        self._turn.set_result(Question(id=question_id, message=message, schema=schema))
        return await self._answer

    def _finish(self, task: "asyncio.Future[CallToolResult]") -> None:
        if not self._turn.done():
            self._turn.set_result(error_result("Call cancelled") if task.cancelled() else task.result())


class Calls:
    """Starts, suspends, resumes and drains calls."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._running: set[asyncio.Future[CallToolResult]] = set()
        self._live: set[Call] = set()
        self._suspended: dict[str, tuple[Call, asyncio.TimerHandle]] = {}
        self._draining = False

    async def begin(
        self, name: str, arguments: dict[str, Any] | None, channel: Channel, identity: Identity | None = None
    ) -> CallToolResult | Question:
        if self._draining:
            return error_result("The server is shutting down. Call again when it is back.")
        call = Call(channel, identity, self._suspend)
        task = call.start(self._router.handle_call(name, arguments, call))
        self._running.add(task)
        self._live.add(call)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: self._live.discard(call))
        return await call.turn()

    async def resume(self, question_id: str, answer: Any | None, channel: Channel) -> CallToolResult | Question:
        call, expiry = self._suspended.pop(question_id, (None, None))
        if call is None or expiry is None:
            return error_result(GONE)
        expiry.cancel()
        call.attach(channel)
        call.resume(answer)
        return await call.turn()

    async def drain(self, seconds: float) -> None:
        """Refuse new calls, let the running ones end, then cancel what is left."""
        self._draining = True
        for call, _ in list(self._suspended.values()):
            call.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        for call in list(self._live):
            call.cancel()

    def _suspend(self, call: Call) -> str | None:
        if len(self._suspended) >= MAX_SUSPENDED:
            logger.warning("%d calls wait for an answer already; a further question is not asked", MAX_SUSPENDED)
            return None
        question_id = secrets.token_urlsafe(16)
        expiry = asyncio.get_running_loop().call_later(ANSWER_WITHIN, self._expire, question_id)
        self._suspended[question_id] = (call, expiry)
        return question_id

    def _expire(self, question_id: str) -> None:
        call, _ = self._suspended.pop(question_id)
        call.cancel()
