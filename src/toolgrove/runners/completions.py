"""One endpoint over HTTP: bounded in time, size and patience, and silent about its key."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

import anyio
import httpx2

from toolgrove.errors import RunFailed
from toolgrove.notation import strict_json
from toolgrove.notation.retry_after import http_date, seconds_to_wait
from toolgrove.runners.chat import ModelAnswer, read_answer

log = logging.getLogger("toolgrove.runners")
RETRIES = 2
PATIENCE = 30.0
_BUSY = frozenset((429, 503))
_WORD = re.compile(r"[a-z_]{1,64}")
_HEADER = re.compile(r"[!-~]*")
_HINTS = {
    401: "The operator should check runner.apiKey",
    403: "The operator should check runner.apiKey",
    404: "The operator should check runner.url and runner.model",
}


class Completions:
    """Asks the endpoint; only "too busy" is asked again, and only when it says that this will not take long."""

    def __init__(self, http: httpx2.AsyncClient, url: str, api_key: str, *, timeout: float, max_bytes: int) -> None:
        self._http = http
        self._url = url
        self._headers = _headers(api_key)
        self._timeout = timeout
        self._max_bytes = max_bytes

    async def ask(self, request: dict[str, Any]) -> ModelAnswer:
        """The model's answer to the messages so far."""
        attempt = 0
        while True:
            status, headers, body = await self._post(request)
            if status == 200:
                return _read(body)
            wait = _retry_after(headers, attempt)
            if status not in _BUSY or attempt == RETRIES or wait > PATIENCE:
                raise _refusal(status, headers, body)
            await anyio.sleep(wait)
            attempt += 1

    async def _post(self, request: dict[str, Any]) -> tuple[int, httpx2.Headers, bytes]:
        try:
            with anyio.fail_after(self._timeout):
                return await self._exchange(request)
        except (TimeoutError, httpx2.TimeoutException):
            raise RunFailed(
                f"The model did not answer within {self._timeout:g} s. Try again later, or with a smaller task.",
                reason="timeout",
                retryable=True,
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            log.warning("the model endpoint failed: %s", type(error).__name__)
            raise RunFailed(
                "The model endpoint cannot be reached, or broke off. Try again later.",
                reason="model_unavailable",
                retryable=True,
            ) from None

    async def _exchange(self, request: dict[str, Any]) -> tuple[int, httpx2.Headers, bytes]:
        body = bytearray()
        content = json.dumps(request)  # ASCII: a lone surrogate in a tool's result must not end the run
        async with self._http.stream("POST", self._url, content=content, headers=self._headers) as response:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > self._max_bytes:
                    raise RunFailed(
                        f"The model's answer is larger than {self._max_bytes} bytes and was not read. "
                        "Give a smaller task; the operator can raise runner.maxBytes.",
                        reason="too_large",
                    )
            return response.status_code, response.headers, bytes(body)


def _headers(api_key: str) -> dict[str, str]:
    if _HEADER.fullmatch(api_key) is None:
        raise RunFailed(
            "The key for the model endpoint has characters that no header can carry. "
            "The operator should check runner.apiKey.",
            reason="model_refused",
        )
    accepts = {"Content-Type": "application/json", "Accept": "application/json"}
    return {**accepts, "Authorization": f"Bearer {api_key}"} if api_key else accepts


def _read(body: bytes) -> ModelAnswer:
    try:
        return read_answer(body)
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


def _refusal(status: int, headers: Mapping[str, str], body: bytes) -> RunFailed:
    word = _word(body)
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
