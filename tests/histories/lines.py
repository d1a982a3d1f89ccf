"""A client's lines to the replicas: MCP in one of its two eras, and what became of each call.

A call ends in one of four ways. ``success`` and ``refused`` are the gateway's own words. ``unsent`` means that nobody
took the connection. All else, above all an answer that did not come, is ``unknown``: the call may have its effect now,
later or never.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2

from e2e.wire import MODERN, Handshake, call_body, messages, modern_headers
from histories.history import Told
from web.gateway import Agent

ANSWER_WITHIN = 8.0
"""Seconds that a client waits; then it does not know."""
_SESSION_LOST = 404


class Served(Protocol):
    """A replica, as a client knows it."""

    name: str
    port: int


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back, and when."""

    told: Told
    began: float
    ended: float
    result: Mapping[str, Any]
    """Of a success."""
    error: Mapping[str, Any]
    """Of a refusal: the gateway's own words; else what went wrong."""


class Line:
    """One client's connection to one replica."""

    def __init__(self, replica: Served, agent: str, era: str, token: str) -> None:
        self.replica = replica
        self._agent, self._era = agent, era
        self._address = Agent(port=replica.port, agent=agent)
        self._http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"}, timeout=ANSWER_WITHIN, verify=False
        )
        self._session: Handshake | None = None

    async def close(self) -> None:
        await self._http.aclose()

    async def call(self, tool: str, arguments: Mapping[str, Any], version: str | None = None) -> Answer:
        """Call a tool; `version` is sent as the one that the answer must not be older than."""
        began = time.monotonic()
        extra = {} if version is None else {"_meta": {"toolgrove/version": version}}
        told: Told = "unknown"
        result: Mapping[str, Any] = {}
        error: Mapping[str, Any] = {}
        try:
            message = await self._sent(tool, dict(arguments), extra)
        except httpx2.ConnectError:
            told, error = "unsent", {"reason": "nobody listens"}
        except (httpx2.TransportError, ValueError, KeyError, IndexError) as problem:
            error = {"reason": type(problem).__name__}  # cut off, or no gateway's answer
        else:
            told, result, error = _read(message)
        return Answer(told=told, began=began, ended=time.monotonic(), result=result, error=error)

    async def _sent(self, tool: str, arguments: dict[str, Any], extra: dict[str, Any]) -> Mapping[str, Any]:
        if self._era == MODERN:
            body = call_body(tool, arguments, 1, **extra)
            response = await self._http.post(self._address.mcp, json=body, headers=modern_headers("tools/call", tool))
            return _last(response)
        for _ in range(3):  # the replica may go between the beginning of a session and its first call
            if self._session is None:
                self._session = await Handshake(self._http, self._address).__aenter__()
            answer = await self._session.request("tools/call", {"name": tool, "arguments": arguments, **extra})
            if answer.status_code != _SESSION_LOST:
                return _last(answer)
            self._session = None
        raise ValueError("sessions that were just begun are not known")


def _last(response: httpx2.Response) -> Mapping[str, Any]:
    message: Mapping[str, Any] = messages(response)[-1]
    return message


def _read(message: Mapping[str, Any]) -> tuple[Told, Mapping[str, Any], Mapping[str, Any]]:
    if "result" not in message:
        return "unknown", {}, {"reason": str(message)[:200]}
    answer = message["result"]
    error = answer.get("_meta", {}).get("toolgrove/error")
    if error is None:
        return "success", answer["structuredContent"], {}
    # An internal error that names no moment to try again does not say that nothing happened.
    is_sure = error["code"] != "internal" or "retryAfter" in error
    return ("refused" if is_sure else "unknown"), {}, error


class Lines:
    """One client's lines to every replica, opened when they are first used."""

    def __init__(self, agent: str, era: str, token: str) -> None:
        self._form = (agent, era, token)
        self._open: dict[str, Line] = {}
        self._stack = AsyncExitStack()

    def to(self, replica: Served) -> Line:
        line = self._open.get(replica.name)
        if line is None:
            line = self._open[replica.name] = Line(replica, *self._form)
            self._stack.push_async_callback(line.close)
        return line

    async def close(self) -> None:
        await self._stack.aclose()
