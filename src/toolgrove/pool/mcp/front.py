"""What a server says while one call runs, passed on to the client that made it: its log, and its questions."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
from anyio.abc import TaskGroup

from toolgrove.errors import UpstreamFailed
from toolgrove.notation.json_value import compact
from toolgrove.pool.mcp.faults import Fault
from toolgrove.pool.mcp.jsonrpc import INVALID_REQUEST, Message, params_of, refusal
from toolgrove.pool.secrets import Secrets
from toolgrove.types import LOG_LEVELS, Call, Counterpart

log = logging.getLogger("toolgrove.pool")
ELICIT = "elicitation/create"
ASKING = 600.0
"""Seconds in which a person must answer."""
QUESTIONS = 10
"""How often one call may ask."""
MAX_QUESTION = 16 * 1024
MAX_LOGGED = 8 * 1024
LOGGED = 1_000
_NOT_PASSED_ON = "The server asks for something that is not passed on from here ({}). Do not retry; use another tool."


Send = Callable[[Message], Awaitable[None]]


class Unanswerable(Exception):
    """A question that is not put to anybody, and why."""


class CallFront:
    """Stands for the client of one call. `scope` bounds the call: while a person thinks, its time does not run."""

    def __init__(self, server: str, call: Call, *, may_ask: bool, secrets: Secrets) -> None:
        self.scope = anyio.CancelScope()
        self.may_ask = may_ask
        self._server = server
        self._call = call
        self._secrets = secrets
        self._questions: deque[tuple[Message, Send]] = deque()
        self._word: anyio.Event | None = None
        self._asked = self._logged = 0

    @property
    def log_level(self) -> str | None:
        """The level that the client asked for; None where it asked for none."""
        level: str | None = getattr(self._call.client, "log_level", None)  # cheaper than to look at all of it
        return level

    @property
    def _client(self) -> Counterpart | None:
        client = self._call.client
        return client if isinstance(client, Counterpart) else None

    @property
    def modes(self) -> tuple[str, ...]:
        """The kinds of question that the client can answer."""
        client = self._client if self.may_ask else None
        return () if client is None else tuple(mode for mode in ("form", "url") if client.answers(mode))

    @contextmanager
    def answering(self, tasks: TaskGroup) -> Iterator[None]:
        """Take questions meanwhile; what is still open at the end is of no more use."""
        self._word = anyio.Event()
        tasks.start_soon(self._answer_all, tasks)
        try:
            yield
        finally:
            self._word = None
            tasks.cancel_scope.cancel()

    async def _answer_all(self, tasks: TaskGroup) -> None:
        while self._word is not None:
            await self._word.wait()
            self._word = anyio.Event()
            while self._questions:
                tasks.start_soon(self._answer, *self._questions.popleft())

    async def log(self, params: Message) -> None:
        """Pass on a message of the server's log, cut to what a reader can bear."""
        level, logger, data = params.get("level"), params.get("logger"), params.get("data")
        client = self._client
        if client is None or level not in LOG_LEVELS or self._logged >= LOGGED:
            return
        self._logged += 1
        text = data if isinstance(data, str) else compact(data)
        if len(text) > MAX_LOGGED:
            data = f"{self._secrets.beginning(text, MAX_LOGGED)}…"
        name = f"{self._server}/{logger[:100]}" if isinstance(logger, str) and logger else self._server
        await client.log(level, data, name)

    def ask(self, request: Message, send: Send) -> bool:
        """Answer a question of the handshake era as soon as a person did; False where none may be asked.

        It comes from outside of any task, where a server's output is read.
        """
        if self._word is None:
            return False
        self._questions.append((request, send))
        self._word.set()
        return True

    async def _answer(self, request: Message, send: Send) -> None:
        try:
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": await self._put(params_of(request))}
        except Unanswerable as reason:
            answer = refusal(request, INVALID_REQUEST, f"Not asked: {reason}.")
        try:
            await send(answer)
        except Fault as fault:
            log.debug("the answer to a question of server %s was lost: it %s", self._server, fault)

    async def fulfilled(self, answer: Message) -> Message:
        """What the next request of 2026-07-28 carries: the answers to what the last result asked for."""
        asked = answer.get("inputRequests") or {}
        if not isinstance(asked, Mapping):
            raise _refused("in a form that is not the protocol's")
        responses: Message = {}
        for key, request in asked.items():
            method = request.get("method") if isinstance(request, Mapping) else None
            if method != ELICIT:
                raise _refused(_KINDS.get(str(method), "a kind that is not known"))
            try:
                responses[key] = await self._put(params_of(dict(request)))
            except Unanswerable as reason:
                raise _refused(str(reason)) from None
        self._count()
        state = answer.get("requestState")
        return {"inputResponses": responses, **({"requestState": state} if isinstance(state, str) else {})}

    def _count(self) -> None:
        self._asked += 1
        if self._asked > QUESTIONS * 2:
            raise _refused("again and again")

    async def _put(self, params: Message) -> Message:
        """Put a question to the person; their answer, be it that they decline."""
        question = self._question(params)
        client = self._client
        if client is None:
            raise Unanswerable("the client of this call cannot be asked")
        self._asked += 1
        if self._asked > QUESTIONS:
            raise Unanswerable(f"one call can ask {QUESTIONS} times")
        log.info("server %s asks the client of %s (%s)", self._server, self._call.caller.agent, self._call.id)
        with self._paused(), anyio.move_on_after(ASKING):
            answer = await client.ask(question)
            if answer is not None:
                return answer
        raise Unanswerable("nobody answered")

    def _question(self, params: Message) -> Message:
        """The question as it is shown: it always says who asks, and where a link leads."""
        mode, message = params.get("mode", "form"), params.get("message")
        if not isinstance(message, str) or len(compact(params)) > MAX_QUESTION:
            raise Unanswerable("the question is malformed or too long")
        if mode not in self.modes:
            raise Unanswerable(f"the client of this call cannot be asked in the mode {str(mode)[:20]!r}")
        if mode == "url":
            url = params.get("url")
            host = _host(url)
            shown = f"Server {self._server!r} asks you to open a page at {host}: {message}"
            return {"mode": "url", "message": shown, "url": url}
        schema = params.get("requestedSchema")
        if not isinstance(schema, dict) or not isinstance(schema.get("properties", {}), dict):
            raise Unanswerable("the question is malformed or too long")
        schema = {"type": "object", "properties": {}, **schema}
        return {"message": f"Server {self._server!r} asks: {message}", "requestedSchema": schema}

    @contextmanager
    def _paused(self) -> Iterator[None]:
        left = self.scope.deadline - anyio.current_time()
        self.scope.deadline = math.inf
        try:
            yield
        finally:
            self.scope.deadline = anyio.current_time() + left


_KINDS = {"sampling/createMessage": "sampling", "roots/list": "roots"}


def _refused(what: str) -> UpstreamFailed:
    return UpstreamFailed(_NOT_PASSED_ON.format(what), reason="input_required")


def _host(url: Any) -> str:
    """Where a link leads, for a person to read; only one that says so plainly."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        host = (parts.hostname or "").encode("idna").decode("ascii")
    except (ValueError, UnicodeError):
        host = ""
    if not host or parts.scheme != "https" or "@" in parts.netloc:
        raise Unanswerable("only a page at an https address can be opened")
    return host if parts.port in (None, 443) else f"{host}:{parts.port}"
