"""An agent as an MCP endpoint with exactly its tools."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import anyio
from mcp_types import Tool, ToolAnnotations

from mcp_serve.answer import Answer
from mcp_serve.calls import ToolRun
from mcp_serve.endpoint import Endpoint
from mcp_serve.table import ToolEntry
from toolgrove.agent import Agent
from toolgrove.call.strip import marked
from toolgrove.notation.json_value import compact
from toolgrove.types import Arguments, ToolSpec

SESSION = "toolgrove/session"
_ERROR = {"type": "object", "properties": {"error": {"type": "object"}}, "required": ["error"]}
MAX_SESSION = 128
PATIENCE = 0.25
"""Seconds for which the answer to a call beyond the limit is held: whoever does not heed it cannot crowd out others."""


def mcp_endpoint(agent: Agent, version: str) -> Endpoint:
    """An MCP server with exactly the agent's tools."""
    return McpFace(agent, version).endpoint


class McpFace:
    """An agent over MCP; a failure is the tool's own answer with `isError`."""

    def __init__(self, agent: Agent, version: str) -> None:
        self.agent = agent
        self._entries = {spec.name: _entry(spec) for spec in agent.tools}
        self.endpoint = Endpoint(agent.name, version, self, self._run, in_place=True)

    def use(self, agent: Agent) -> None:
        """Go on with the same agent, resolved anew; clients hear of it if its tools are others."""
        seen, self.agent = self.agent.tools, agent
        if agent.tools != seen:
            self._entries = {spec.name: _entry(spec) for spec in agent.tools}
            self.endpoint.tools_changed()

    def entries(self) -> Mapping[str, ToolEntry]:
        """What `tools/list` shows."""
        return self._entries

    def entry(self, name: str) -> ToolEntry | None:
        """One of them."""
        return self._entries.get(name)

    async def _run(self, tool: str, arguments: Arguments | None, run: ToolRun) -> Answer:
        caller = None if run.user is None else run.user.id
        session = session_of(self.agent.name, caller, (run.channel.meta or {}).get(SESSION))
        agent = self.agent if session is None else self.agent.in_session(session)
        call = agent.begin(tool, arguments, run)
        result = await agent.send(call)
        if call.error is not None and isinstance(wait := call.error.get("retryAfter"), float):
            await anyio.sleep(min(wait, PATIENCE))
        answer = {"resultType": "complete", "structuredContent": result, "isError": call.error is not None}
        answer = marked(call, answer)
        if call.error is not None or call.content is None:
            return {**answer, "content": [{"type": "text", "text": compact(result)}]}
        if result.keys() == {"content"}:  # the tool said nothing but its blocks
            del answer["structuredContent"]
        return {**answer, "content": call.content}


def session_of(agent: str, caller: str | None, wanted: object = None) -> str | None:
    """The session of a request: the one it names, and never the agent's own where somebody else acts for it."""
    named = wanted if isinstance(wanted, str) and 0 < len(wanted) <= MAX_SESSION else None
    if caller is None or caller == agent:
        return named
    return caller if named is None else f"{caller}/{named}"


def _entry(spec: ToolSpec) -> ToolEntry:
    annotations = ToolAnnotations(
        read_only_hint=spec.annotations.readonly,
        destructive_hint=spec.annotations.destructive,
        idempotent_hint=spec.annotations.idempotent,
        open_world_hint=spec.annotations.open_world,
    )
    tool = Tool(
        name=spec.name,
        description=spec.description,
        input_schema=dict(spec.input_schema),
        output_schema=_or_error(spec.output_schema) if spec.output_schema else None,
        annotations=annotations,
    )
    return ToolEntry(tool=tool)


def _or_error(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an answer that may be an error instead; some clients check that too."""
    inner = {key: value for key, value in schema.items() if key not in ("$defs", "$schema")}
    if re.search(r'"#(?!/\$defs/)', json.dumps(inner)):  # it points into itself, and would point elsewhere then
        return dict(schema)
    around = {key: schema[key] for key in ("$schema", "$defs") if key in schema}
    return {"type": "object", "anyOf": [inner, _ERROR], **around}
