"""A link to a server that runs as our child, one message a line."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from toolgrove.pool.mcp.awaited import Awaited
from toolgrove.pool.mcp.callers import Callers
from toolgrove.pool.mcp.child import Child, Command
from toolgrove.pool.mcp.era import Era
from toolgrove.pool.mcp.faults import Broken, Fault, Gone, Nonsense, Unsent
from toolgrove.pool.mcp.inbound_budget import InboundBudget
from toolgrove.pool.mcp.jsonrpc import (
    INVALID_REQUEST,
    Message,
    RpcRequest,
    decode,
    encode,
    likely_id,
    notification,
    outcome,
    params_of,
    refusal,
    reply,
)
from toolgrove.pool.mcp.line_reader import LineReader
from toolgrove.pool.mcp.link import ELICIT, LOGGED, SEVERAL, End, Told, is_request, unheard
from toolgrove.pool.mcp.stderr import ErrorOutput
from toolgrove.pool.misdeeds import Misdeeds
from toolgrove.pool.offspring import Offspring
from toolgrove.pool.secrets import Secrets
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.pool")
_KEPT_IDS = 1_000
_LIKE_JSON = re.compile(rb"""\s*(\{\s*["}]|\[[\[{])""")


class StdioLink:
    """Many requests at a time over one pair of pipes; answers find their way by id."""

    streams = False

    def __init__(
        self,
        server: str,
        command: Command,
        *,
        secrets: Secrets,
        clock: Clock,
        misdeeds: Misdeeds | None = None,
        offspring: Offspring | None = None,
        keep: Callable[[str], object] = lambda line: None,
    ) -> None:
        """`keep` takes each line of the child's error output, scrubbed."""
        self.changed: Callable[[], None] = lambda: None
        self.told: Told = unheard
        self.end = End()
        self._server = server
        self._command = command
        self._errors = ErrorOutput(server, secrets, clock, keep)
        self._inbound = InboundBudget(clock)
        self._misdeeds = misdeeds or Misdeeds()
        self._ended: dict[int, bool] = {}
        self._lines = LineReader()
        self._waiting: dict[int, Awaited] = {}
        self._callers = Callers()
        self._child = Child(wrote=self._wrote, complained=self._errors.feed, gone=self._gone, offspring=offspring)
        self._started = False

    async def open(self, tasks: TaskGroup) -> None:
        """Start the child; what it writes is handled from now on."""
        await self._child.start(self._command)
        self._started = True

    async def request(self, request: RpcRequest) -> Message:
        """Send a request and wait for its answer; a caller who stops waiting tells the server so."""
        if self.end.fault is not None:
            raise self.end.fault.with_traceback(None)
        waiting = self._waiting[request.id] = Awaited()
        self._callers.begin(request)
        try:
            await self._send(request)
            return outcome(await waiting.answer(request))
        except anyio.get_cancelled_exc_class():
            if request.cancellable:
                self._cancel(request)
            raise
        finally:
            del self._waiting[request.id]
            self._callers.end(request)
            self._remember(request.id, answered=waiting.settled)

    def _remember(self, key: int, *, answered: bool) -> None:
        """Know the latest requests again, so that an answer that is only late is not held against the server."""
        self._ended[key] = answered
        if len(self._ended) > _KEPT_IDS:
            del self._ended[next(iter(self._ended))]

    async def _send(self, request: RpcRequest) -> None:
        try:
            self._child.write(request.encoded())
        except Unsent:
            if not self._child.is_leaving:
                raise
            raise Gone(str(await self.end.wait())) from None

    def _cancel(self, request: RpcRequest) -> None:
        try:
            self._child.write(encode(notification("notifications/cancelled", {"requestId": request.id})))
        except Fault:
            log.debug("server %s did not hear that request %d is cancelled", self._server, request.id)

    async def notify(self, message: Message) -> None:
        """Send a message that expects no answer."""
        self._child.write(encode(message))

    def adopt(self, era: Era) -> None:
        """Nothing changes: a line is a line in both eras."""

    async def stream(self) -> None:
        """Nothing to do: what the server says by itself comes through the same pipe."""

    async def close(self) -> None:
        """End the child and all that it started; one that broke the rules is not asked first."""
        broken = self.end.fault is not None
        self.end(Broken("is being closed"))
        self._fail_all(Broken("is being closed"))
        if self._started:
            await self._child.end(politely=not broken)
        self._errors.end()

    def _wrote(self, data: bytes) -> None:
        try:
            for line in self._lines.feed(data):
                if self.end.fault is not None:
                    return
                self._heard(line)
        except Fault as fault:
            self._give_up(fault)

    def _gone(self, how: str) -> None:
        self._give_up(Broken(how))

    def _give_up(self, fault: Fault) -> None:
        self.end(fault)
        self._fail_all(fault)

    def _fail_all(self, fault: Fault) -> None:
        for waiting in list(self._waiting.values()):
            waiting.fail(fault)

    def _heard(self, line: bytes) -> None:
        if not _LIKE_JSON.match(line):
            self._inbound.spend(len(line))  # a stray print; some servers greet the world on their output
            if line.strip():
                self._misdeeds.note(self._server, "stray_line")
            return
        try:
            message = decode(line)
        except Nonsense as fault:
            self._heard_nonsense(line, fault)
            return
        if "method" in message:
            self._inbound.spend(len(line))
            self._heard_unasked(message)
            return
        key = message.get("id")
        waiting = self._waiting.get(key) if type(key) is int else None
        if waiting is None or waiting.settled:
            self._inbound.spend(len(line))  # late, repeated or never asked for
            self._heard_again(message, key)
        else:
            waiting.settle(message)

    def _heard_again(self, message: Message, key: object) -> None:
        """Count an answer that nobody waits for, unless we only gave up too early."""
        if "result" not in message and "error" not in message:
            self._misdeeds.note(self._server, "stray_line")
        elif type(key) is not int or (key not in self._waiting and key not in self._ended):
            self._misdeeds.note(self._server, "wrong_id")
        elif key in self._waiting or self._ended[key]:
            self._misdeeds.note(self._server, "repeated_answer")

    def _heard_nonsense(self, line: bytes, fault: Nonsense) -> None:
        key = likely_id(line)
        waiting = self._waiting.get(key) if key is not None else None
        if waiting is not None:
            waiting.fail(fault)
            return
        self._inbound.spend(len(line))
        self._misdeeds.note(self._server, "unreadable")

    def _heard_unasked(self, message: Message) -> None:
        method = message["method"]
        if not isinstance(method, str):
            return
        if is_request(message):
            self._asked(message)
        elif method == "notifications/progress":
            params = params_of(message)
            token = params.get("progressToken")
            waiting = self._waiting.get(token) if type(token) is int else None
            if waiting is not None:
                waiting.tell(params)
        else:
            if method == LOGGED and (request := self._callers.surely()) is not None:
                self._waiting[request.id].log(params_of(message))
            self.told(method, params_of(message))

    def _asked(self, message: Message) -> None:
        """Answer what the server asks: here, or by the client of the one call that it can be about."""
        if message["method"] == ELICIT and self._callers.asked(message, self.notify):
            return
        if message["method"] == ELICIT and self._callers.several:
            self._child.write(encode(refusal(message, INVALID_REQUEST, SEVERAL)))
        else:
            self._child.write(encode(reply(message)))
