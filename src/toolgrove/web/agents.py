"""What an agent finds at its address: MCP, its tools for OpenAI, its receipt, and runs."""

from __future__ import annotations

from typing import Any

from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from apcore_mcp.server.http import BODY
from toolgrove.agent import Agent
from toolgrove.errors import AgentNotFound, GroveError, InvalidArgument
from toolgrove.faces import session_of
from toolgrove.web.answer import answer, failure, problem, stream
from toolgrove.web.body import json_body
from toolgrove.web.doors import Doors
from toolgrove.web.project import Project
from toolgrove.web.runs import Runs
from toolgrove.web.streams import Followed, Streams

MAX_CALLS = 100
_STATELESS = frozenset(version.encode() for version in MODERN_PROTOCOL_VERSIONS)


class Agents:
    """`/agents/{agent}/…`: only for that agent and the operator; to anyone else it looks like no agent at all."""

    def __init__(self, project: Project, doors: Doors, runs: Runs, streams: Streams) -> None:
        self._project, self._doors, self._running, self._streams = project, doors, runs, streams

    def routes(self) -> list[BaseRoute]:
        """Every address below an agent."""
        return [
            Route("/agents/{agent}/mcp", _Mcp(self._doors, self._streams), methods=["GET", "POST", "DELETE"]),
            Route("/agents/{agent}/openai-tools", self._openai_tools),
            Route("/agents/{agent}/receipt", self._receipt),
            Route("/agents/{agent}/runs", self._runs, methods=["POST"]),
        ]

    async def _openai_tools(self, request: Request) -> Response:
        try:
            agent = await self._agent(request)
        except GroveError as error:
            return failure(error)
        strict, annotated = (request.query_params.get(key) in ("1", "true") for key in ("strict", "embedAnnotations"))
        return answer(agent.openai_tools(strict=strict, embed_annotations=annotated))

    async def _receipt(self, request: Request) -> Response:
        try:
            return answer((await self._agent(request)).receipt.to_json())
        except GroveError as error:
            return failure(error)

    async def _runs(self, request: Request) -> Response:
        try:
            agent = await self._agent(request)
            calls = _calls(await json_body(request))
        except GroveError as error:
            return failure(error)
        if self._running.draining:
            return problem(503, "internal", "The gateway is shutting down. Send the run again when it is back.")
        return Followed(stream(self._running.follow(agent.run(calls))), self._streams)

    async def _agent(self, request: Request) -> Agent:
        name = request.path_params["agent"]
        if name not in self._doors or not request.user.may_be(name):
            raise AgentNotFound(name, ())
        return await self._project.agent(name, session=session_of(name, request.user.name))


def _calls(form: Any) -> list[Any]:
    calls = form.get("calls") if isinstance(form, dict) else form
    if not isinstance(calls, list) or len(calls) > MAX_CALLS:
        raise InvalidArgument(
            f'Send {{"calls": [{{"tool": …, "arguments": {{…}}}}]}} with at most {MAX_CALLS} calls.', reason="calls"
        )
    return calls


class _Mcp:
    """The agent's MCP endpoint, through the bridge."""

    def __init__(self, doors: Doors, streams: Streams) -> None:
        self._doors, self._streams = doors, streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"]["agent"]
        if name not in self._doors or not scope["user"].may_be(name):
            await failure(AgentNotFound(name, ()))(scope, receive, send)
            return
        door = self._doors[name]
        if _is_plain(scope):
            await door.mcp(scope, receive, send)
        else:
            await self._streams.follow(door.sessions, scope, receive, send)


def _is_plain(scope: Scope) -> bool:
    """Whether it is a call without a session, answered in one piece; the bridge reads the same headers likewise."""
    if scope["method"] != "POST":
        return False
    version = method = None
    for name, value in scope["headers"]:
        if name == b"mcp-protocol-version":
            version = version or value
        elif name == b"mcp-method":
            method = method or value
    return method == b"tools/call" and version in _STATELESS and b'"progressToken"' not in scope.get(BODY, b"")
