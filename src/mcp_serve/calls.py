"""Calls in flight. A call that asks the user on 2026-07-28 is suspended until the client comes back with the answer."""

import asyncio
import logging
import math
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, Protocol, TypeAlias

from mcp_serve.answer import Answer, Refusal
from mcp_serve.table import Json

ANSWER_WITHIN = 600.0
MAX_SUSPENDED = 1_000
FREE_FORM: Json = {"type": "object", "properties": {"response": {"type": "string", "title": "Response"}}}
GONE = "This call no longer waits for an answer: it was answered, it expired, or the server restarted. Call again."
SHUTTING_DOWN = "The server is shutting down. Call again when it is back."
CUT_OFF = (
    "The server is shutting down, and this call had not ended. It may have had its effect: look before you call again."
)
FAILED = "Internal error occurred"
log = logging.getLogger(__name__)


class User(NamedTuple):
    """Who asks, according to the authentication middleware in front of us."""

    id: str
    scopes: tuple[str, ...] = ()


class Question(NamedTuple):
    """What the tool wants to know, and the one-time id under which the answer resumes it."""

    id: str
    message: str
    schema: Json
    url: str | None = None


Outcome: TypeAlias = "Answer | Refusal | Question"


class Channel(NamedTuple):
    """How one request reaches its client. Without `ask`, a question ends the request and suspends the run.

    `modern` is the era in which the client speaks: from 2026-07-28 on. A client that `can_open` shows links to a
    person; `log_level` is what it asked to hear of a tool's log.
    """

    send_progress: Callable[[float, float | None, str | None], Awaitable[None]] | None = None
    wants_chunks: bool = False
    can_answer: bool = False
    ask: Callable[[Json], Coroutine[Any, Any, Json]] | None = None
    meta: Any = None
    modern: bool = True
    can_open: bool = False
    log_level: str | None = None
    send_log: Callable[[str, Any, str], Awaitable[None]] | None = None

    @property
    def may_suspend(self) -> bool:
        """Whether a question can make the run outlive this request."""
        return self.can_answer and self.ask is None


class Returned(NamedTuple):
    """What a client brings back to a question; one that did not answer is asked again."""

    question_id: str
    answer: Json | None
    answered: bool = True


class Elsewhere(Protocol):
    """Other processes that serve the same tools to the same clients."""

    @property
    def here(self) -> str:
        """The name of this process, without a dot: the ids of its questions begin with it."""

    async def resume(self, holder: str, returned: Returned, channel: Channel, user: User | None) -> "Outcome | None":
        """What the process that holds a suspended run makes of the answer; None if it is gone."""


