"""`find_tools` and `call_tool`: for an agent that has more tools than a model can read.

Both know one toolset and nothing else: what is found is what can be called. A call through `call_tool` never arrives
here; `Agent.begin` makes it a call of the tool that is meant, with all that belongs to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import anyio.to_thread

from toolgrove.errors import InvalidArgument
from toolgrove.giving_way import giving_way
from toolgrove.pool.compact_schema import compact_schema, shortened_text
from toolgrove.pool.ranking import Ranking
from toolgrove.types import CALL_TOOL, FIND_TOOLS, Annotations, Arguments, Call, Result, Schema, Tool, ToolSpec

SOURCE = "discovery"
LIMIT, MOST = 5, 20
_LARGE = 300
"""Tools whose index takes some ten milliseconds; that of more is built in a thread."""
_DESCRIPTION = 240
_SOURCES = 40


def discovery_tools(tools: Mapping[str, Tool]) -> tuple[Tool, Tool]:
    """The two tools for an agent that has these."""
    specs = tuple(tool.spec for tool in tools.values())
    sources = Counter(spec.source for spec in specs)
    finding = Finding(specs, sources)
    changing = any(tool.mutates for tool in tools.values())
    return (
        Tool(spec=_find_tools(sources), source=finding, mutates=False, own_name=FIND_TOOLS),
        Tool(spec=_call_tool(specs), source=finding, mutates=changing, own_name=CALL_TOOL),
    )


def meant(arguments: Arguments | None) -> tuple[str, Arguments | None] | None:
    """The tool and the arguments that a call of `call_tool` means; None where it cannot be read as one."""
    if not isinstance(arguments, dict) or not arguments.keys() <= {"name", "arguments"}:
        return None
    name = arguments.get("name")
    if not isinstance(name, str) or name == CALL_TOOL:
        return None
    inner: Any = arguments.get("arguments")
    return name, inner


class Finding:
    """Ranks the tools of one toolset; the index is built once, when it is first asked."""

    name = SOURCE

    def __init__(self, specs: Sequence[ToolSpec], sources: Mapping[str, int]) -> None:
        self._specs = specs
        self._sources = sources
        self._ranking: Ranking | None = None
        self._building = anyio.Lock()

    async def call(self, call: Call) -> Result:
        """Answer `find_tools`; a call of `call_tool` that means no tool is refused."""
        if call.name != FIND_TOOLS:
            raise InvalidArgument(
                f"{CALL_TOOL} needs the name of another tool. {FIND_TOOLS} tells which there are.", path="name"
            )
        found = (await self._index()).best(call.arguments["query"], call.arguments.get("limit", LIMIT))
        answer: Result = {"tools": [_shown(spec) for spec in found], "total": len(self._specs)}
        if not found:
            answer["sources"] = dict(self._sources)
            answer["hint"] = "No tool has such words. Say what it should do in other words, or name a source."
        return answer

    async def _index(self) -> Ranking:
        async with self._building:
            if self._ranking is None:
                if len(self._specs) <= _LARGE:
                    self._ranking = Ranking(self._specs)
                else:
                    with giving_way():
                        self._ranking = await anyio.to_thread.run_sync(Ranking, self._specs)
            return self._ranking


def _shown(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": shortened_text(spec.description, _DESCRIPTION),
        "inputSchema": compact_schema(spec.input_schema),
    }


def _find_tools(sources: Mapping[str, int]) -> ToolSpec:
    named = ", ".join(f"{name} ({count})" for name, count in list(sources.items())[:_SOURCES])
    more = f" and {len(sources) - _SOURCES} more" if len(sources) > _SOURCES else ""
    return ToolSpec(
        name=FIND_TOOLS,
        description=f"Find tools by what they do; call what you find with {CALL_TOOL}. Sources: {named}{more}.",
        input_schema=_FIND_INPUT,
        output_schema=_FIND_OUTPUT,
        annotations=Annotations(readonly=True, destructive=False, idempotent=True, open_world=False),
        source=SOURCE,
    )


def _call_tool(specs: Sequence[ToolSpec]) -> ToolSpec:
    """What it does is what the tools do that it can call; it promises no more than all of them."""
    told = [spec.annotations for spec in specs]
    return ToolSpec(
        name=CALL_TOOL,
        description=f"Call a tool by the name that {FIND_TOOLS} told, with the arguments of its schema.",
        input_schema=_CALL_INPUT,
        output_schema={},
        annotations=Annotations(
            readonly=all(one.readonly for one in told),
            destructive=False if all(one.destructive is False or one.readonly for one in told) else None,
            idempotent=all(one.idempotent for one in told),
            open_world=False if all(one.open_world is False for one in told) else None,
        ),
        source=SOURCE,
    )


def _record(properties: dict[str, Any], *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_FIND_INPUT = _record(
    {
        "query": {"type": "string", "minLength": 1, "maxLength": 500, "description": "Words for what it should do."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "description": f"{LIMIT} without it."},
    },
    "query",
)
_FIND_OUTPUT = _record(
    {
        "tools": {"type": "array", "items": {"type": "object"}, "description": "The best first."},
        "total": {"type": "integer"},
        "sources": {"type": "object"},
        "hint": {"type": "string"},
    },
    "tools",
    "total",
)
_CALL_INPUT = _record(
    {"name": {"type": "string"}, "arguments": {"type": "object", "description": "As its inputSchema says."}}, "name"
)
