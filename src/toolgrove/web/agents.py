"""What an agent finds at its address: MCP, its tools for OpenAI, its receipt, and runs."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mcp_serve.clear_json import BODY
from mcp_serve.protocol import STATELESS
from toolgrove.agent import Agent
from toolgrove.errors import AgentNotFound, InvalidArgument
from toolgrove.mcp_face import session_of
from toolgrove.web.agent_endpoints import AgentEndpoints
from toolgrove.web.http_json import answer, event_texts, failure, json_body, problem, stream
from toolgrove.web.project import Project
from toolgrove.web.refusals import Refusals
from toolgrove.web.routing import Handlers
from toolgrove.web.run_log import RunLog
from toolgrove.web.runs import Runs
from toolgrove.web.schemas import MAX_CALLS, Receipt
from toolgrove.web.streams import FollowedResponse, Streams

_STATELESS = frozenset(version.encode() for version in STATELESS)


class Agents:
    """`/agents/{agent}/…`: only for that agent and the operator; to anyone else it looks like no agent at all."""

    def __init__(
        self,
        project: Project,
        endpoints: AgentEndpoints,
        runs: Runs,
        streams: Streams,
        refusals: Refusals,
        run_log: RunLog,
    ) -> None:
        self._project, self._endpoints, self._running, self._streams = project, endpoints, runs, streams
        self._refusals, self._run_log = refusals, run_log

    def handlers(self) -> Handlers:
        """What answers each operation of an agent; MCP answers all of its own methods."""
        mcp = _Mcp(self._endpoints, self._streams, self._refusals)
        return {
            "mcp": mcp,
            "mcp_stream": mcp,
            "mcp_end": mcp,
            "openai_tools": self._openai_tools,
            "receipt": self._receipt,
            "run": self._runs,
        }

    async def _openai_tools(self, request: Request) -> Response:
        agent = await self._agent(request)
        strict, annotated = (request.query_params.get(key) in ("1", "true") for key in ("strict", "embedAnnotations"))
        return answer(agent.openai_tools(strict=strict, embed_annotations=annotated))

    async def _receipt(self, request: Request) -> Receipt:
        agent = await self._agent(request)
        own = agent.receipt if request.user.is_operator else agent.own_receipt
        return Receipt.of(own, await agent.offers(), agent.approvals)

    async def _runs(self, request: Request) -> Response:
        agent = await self._agent(request)
        given = await json_body(request)
        task = _task(given)
        if self._running.draining:
            return problem(503, "internal", "The gateway is shutting down. Send the run again when it is back.")
        if task is None:
            events = agent.run(_calls(given))
        else:
            run = await self._project.model_run(agent.name, session=session_of(agent.name, request.user.name))
            events = run.events(task)
        recording = self._run_log.begin(agent.name, "calls" if task is None else "model", task)
        return FollowedResponse(stream(event_texts(self._running.follow(events, recording))), self._streams)

    async def _agent(self, request: Request) -> Agent:
        name = request.path_params["agent"]
        if not request.user.may_be(name):
            await self._refusals.record("agent", request.scope)
        if name not in self._endpoints or not request.user.may_be(name):
            raise AgentNotFound(name, ())
        return await self._project.agent(name, session=session_of(name, request.user.name))


def _task(given: Any) -> str | None:
    """What a model is to do; None where calls are given."""
    if not isinstance(given, dict) or "input" not in given:
        return None
    task = given["input"]
    if "calls" in given or not isinstance(task, str) or not task.strip():
        raise InvalidArgument('Send either {"input": "…"}, a task in words, or {"calls": […]}.', reason="input")
    return task


def _calls(given: Any) -> list[Any]:
    calls = given.get("calls") if isinstance(given, dict) else given
    if not isinstance(calls, list) or len(calls) > MAX_CALLS:
        raise InvalidArgument(
            f'Send {{"calls": [{{"tool": …, "arguments": {{…}}}}]}}, at most {MAX_CALLS} of them, or {{"input": "…"}}.',
            reason="calls",
        )
    return calls


class _Mcp:
    """The MCP endpoint of the agent that the path names."""

    def __init__(self, endpoints: AgentEndpoints, streams: Streams, refusals: Refusals) -> None:
        self._endpoints, self._streams, self._refusals = endpoints, streams, refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"]["agent"]
        if not scope["user"].may_be(name):
            await self._refusals.record("agent", scope)
        if name not in self._endpoints or not scope["user"].may_be(name):
            await failure(AgentNotFound(name, ()))(scope, receive, send)
            return
        endpoint = self._endpoints[name]
        if _is_plain(scope):
            await endpoint.mcp(scope, receive, send)
        else:
            await self._streams.follow(endpoint.sessions, scope, receive, send)


def _is_plain(scope: Scope) -> bool:
    """Whether it is a call without a session, answered in one piece; `StreamableHTTP` reads the same headers."""
    if scope["method"] != "POST":
        return False
    version = method = None
    for name, value in scope["headers"]:
        if name == b"mcp-protocol-version":
            version = version or value
        elif name == b"mcp-method":
            method = method or value
    return method == b"tools/call" and version in _STATELESS and b'"progressToken"' not in scope.get(BODY, b"")
