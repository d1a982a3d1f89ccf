"""An OpenAPI document at a URL: fetched under the rules of every HTTP tool, and again when its time has come."""

from __future__ import annotations

import logging

import anyio

from toolgrove.errors import GroveError
from toolgrove.pool.http.exchange import SourceConnections, exchange
from toolgrove.pool.http.openapi.document import MAX_BYTES
from toolgrove.pool.http.request import HttpRequest
from toolgrove.pool.http.url import BadUrl, split_origin
from toolgrove.pool.offer import Unavailable
from toolgrove.types import Clock

log = logging.getLogger("toolgrove.pool")
_FIRST_WAIT = 5.0
_LONGEST_WAIT = 300.0
_ACCEPT = "application/json, application/yaml;q=0.9, text/yaml;q=0.9, */*;q=0.5"


class FetchedDocument:
    """Keeps the last good document: an API that is up is not lost because its description cannot be had."""

    def __init__(
        self, entry: str, url: str, *, connections: SourceConnections, timeout: float, refresh: float, clock: Clock
    ) -> None:
        self.url = url
        self._entry = entry
        self._connections = connections
        self._timeout = timeout
        self._refresh = refresh
        self._clock = clock
        self._wait = _FIRST_WAIT
        self._due: float | None = 0.0
        self._data: bytes | None = None
        self._problem = ""
        self._fetching = anyio.Lock()

    async def get(self) -> bytes:
        """The document, fetched if nobody did so yet; Unavailable says why it cannot be had."""
        if self._data is None:
            await self.renewed()
        if self._data is None:
            raise Unavailable(self._problem)
        return self._data

    async def renewed(self) -> bool:
        """Fetch it if it is time to; whether there is something new to read."""
        async with self._fetching:
            if self._due is None or self._clock.monotonic() < self._due:
                return False
            before = self._data
            try:
                self._data = await self._fetch()
            except Unavailable as problem:
                self._put_off(str(problem))
                return False
            self._wait = _FIRST_WAIT
            self._due = self._clock.monotonic() + self._refresh if self._refresh else None
            return self._data != before

    def _put_off(self, problem: str) -> None:
        self._problem = problem
        self._due = self._clock.monotonic() + self._wait
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
        if self._data is not None:
            log.warning("%s: the document is used as it was, since it cannot be fetched: %s", self._entry, problem)

    async def _fetch(self) -> bytes:
        try:
            origin, target = split_origin(self.url)
            headers = {"accept": _ACCEPT, "accept-encoding": "gzip, deflate", "user-agent": "toolgrove"}
            target = target if target.startswith("/") else f"/{target}"
            request = HttpRequest(method="GET", origin=origin, target=target, headers=headers, content=b"")
            with anyio.fail_after(self._timeout):
                what = f"{self._entry}.openapi"
                answer = await exchange(self._connections, request, tool=what, max_bytes=MAX_BYTES, mutates=False)
        except BadUrl as problem:
            raise Unavailable(f"{self._entry}.openapi: {problem}") from None
        except TimeoutError:
            raise Unavailable(f"the OpenAPI document did not arrive within {self._timeout:g} s") from None
        except GroveError as error:
            raise Unavailable(f"the OpenAPI document cannot be fetched: {error.message}") from None
        if answer.status != 200:
            raise Unavailable(
                f"the OpenAPI document cannot be fetched: the server answers {answer.status}. It is fetched without "
                "headers; if it needs a login, download it and name the file"
            )
        return answer.body
