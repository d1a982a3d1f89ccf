"""An agent's tools as OpenAI definitions and as an MCP endpoint, both through the bridge: there is no second server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import anyio
from apcore import CancelToken, Identity, ModuleAnnotations, ModuleDescriptor
from mcp_types import Tool

from apcore_mcp.adapters.annotations import AnnotationMapper
from apcore_mcp.adapters.errors import error_result
from apcore_mcp.converters.openai import strict_schema
from apcore_mcp.server.calls import SHUTTING_DOWN, Answer, Call, Calls, Channel, Outcome
from apcore_mcp.server.endpoint import Endpoint
from apcore_mcp.server.factory import Entry
from toolgrove.agent import Agent
from toolgrove.tree.json_value import compact
from toolgrove.types import Arguments, ToolSpec

SESSION = "toolgrove/session"
_ERROR = {"type": "object", "properties": {"error": {"type": "object"}}, "required": ["error"]}
MAX_SESSION = 128
PATIENCE = 0.25
"""Seconds for which the answer to a call beyond the limit is held: whoever does not heed it cannot crowd out others."""
_HEADER = '"x-mcp-header"'


def openai_tools(specs: Sequence[ToolSpec], *, strict: bool, embed_annotations: bool) -> list[dict[str, Any]]:
    """The tools as the `tools` argument of an OpenAI-style API takes them."""
    return [{"type": "function", "function": _function(spec, strict, embed_annotations)} for spec in specs]


def _function(spec: ToolSpec, strict: bool, embed_annotations: bool) -> dict[str, Any]:
    suffix = AnnotationMapper().to_description_suffix(_annotations(spec)) if embed_annotations else ""
    parameters = dict(spec.input_schema)
    function: dict[str, Any] = {"name": spec.name, "description": spec.description + suffix, "parameters": parameters}
    if strict:  # open objects such as a payload cannot be said strictly; the gate checks them anyway
        function |= {"parameters": strict_schema(parameters, lambda: None), "strict": True}
    return function


def mcp_endpoint(agent: Agent, version: str) -> Endpoint:
    """An MCP server with exactly the agent's tools."""
    return McpFace(agent, version).endpoint


class McpFace:
    """An agent over MCP; a failure is the tool's own answer with `isError`."""

    def __init__(self, agent: Agent, version: str) -> None:
        self.endpoint = Endpoint(agent.name, version, self, self._run)
        self.endpoint.calls = _CallsInPlace(self._run)
        self.endpoint.server.get_tool_input_schema = lambda name: self._in_headers.get(name)
        self.agent = agent
        self._show(agent.tools)

    def use(self, agent: Agent) -> None:
        """Go on with the same agent, resolved anew; clients hear of it if its tools are others."""
        seen, self.agent = self.agent.tools, agent
        if agent.tools != seen:
            self._show(agent.tools)
            self.endpoint.tools_changed()

    def _show(self, tools: Sequence[ToolSpec]) -> None:
        self._entries = {spec.name: _entry(spec) for spec in tools}
        # The SDK searches the schema that it is given at every call; only in these there is something to find.
        schemas = {name: entry.tool.input_schema for name, entry in self._entries.items()}
        self._in_headers = {name: schema for name, schema in schemas.items() if _HEADER in json.dumps(schema)}

    def entries(self) -> Mapping[str, Entry]:
        """What `tools/list` shows."""
        return self._entries

    def entry(self, name: str) -> Entry | None:
        """One of them."""
        return self._entries.get(name)

    async def _run(self, tool: str, arguments: Arguments | None, request: Call) -> Answer:
        request.token = _TaskToken(asyncio.current_task())
        caller = request.identity.id if request.identity is not None else None
        session = session_of(self.agent.name, caller, (request.channel.meta or {}).get(SESSION))
        agent = self.agent if session is None else self.agent.in_session(session)
        call = agent.begin(tool, arguments, request)
        result = await agent.send(call)
        if call.error is not None and isinstance(wait := call.error.get("retryAfter"), float):
            await anyio.sleep(min(wait, PATIENCE))
        answer = {"resultType": "complete", "structuredContent": result, "isError": call.error is not None}
        if call.error is not None or call.content is None:
            return {**answer, "content": [{"type": "text", "text": compact(result)}]}
        if result.keys() == {"content"}:  # the tool said nothing but its blocks
            del answer["structuredContent"]
        return {**answer, "content": call.content}


class _CallsInPlace(Calls):
    """Runs a call in the task of its request, as one of its own costs more than many a call.

    Only a call that may be suspended by a question, and so outlive its request, gets one.
    """

    async def begin(
        self, name: str, arguments: Arguments | None, channel: Channel, who: Identity | None = None
    ) -> Outcome:
        if self._draining or (channel.can_answer and channel.ask is None):
            return await super().begin(name, arguments, channel, who)
        call = Call(who, self._suspend)
        call.attach(channel)
        ended: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._running[ended] = call
        try:
            return await self._run(name, arguments, call)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not call.token.is_cancelled or task is None:
                raise
            task.uncancel()  # not the client went away, but we do
            return error_result(SHUTTING_DOWN)
        finally:
            del self._running[ended]
            ended.cancel()


class _TaskToken(CancelToken):
    """Ends the task of a call whose client went away; the tools of a grove know no other token."""

    def __init__(self, task: asyncio.Task[object] | None) -> None:
        super().__init__()
        self._task = task

    def cancel(self) -> None:
        """Cancel the call."""
        super().cancel()
        if self._task is not None:
            self._task.cancel()


def session_of(agent: str, caller: str | None, wanted: object = None) -> str | None:
    """The session of a request: the one it names, and never the agent's own where somebody else acts for it."""
    named = wanted if isinstance(wanted, str) and 0 < len(wanted) <= MAX_SESSION else None
    if caller is None or caller == agent:
        return named
    return caller if named is None else f"{caller}/{named}"


def _entry(spec: ToolSpec) -> Entry:
    # Not through the bridge's factory: our schemas may refer to themselves, which it does not inline.
    tool = Tool(
        name=spec.name,
        description=spec.description,
        input_schema=dict(spec.input_schema),
        output_schema=_or_error(spec.output_schema) if spec.output_schema else None,
        annotations=AnnotationMapper().to_mcp_annotations(_annotations(spec)),
    )
    descriptor = ModuleDescriptor(
        module_id=spec.name,
        name=spec.name,
        description=spec.description,
        documentation=None,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema or {},
        annotations=_annotations(spec),
    )
    return Entry(tool, descriptor)


def _or_error(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an answer that may be an error instead; some clients check that too."""
    inner = {key: value for key, value in schema.items() if key not in ("$defs", "$schema")}
    if re.search(r'"#(?!/\$defs/)', json.dumps(inner)):  # it points into itself, and would point elsewhere then
        return dict(schema)
    around = {key: schema[key] for key in ("$schema", "$defs") if key in schema}
    return {"type": "object", "anyOf": [inner, _ERROR], **around}


def _annotations(spec: ToolSpec) -> ModuleAnnotations:
    return ModuleAnnotations(**asdict(spec.annotations))
