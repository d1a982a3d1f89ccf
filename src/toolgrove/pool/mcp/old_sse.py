"""A link over HTTP+SSE, the transport before Streamable HTTP: requests are posted, answers come in one long stream."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin

import anyio
from anyio.abc import TaskGroup

from toolgrove.pool.mcp.awaited import Awaited
from toolgrove.pool.mcp.callers import Callers
from toolgrove.pool.mcp.connection import Address, Connection, Reach
from toolgrove.pool.mcp.faults import Broken, Busy, Fault, Misconfigured, Nonsense, Rejected, ScopeMissing, Unauthorized
from toolgrove.pool.mcp.http import Authorization, HttpLink, whole
from toolgrove.pool.mcp.jsonrpc import Message, RpcRequest, decode, likely_id, outcome, params_of
from toolgrove.pool.mcp.link import ELICIT, LOGGED, is_request
from toolgrove.pool.mcp.sse import MESSAGES, Events
from toolgrove.pool.misdeeds import Misdeeds
from toolgrove.types import Clock

OPENING = 30.0
"""Seconds in which a server must begin its stream and say where to post."""
_ENDPOINT = b"endpoint"
_MAX_ADDRESS = 4_096


class OldSseLink(HttpLink):
    """Lives as long as its stream; where to post is told in it, and is never on another host."""

    streams = False

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
        super().__init__(server, url, headers, reach=reach, clock=clock, misdeeds=misdeeds, authorization=authorization)
        self._url = url
        self._awaited: dict[int, Awaited] = {}
        self._callers = Callers()
        self._told = anyio.Event()

    async def open(self, tasks: TaskGroup) -> None:
        """Begin to listen, and wait until it is clear where to post."""
        await super().open(tasks)
        with anyio.move_on_after(OPENING):
            try:
                connection = await self._begun()
            except Unauthorized as refused:
                if self._authorization is None:
                    raise
                await self._renew(self._authorization, self._token, refused)
                connection = await self._begun()
            tasks.start_soon(self._listen, connection)
            await self._told.wait()
        if self.end.fault is not None:
            raise self.end.fault.with_traceback(None)
        if not self._told.is_set():
            raise Broken(f"did not begin its stream of events within {OPENING:g} s")

    async def _begun(self) -> Connection:
        connection = await self._take()
        try:
            await self._begin(connection)
        except BaseException:
            connection.drop()
            raise
        return connection

    async def _begin(self, connection: Connection) -> None:
        response = await connection.ask(b"GET", self._target, self._headers({}, b"text/event-stream"))
        head = dict(response.headers)
        kind = head.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if response.status_code >= 300:
            raise await self._refusal(response.status_code, head, kind, connection)
        if kind != b"text/event-stream":
            raise Nonsense("answered with something that is no stream of events; is it a server of type sse?")

    async def _listen(self, connection: Connection) -> None:
        stream = Events((*MESSAGES, _ENDPOINT))
        try:
            while (part := await connection.read()) is not None:
                for data in stream.feed(part):
                    if stream.name == _ENDPOINT:
                        self._post_to(data)
                    else:
                        self._received(data)
                self._inbound.spend(0, stream.chatter())
            self._give_up(Broken("ended its stream of events"))
        except Fault as fault:
            self._give_up(fault)
        finally:
            connection.drop()

    def _post_to(self, data: bytes) -> None:
        """Take the address that the server names, once; one elsewhere could be anybody's."""
        self._inbound.spend(len(data))
        if self._told.is_set():
            return
        try:
            named = Address.of(urljoin(self._url, data[:_MAX_ADDRESS].decode()))
        except (UnicodeError, ValueError, Misconfigured):
            raise Nonsense("names an address for messages that cannot be read") from None
        known = self._connections.address
        if (named.host, named.port, named.tls) != (known.host, known.port, known.tls):
            raise Nonsense("names an address for messages on another host, which is not followed")
        self._target = named.target
        self._told.set()

    def _received(self, data: bytes) -> None:
        try:
            message = decode(data)
        except Nonsense as fault:
            self._received_nonsense(data, fault)
            return
        if "method" in message:
            self._inbound.spend(len(data))
            self._unasked(message)
            return
        key = message.get("id")
        awaited = self._awaited.get(key) if type(key) is int else None
        if awaited is None or awaited.settled:
            self._inbound.spend(len(data))  # late, repeated or never asked for
        else:
            awaited.settle(message)

    def _received_nonsense(self, data: bytes, fault: Nonsense) -> None:
        key = likely_id(data)
        awaited = self._awaited.get(key) if key is not None else None
        if awaited is not None:
            awaited.fail(fault)
            return
        self._inbound.spend(len(data))
        self._misdeeds.note(self._server, "unreadable")

    def _unasked(self, message: Message) -> None:
        if message["method"] == "notifications/progress":
            params = params_of(message)
            token = params.get("progressToken")
            awaited = self._awaited.get(token) if type(token) is int else None
            if awaited is not None:
                awaited.tell(params)
            return
        is_question = message["method"] == ELICIT and is_request(message)
        if is_question and self._callers.asked(message, self._send_quietly):
            return
        if message["method"] == LOGGED and (request := self._callers.surely()) is not None:
            self._awaited[request.id].log(params_of(message))
        self._heard(message)

    async def _exchange(self, request: RpcRequest, connection: Connection) -> Message:
        """Post a request, and wait for its answer in the stream; who stops waiting tells the server so."""
        awaited = self._awaited[request.id] = Awaited()
        self._callers.begin(request)
        try:
            await self._post(request, connection)
            return outcome(await awaited.answer(request))
        except anyio.get_cancelled_exc_class():
            self._cancel(request)
            raise
        finally:
            del self._awaited[request.id]
            self._callers.end(request)

    async def _post(self, request: RpcRequest, connection: Connection) -> None:
        try:
            response = await connection.ask(b"POST", self._target, self._headers(request.headers), request.encoded())
            head = dict(response.headers)
            if response.status_code >= 300:
                kind = head.get(b"content-type", b"").partition(b";")[0].strip().lower()
                raise await self._refusal(response.status_code, head, kind, connection)
            await whole(connection, head)
        except (Rejected, Busy, Unauthorized, ScopeMissing):
            self._connections.give_back(connection)
            raise
        except BaseException:
            connection.drop()
            raise
        self._connections.give_back(connection)

    async def stream(self) -> None:
        """Nothing to do: what the server says by itself comes in the same stream."""

    def _give_up(self, fault: Fault) -> None:
        self.end(fault)
        self._told.set()
        for awaited in list(self._awaited.values()):
            awaited.fail(fault)

    async def close(self) -> None:
        """Hang up; the stream ends with the tasks that read it."""
        self._give_up(Broken("is being closed"))
        await super().close()
