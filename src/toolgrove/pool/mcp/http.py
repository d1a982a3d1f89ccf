"""A link to a server over Streamable HTTP: one request, one answer, as JSON or as a stream of events."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from toolgrove.notation.retry_after import seconds_to_wait
from toolgrove.pool.mcp.connection import Address, Connection, KeptConnections, Reach
from toolgrove.pool.mcp.era import Era
from toolgrove.pool.mcp.faults import (
    Broken,
    Busy,
    Expired,
    Fault,
    Misconfigured,
    Nonsense,
    Rejected,
    ScopeMissing,
    Unauthorized,
    Unsent,
)
from toolgrove.pool.mcp.inbound_budget import InboundBudget
from toolgrove.pool.mcp.jsonrpc import (
    MAX_MESSAGE,
    Message,
    RpcRequest,
    decode,
    encode,
    notification,
    outcome,
    params_of,
    relay,
    reply,
)
from toolgrove.pool.mcp.link import ELICIT, LOGGED, End, Told, is_request, unheard
from toolgrove.pool.mcp.request_head import lines_of
from toolgrove.pool.mcp.response_reader import Response
from toolgrove.pool.mcp.scopes import missing_scopes
from toolgrove.pool.mcp.sse import Events
from toolgrove.pool.misdeeds import Misdeeds
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.pool")
FAREWELL = 1.0
_ANSWERS = 8
_RESERVED = frozenset(
    ("accept", "accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding")
)
_ROUTING = frozenset(("mcp-protocol-version", "mcp-method", "mcp-name"))
"""Headers that repeat from call to call; those that repeat an argument are not remembered."""
_SESSION = re.compile(rb"[\x21-\x7e]{1,1024}")


class Authorization(Protocol):
    """A token that somebody renews."""

    async def token(self) -> str:
        """The token for a request; Misconfigured says that a person has to log in."""

    async def renew(self, refused: str) -> bool:
        """Whether there is another token than the one that the server refused."""

    def lacks(self, scopes: tuple[str, ...]) -> str:
        """Hear that the token lacks scopes; what the operator must do."""


class HttpLink:
    """Has no connection of its own to lose: a session that is over ends it, or a server out of reach."""

    streams = True

    def __init__(
        self,
        server: str,
        url: str,
        headers: Mapping[str, str],
        *,
        reach: Reach,
        clock: Clock,
        misdeeds: Misdeeds | None = None,
        authorization: Authorization | None = None,
    ) -> None:
        self.changed: Callable[[], None] = lambda: None
        self.told: Told = unheard
        self.end = End()
        self._connections = KeptConnections(Address.of(url), reach, clock)
        self._target = self._connections.address.target
        self._fixed = _fixed(self._connections.address, headers)
        self._authorization = authorization
        self._token = ""
        self._has_credentials = any(name.lower() == "authorization" for name in headers)
        self._session: bytes | None = None
        self._era: Era | None = None
        self._clock = clock
        self._inbound = InboundBudget(clock)
        self._server = server
        self._misdeeds = misdeeds or Misdeeds()
        self._answers = anyio.Semaphore(_ANSWERS)

    async def open(self, tasks: TaskGroup) -> None:
        """Keep the tasks in which a server's own requests are answered."""
        self._tasks = tasks

    def adopt(self, era: Era) -> None:
        """Write every later request as this era does."""
        self._era = era

    async def request(self, request: RpcRequest) -> Message:
        """Send a request and wait for its answer; one that was refused for its token is sent once more."""
        if self._authorization is None:
            return await self._sent(request)
        used = await self._ready(self._authorization)
        try:
            return await self._sent(request)
        except Unauthorized as refused:
            await self._renew(self._authorization, used, refused)
        try:
            return await self._sent(request)
        except Unauthorized as refused:
            self.end(refused)
            raise

    async def _renew(self, authorization: Authorization, used: str, refused: Unauthorized) -> None:
        """Have another token than the one that was refused; without one the link is of no more use."""
        try:
            if not await authorization.renew(used):
                raise refused
        except Misconfigured as fault:
            self.end(fault)
            raise

    async def _sent(self, request: RpcRequest) -> Message:
        """Send a request; only one that asks may be sent again over another connection, and only once."""
        connection = await self._take()
        try:
            return await self._exchange(request, connection)
        except Broken:
            if connection.answered or not connection.kept or request.method == "tools/call":
                raise
        # The server hung up while the connection was kept, as it may.
        return await self._exchange(request, await self._take(fresh=True))

    async def _exchange(self, request: RpcRequest, connection: Connection) -> Message:
        try:
            response = await connection.ask(b"POST", self._target, self._headers(request.headers), request.encoded())
            result = await self._answer(request, connection, response)
        except (Rejected, Expired, Busy, Unauthorized, ScopeMissing):
            self._connections.give_back(connection)
            raise
        except anyio.get_cancelled_exc_class():
            connection.drop()
            self._cancel(request)
            raise
        except BaseException:
            connection.drop()
            raise
        self._let_go(connection)
        return result

    def _let_go(self, connection: Connection) -> None:
        """Keep a connection whose answer is here; the end of a stream may be a moment away."""
        if connection.is_done() or self.end.fault is not None:  # at the end nothing is begun beside
            self._connections.give_back(connection)
        else:
            self._tasks.start_soon(self._linger, connection)

    async def _linger(self, connection: Connection) -> None:
        try:
            with anyio.move_on_after(FAREWELL):
                await whole(connection, {})
        except Fault:
            log.debug("a stream did not end well after its answer")
        finally:
            self._connections.give_back(connection)

    async def _take(self, *, fresh: bool = False) -> Connection:
        if self.end.fault is not None:
            raise self.end.fault.with_traceback(None)
        if self._authorization is not None:
            await self._ready(self._authorization)
        try:
            return await (self._connections.dial() if fresh else self._connections.take())
        except Unsent as fault:
            self.end(fault)  # the supervisor looks for the server again
            raise

    async def _ready(self, authorization: Authorization) -> str:
        """Have the token for the next request; where only a person can give one, the link is of no more use."""
        try:
            self._token = await authorization.token()
        except Misconfigured as fault:
            self.end(fault)
            raise
        return self._token

    def _headers(self, mirrored: Mapping[str, str], accept: bytes = b"application/json, text/event-stream") -> bytes:
        lines = [self._fixed, b"accept: %b\r\n" % accept]
        if self._token:
            lines.append(lines_of([(b"authorization", b"Bearer " + self._token.encode("ascii"))]))
        if self._session is not None:
            lines.append(b"mcp-session-id: %b\r\n" % self._session)  # its bytes were looked at when it came
        lines.extend(_routing(*one) if one[0] in _ROUTING else _mirrored(*one) for one in mirrored.items())
        return b"".join(lines)

    async def _answer(self, request: RpcRequest, connection: Connection, response: Response) -> Message:
        head = dict(response.headers)
        kind = head.get(b"content-type", b"").partition(b";")[0].strip().lower()
        status = response.status_code
        if head.get(b"content-encoding", b"identity").lower() != b"identity":
            raise Nonsense("sent a compressed answer, which was not asked for")
        if status >= 300:
            raise await self._refusal(status, head, kind, connection)
        if request.method == "initialize":
            self._take_session(head.get(b"mcp-session-id"))
        if kind == b"application/json":
            message = decode(await whole(connection, head))
            if message.get("id") != request.id:
                self._misdeeds.note(self._server, "wrong_id")
                raise Nonsense("answered another request than ours")
            return outcome(message)
        if kind == b"text/event-stream":
            return await self._from_stream(request, connection)
        raise Nonsense("answered with something that is neither JSON nor a stream of events")

    async def _from_stream(self, request: RpcRequest, connection: Connection) -> Message:
        stream = Events()
        while (part := await connection.read()) is not None:
            for data in stream.feed(part):
                message = decode(data)
                if "method" not in message and message.get("id") == request.id:
                    return outcome(message)
                self._inbound.spend(len(data))
                if "method" in message:
                    await self._heard_meanwhile(message, request)
                else:
                    self._misdeeds.note(self._server, "wrong_id")
            self._inbound.spend(0, stream.chatter())
        raise Broken("ended its stream without an answer")

    async def _heard_meanwhile(self, message: Message, request: RpcRequest) -> None:
        method, front = message["method"], request.front
        is_question = method == ELICIT and is_request(message)
        if is_question and front is not None and front.ask(message, self._send_quietly):
            return
        if method == LOGGED and front is not None:
            await front.log(params_of(message))
        if method != "notifications/progress":
            self._heard(message)
            return
        params = params_of(message)
        if request.progress is not None and params.get("progressToken") == request.id:
            await relay(request.progress, params)

    def _heard(self, message: Message) -> None:
        if is_request(message):
            self._reply(message)
        elif isinstance(message["method"], str):
            self.told(message["method"], params_of(message))

    def _reply(self, message: Message) -> None:
        if self.end.fault is not None:
            return
        try:
            self._answers.acquire_nowait()
        except anyio.WouldBlock:
            return  # it asks faster than it takes answers

        async def send() -> None:
            try:
                await self._send_quietly(reply(message))
            finally:
                self._answers.release()

        self._tasks.start_soon(send)

    async def _refusal(self, status: int, head: Mapping[bytes, bytes], kind: bytes, connection: Connection) -> Fault:
        """What an answer means that is not a success."""
        if 300 <= status < 400:
            return Nonsense(f"answered with a redirect (HTTP {status}), which is not followed")
        body = await whole(connection, head)
        if status == 401 and self._wants_login(head):
            return self._no_entry()
        if (
            status == 403
            and (scopes := missing_scopes(head.get(b"www-authenticate", b"").decode("latin-1"))) is not None
        ):
            return self._too_little(scopes)
        if status == 404 and self._session is not None:
            self.end(Expired("ended our session"))
            return Expired("ended our session")
        if kind == b"application/json":
            try:
                outcome(decode(body))
            except Rejected as rejected:
                return rejected
            except Nonsense:
                log.debug("HTTP %d came with a body that is no JSON-RPC error", status)
        if status in (401, 403):
            return Misconfigured(f"refused our credentials (HTTP {status})")
        if status in (429, 503):
            return Busy(seconds_to_wait(head.get(b"retry-after", b"").decode("latin-1"), now=self._clock.wall()))
        words = f"answered with HTTP {status}"
        return Broken(words) if status >= 500 else Nonsense(words)

    def _wants_login(self, head: Mapping[bytes, bytes]) -> bool:
        challenge = head.get(b"www-authenticate", b"").lower()
        return self._authorization is not None or (not self._has_credentials and challenge.startswith(b"bearer"))

    def _no_entry(self) -> Unauthorized:
        if self._authorization is not None:
            return Unauthorized(f"refused our login (HTTP 401): log in with toolgrove login {self._server}")
        return Unauthorized(
            f"refused our credentials (HTTP 401): if it offers OAuth, add oauth: {{}} to mcpServers.{self._server} and "
            f"log in with toolgrove login {self._server}"
        )

    def _too_little(self, scopes: tuple[str, ...]) -> ScopeMissing:
        wanted = f" ({' '.join(scopes)})" if scopes else ""
        todo = f": {self._authorization.lacks(scopes)}" if self._authorization is not None else ""
        return ScopeMissing(f"needs more rights than our login has{wanted}{todo}", scopes)

    def _take_session(self, given: bytes | None) -> None:
        if given is not None and _SESSION.fullmatch(given) is None:
            raise Nonsense("sent a session id that is not legal")
        self._session = given

    def _cancel(self, request: RpcRequest) -> None:
        """Tell a server of the handshake era; a modern one sees the connection close."""
        told = self._era is not None and not self._era.modern and request.cancellable
        if told and self.end.fault is None:
            self._tasks.start_soon(
                self._send_quietly, notification("notifications/cancelled", {"requestId": request.id})
            )

    async def notify(self, message: Message) -> None:
        """Send a message that expects no answer."""
        headers = self._era.headers(str(message.get("method"))) if self._era is not None else {}
        connection = await self._take()
        try:
            response = await connection.ask(b"POST", self._target, self._headers(headers), encode(message))
            if response.status_code == 404 and self._session is not None:
                self.end(Expired("ended our session"))
            await whole(connection, dict(response.headers))
        finally:
            self._connections.give_back(connection)

    async def _send_quietly(self, message: Message) -> None:
        with anyio.move_on_after(FAREWELL):
            try:
                await self.notify(message)
            except Fault as fault:
                log.debug("a message to a server was lost: it %s", fault)

    async def stream(self) -> None:
        """Hear what a server of the handshake era says by itself, until its stream ends."""
        headers = self._era.headers("") if self._era is not None else {}
        connection = await self._take()
        try:
            response = await connection.ask(b"GET", self._target, self._headers(headers, b"text/event-stream"))
            if response.status_code >= 300:
                head = dict(response.headers)
                raise await self._refusal(response.status_code, head, b"", connection)
            self.changed()  # what it said before we listened is lost
            stream = Events()
            while (part := await connection.read()) is not None:
                for data in stream.feed(part):
                    self._inbound.spend(len(data))
                    message = decode(data)
                    if "method" in message:
                        self._heard(message)
                self._inbound.spend(0, stream.chatter())
        finally:
            connection.drop()

    async def close(self) -> None:
        """Say good-bye where there is a session, and hang up."""
        gone = self.end.fault is not None
        self.end(Broken("is being closed"))
        if self._session is not None and not gone:
            with anyio.move_on_after(FAREWELL):
                await self._delete()
        self._connections.close()

    async def _delete(self) -> None:
        headers = self._headers(self._era.headers("") if self._era is not None else {})
        try:
            connection = await self._connections.take()
            try:
                await connection.ask(b"DELETE", self._target, headers)
            finally:
                connection.drop()
        except Fault as fault:
            log.debug("a session was not ended: the server %s", fault)