class ToolRun:
    """One run of a tool, across every request that it spans, and what the tool may ask of its client."""

    def __init__(self, user: User | None, channel: Channel, suspend: Callable[["ToolRun"], str | None]) -> None:
        self.user = user
        self.is_cancelled = False
        self.question: Question | None = None
        self._suspend = suspend
        self.loop = asyncio.get_running_loop()
        self._last_progress = -math.inf
        self._answer: asyncio.Future[Json | None] | None = None
        self._on_cancel: list[Callable[[], object]] = []
        self._ending: asyncio.Future[None] | None = None
        self.attach(channel)

    def attach(self, channel: Channel) -> None:
        """Let the run speak through this request from now on."""
        self.channel = channel
        self._awaited: asyncio.Future[Outcome] | None = None

    @property
    def _turn(self) -> "asyncio.Future[Outcome]":
        """What ends the request that waits for the run; a run in place needs none."""
        if self._awaited is None:
            self._awaited = self.loop.create_future()
        return self._awaited

    async def turn(self) -> Outcome:
        """The result, or the next question; a request that goes away cancels the run."""
        try:
            return await self._turn
        except asyncio.CancelledError:
            self.cancel()
            raise

    def ending(self) -> "asyncio.Future[None]":
        """What is done once the run has ended; made only when somebody waits for that."""
        if self._ending is None:
            self._ending = self.loop.create_future()
        return self._ending

    def ended(self) -> None:
        """The run is over."""
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(None)

    def on_cancel(self, tell: Callable[[], object]) -> None:
        """Call this when nobody waits for the result any more."""
        self._on_cancel.append(tell)
        if self.is_cancelled:
            tell()

    def cancel(self) -> None:
        """Tell the tool that nobody waits, and never let it speak to the client again."""
        self.is_cancelled = True
        for tell in self._on_cancel:
            tell()
        self.channel = Channel()
        self.resume(None)

    def resume(self, answer: Json | None) -> None:
        """Give the tool the answer to its question."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)

    def finish(self, work: "asyncio.Future[Answer]") -> None:
        """End the request that waits with the result of the work."""
        failure = None if work.cancelled() else work.exception()
        if failure is not None:
            log.error("A call failed outside of its tool", exc_info=failure)
        if not self._turn.done():
            has_ended = failure is None and not work.cancelled()
            self._turn.set_result(work.result() if has_ended else Refusal(CUT_OFF if self.is_cancelled else FAILED))

    def cut_off(self) -> None:
        """Cancel the run, and tell who waits that it may go on."""
        self.cancel()
        if not self._turn.done():
            self._turn.set_result(Refusal(CUT_OFF))

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell the client how far the tool is; from any thread."""
        await self._at_home(self._send_progress(progress, total, message))

    async def elicit(self, message: str, schema: Json | None) -> Any | None:
        """Ask the user; None if nobody can answer, or the user declines. From any thread."""
        return accepted(await self.ask({"message": message, "requestedSchema": schema or FREE_FORM}))

    async def ask(self, question: Json) -> Json | None:
        """Put a question to the user, in the words of `elicitation/create`; the answer in those of its result."""
        answer: Json | None = await self._at_home(self._elicit(question))
        return answer

    def answers(self, mode: str) -> bool:
        """Whether the user can be asked in this mode, `form` or `url`."""
        return self.channel.can_answer and (mode == "form" or self.channel.can_open)

    @property
    def hears_progress(self) -> bool:
        """Whether the client may want to hear how far the tool is: it said so, or comes back with another request."""
        return self.channel.wants_chunks or self.channel.may_suspend

    @property
    def log_level(self) -> str | None:
        """The least level of a log that the client asked for."""
        return self.channel.log_level

    async def log(self, level: str, data: Any, logger: str) -> None:
        """Send the client a message of a log, if it wants that level."""
        if self.channel.send_log is not None:
            await self.channel.send_log(level, data, logger)

    async def _at_home(self, work: Any) -> Any:
        """Run on the server's loop, whichever loop and thread the tool is in."""
        if asyncio.get_running_loop() is self.loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    async def _send_progress(self, progress: float, total: float | None, message: str | None) -> None:
        send = self.channel.send_progress
        if send is None or not math.isfinite(progress):
            return
        # The protocol wants each value above the one before; the message is worth more than the exact number.
        if progress <= self._last_progress:
            progress = math.nextafter(self._last_progress, math.inf)
        self._last_progress = progress
        await send(progress, total, message)

    async def _elicit(self, question: Json) -> Json | None:
        if not self.channel.can_answer or self._turn.done():
            return None
        if self.channel.ask is not None:
            return await self._ask(self.channel.ask(question))
        question_id = self._suspend(self)
        if question_id is None:
            return None
        self._answer = self.loop.create_future()
        schema: Json = question.get("requestedSchema", {})
        self.question = Question(question_id, question["message"], schema, question.get("url"))
        self._turn.set_result(self.question)
        return await self._answer

    async def _ask(self, asking: Coroutine[Any, Any, Json]) -> Json | None:
        """The client's answer, or None as soon as nobody waits for the run."""

        def answered(ask: asyncio.Future[Any]) -> None:
            failed = ask.cancelled() or ask.exception() is not None
            self.resume(None if failed else ask.result())

        self._answer = self.loop.create_future()
        task = asyncio.ensure_future(asking)
        task.add_done_callback(answered)
        try:
            return await self._answer
        finally:
            task.cancel()


def accepted(answer: Json | None) -> Any | None:
    """What the user entered, or None unless the user accepted."""
    return (answer.get("content") or {}) if answer is not None and answer.get("action") == "accept" else None


def _is_same(one: User | None, other: User | None) -> bool:
    return (one and one.id) == (other and other.id)


RunTool = Callable[[str, Json | None, ToolRun], Awaitable[Answer]]
"""Runs one tool call; never raises."""


