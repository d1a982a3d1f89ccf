"""What an agent finds at its address: MCP, its tools for OpenAI, its receipt, and runs."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from toolgrove.agent import Agent
from toolgrove.errors import AgentNotFound, GroveError, InvalidArgument
from toolgrove.faces import session_of
from toolgrove.web.answer import answer, failure, problem, stream
from toolgrove.web.body import json_body
from toolgrove.web.doors import Doors
from toolgrove.web.project import Project
from toolgrove.web.runs import Runs

MAX_CALLS = 100


class Agents:
    """`/agents/{agent}/…`: only for that agent and the operator; to anyone else it looks like no agent at all."""

    def __init__(self, project: Project, doors: Doors, runs: Runs) -> None:
        self._project, self._doors, self._running = project, doors, runs

    def routes(self) -> list[BaseRoute]:
        """Every address below an agent."""
        return [
            Route("/agents/{agent}/mcp", _Mcp(self._doors), methods=["GET", "POST", "DELETE"]),
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
        return stream(self._running.follow(agent.run(calls)))

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

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"]["agent"]
        if name not in self._doors or not scope["user"].may_be(name):
            await failure(AgentNotFound(name, ()))(scope, receive, send)
            return
        await self._doors[name].mcp(scope, receive, send)
