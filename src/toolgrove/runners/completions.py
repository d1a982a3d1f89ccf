"""One endpoint over HTTP: bounded in time, size and patience, and silent about its key."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import httpx2

from toolgrove.errors import RunFailed
from toolgrove.notation import strict_json
from toolgrove.notation.retry_after import http_date, seconds_to_wait
from toolgrove.runners.chat import ModelAnswer, read_answer
from toolgrove.runners.pieces import Pieces

log = logging.getLogger("toolgrove.runners")
RETRIES = 2
PATIENCE = 30.0
_BUSY = frozenset((429, 503, 529))
_AGAIN = _BUSY | {500, 502, 504}
_DATA = b"data:"
_DONE = b"[DONE]"
_WORD = re.compile(r"[a-z_]{1,64}")
_HEADER = re.compile(r"[!-~]*")
_HINTS = {
    401: "The operator should check runner.apiKey",
    403: "The operator should check runner.apiKey",
    404: "The operator should check runner.url and runner.model",
}


class Completions:
    """Asks the endpoint; only one that fails on its side is asked again, unless it says that this will take long."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        url: str,
        api_key: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float,
        max_bytes: int,
    ) -> None:
        self._http = http
        self._url = url
        self._headers = _headers(api_key, headers or {})
        self._timeout = timeout
        self._max_bytes = max_bytes

    async def ask(self, request: dict[str, Any], said: Callable[[str], None] = lambda text: None) -> ModelAnswer:
        """The model's answer to the messages so far; `said` hears its text, in pieces where it comes so."""
        attempt = 0
        while True:
            try:
                return await self._post(request, said)
            except _Refused as refused:
                wait = _retry_after(refused.headers, attempt)
                if refused.status not in _AGAIN or attempt == RETRIES or wait > PATIENCE:
                    raise _refusal(refused) from None
            await anyio.sleep(wait)
            attempt += 1

    async def _post(self, request: dict[str, Any], said: Callable[[str], None]) -> ModelAnswer:
        try:
            with anyio.fail_after(self._timeout):
                return await self._exchange(request, said)
        except (TimeoutError, httpx2.TimeoutException):
            raise RunFailed(
                f"The model did not answer within {self._timeout:g} s. Try again later, or with a smaller task.",
                reason="timeout",
                retryable=True,
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            log.warning("the model endpoint failed: %s", type(error).__name__)
            raise RunFailed(
                "The model endpoint cannot be reached, or the connection broke. Try again later.",
                reason="model_unavailable",
                retryable=True,
            ) from None

    async def _exchange(self, request: dict[str, Any], said: Callable[[str], None]) -> ModelAnswer:
        content = json.dumps(request)  # ASCII: a lone surrogate in a tool's result must not end the run
        async with self._http.stream("POST", self._url, content=content, headers=self._headers) as response:
            chunks = self._bounded(response.aiter_bytes())
            if response.status_code != 200:
                raise _Refused(response.status_code, response.headers, b"".join([chunk async for chunk in chunks]))
            with _understood():
                if response.headers.get("content-type", "").startswith("text/event-stream"):
                    return await _put_together(chunks, said)
                answer = read_answer(strict_json.decode_utf8(b"".join([chunk async for chunk in chunks])))
            said(answer.message.content or "")
            return answer

    async def _bounded(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in chunks:
            size += len(chunk)
            if size > self._max_bytes:
                raise RunFailed(
                    f"The model's answer is larger than {self._max_bytes} bytes and was not read. "
                    "Give a smaller task; the operator can raise runner.maxBytes.",
                    reason="too_large",
                )
            yield chunk


class _Refused(Exception):
    """The endpoint answered with another status than 200."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status, self.headers, self.body = status, headers, body


async def _put_together(chunks: AsyncIterator[bytes], said: Callable[[str], None]) -> ModelAnswer:
    """The answer in a stream of events; what breaks off before its end is none."""
    pieces = Pieces()
    async for data in _events(chunks):
        if data == _DONE:
            return pieces.answer()
        piece = strict_json.decode_utf8(data)
        if isinstance(piece, dict) and piece.get("error"):
            raise _Refused(500, {}, data)
        said(pieces.add(piece))
    answer = pieces.answer()
    if answer.finish_reason is None:
        raise httpx2.ReadError("the stream ended before the answer")
    return answer


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each event; completions are one line each, and all other lines are comments or names."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for each in lines:
            if each.startswith(_DATA):
                yield each.removeprefix(_DATA).strip()
    if rest.startswith(_DATA):
        yield rest.removeprefix(_DATA).strip()


def _headers(api_key: str, more: Mapping[str, str]) -> dict[str, str]:
    if not all(_HEADER.fullmatch(value) for value in (api_key, *more.values())):
        raise RunFailed(
            "The key for the model endpoint, or another header, has characters that a header cannot contain. "
            "The operator should check runner.apiKey and runner.headers.",
            reason="model_refused",
        )
    key = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **key, **more}


@contextmanager
def _understood() -> Iterator[None]:
    """Say what is wrong where the endpoint speaks another language."""
    try:
        yield
    except ValueError:
        raise RunFailed(
            "The model endpoint sent something that is not a chat completion. The operator should check that "
            "runner.url leads to an OpenAI-compatible API.",
            reason="model_answer",
        ) from None


def _retry_after(headers: Mapping[str, str], attempt: int) -> float:
    """The seconds that the endpoint asks for, by its own clock; unasked, a little more each time."""
    asked = seconds_to_wait(headers.get("retry-after", ""), now=http_date(headers.get("date", "")))
    return float(2**attempt) if asked is None else asked


def _refusal(refused: _Refused) -> RunFailed:
    status, headers = refused.status, refused.headers
    word = _word(refused.body)
    detail = f" ({word})" if word else ""
    busy = status in _BUSY
    hint = (
        "Try again later"
        if busy or status >= 500
        else _HINTS.get(status, "The operator should check the runner section")
    )
    return RunFailed(
        f"The model endpoint answered {status}{detail}. {hint}.",
        reason="model_busy" if busy else "model_unavailable" if status >= 500 else "model_refused",
        retryable=busy or status >= 500,
        status=status,
        retryAfter=_retry_after(headers, 0) if "retry-after" in headers else None,
    )


def _word(body: bytes) -> str | None:
    """The endpoint's own word for the problem. Its prose stays out: it may repeat the key."""
    try:
        error = strict_json.decode_utf8(body)["error"]
        word = error["code"] or error["type"]
    except (ValueError, TypeError, KeyError):
        return None
    return word if isinstance(word, str) and _WORD.fullmatch(word) else None