class Calls:
    """Starts, suspends, resumes and drains the runs of tools.

    With `in_place`, a call runs in the task of its request, since a task of its own costs more than many calls do, and
    a run that nobody waits for is cancelled. Only a run that a question may suspend, so that it outlives its request,
    has a task of its own. Without `in_place` every run has one, and a cancelled run goes on until it notices.

    An answer to a question of another process is passed on to that one, if it is `elsewhere`.
    """

    def __init__(
        self,
        run: RunTool,
        *,
        in_place: bool = False,
        logger: logging.Logger | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._run = run
        self._in_place = in_place
        self._elsewhere = elsewhere
        self._logger = logger or logging.getLogger(__name__)
        self._is_draining = False
        self._running: dict[asyncio.Future[Answer], ToolRun] = {}
        self._running_in_place: set[ToolRun] = set()
        self._suspended: dict[str, ToolRun] = {}

    async def begin(self, name: str, arguments: Json | None, channel: Channel, user: User | None = None) -> Outcome:
        """Run a tool until it answers, or asks a question that suspends it."""
        if self._is_draining:
            return Refusal(SHUTTING_DOWN)
        run = ToolRun(user, channel, self._suspend)
        if self._in_place and not channel.may_suspend:
            return await self._run_in_place(name, arguments, run)
        work = asyncio.ensure_future(self._run(name, arguments, run))
        if self._in_place:
            run.on_cancel(work.cancel)
        self._running[work] = run
        work.add_done_callback(run.finish)
        work.add_done_callback(self._running.pop)
        return await run.turn()

    async def resume(self, returned: Returned, channel: Channel, user: User | None = None) -> Outcome:
        """Go on with a suspended run, wherever it is."""
        holder = returned.question_id.rpartition(".")[0]
        if self._elsewhere is None or not holder or holder == self._elsewhere.here:
            return await self.resume_here(returned, channel, user)
        return await self._elsewhere.resume(holder, returned, channel, user) or Refusal(GONE)

    async def resume_here(self, returned: Returned, channel: Channel, user: User | None) -> Outcome:
        """Go on with a run that is suspended in this process, for the user who began it."""
        run = self._suspended.get(returned.question_id)
        if run is None or not _is_same(run.user, user):
            return Refusal(GONE)
        del self._suspended[returned.question_id]
        if run.question is None or run not in self._running.values():
            return Refusal(GONE)
        if not returned.answered and (again := self._suspend(run)):
            return run.question._replace(id=again)
        run.attach(channel)
        run.resume(returned.answer)
        return await run.turn()

    async def drain(self, seconds: float) -> None:
        """Refuse new calls, let the running ones end, cut off what is left."""
        self._is_draining = True
        for question_id in list(self._suspended):
            self._expire(question_id)
        running: list[asyncio.Future[Any]] = [*self._running, *(run.ending() for run in self._running_in_place)]
        if running:
            await asyncio.wait(running, timeout=seconds)
        for run in [*self._running.values(), *self._running_in_place]:
            run.cut_off()

    async def _run_in_place(self, name: str, arguments: Json | None, run: ToolRun) -> "Answer | Refusal":
        request = asyncio.current_task(run.loop)  # to find the loop takes a system call
        if request is not None:
            run.on_cancel(request.cancel)
        self._running_in_place.add(run)
        try:
            return await self._run(name, arguments, run)
        except asyncio.CancelledError:
            if not run.is_cancelled or request is None:
                raise
            request.uncancel()  # the client is still there: it is we who stop
            return Refusal(CUT_OFF)
        finally:
            self._running_in_place.discard(run)
            run.ended()

    def _suspend(self, run: ToolRun) -> str | None:
        if len(self._suspended) >= MAX_SUSPENDED:
            self._logger.warning("%d calls wait for an answer already; a further question is not asked", MAX_SUSPENDED)
            return None
        question_id = secrets.token_urlsafe(16)
        if self._elsewhere is not None:
            question_id = f"{self._elsewhere.here}.{question_id}"
        self._suspended[question_id] = run
        asyncio.get_running_loop().call_later(ANSWER_WITHIN, self._expire, question_id)
        return question_id

    def _expire(self, question_id: str) -> None:
        run = self._suspended.pop(question_id, None)
        if run is not None:
            run.cancel()