def _fixed(address: Address, headers: Mapping[str, str]) -> bytes:
    """The headers of every request: ours first, then what the operator set."""
    lines = lines_of(
        [
            (b"host", address.authority),
            (b"content-type", b"application/json"),
            (b"accept-encoding", b"identity"),
            (b"user-agent", b"toolgrove"),
        ]
    )
    for name, value in headers.items():
        if name.lower() in _RESERVED:
            continue
        try:
            lines += lines_of([(name.encode("ascii"), value.encode("latin-1"))])
        except ValueError:  # of an encoding as well
            raise Misconfigured(f"has a header {name!r} that HTTP cannot carry") from None
    return lines


def _mirrored(name: str, value: str) -> bytes:
    return lines_of([(name.encode(), value.encode())])


_routing = lru_cache(maxsize=1024)(_mirrored)


async def whole(connection: Connection, head: Mapping[bytes, bytes]) -> bytes:
    """The body of an answer, within bounds."""
    announced = head.get(b"content-length", b"0")
    if announced.isdigit() and int(announced[:12]) > MAX_MESSAGE:
        raise Nonsense(f"sent an answer larger than {MAX_MESSAGE // (1024 * 1024)} MiB")
    parts: list[bytes] = []
    size = 0
    while (part := await connection.read()) is not None:
        size += len(part)
        if size > MAX_MESSAGE:
            raise Nonsense(f"sent an answer larger than {MAX_MESSAGE // (1024 * 1024)} MiB")
        parts.append(part)
    return b"".join(parts)
