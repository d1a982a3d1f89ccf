"""The prompts of servers that an agent is given, under names like those of tools; any other does not exist for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import anyio
import anyio.lowlevel

from toolgrove.errors import PromptNotFound
from toolgrove.pool.definition_lint import ToolNames, spoken_of
from toolgrove.pool.globs import Globs
from toolgrove.pool.naming import pool_name
from toolgrove.pool.offer import OfferedDefinition
from toolgrove.types import GET_PROMPT, Annotations, Bounds, Call, Listed, Offered, PromptGrant, Result, Tool, ToolSpec

Json = dict[str, Any]
SOURCE = "prompts"
_AT_ONCE = 20_000
"""Words that are looked up before others have their turn."""


@runtime_checkable
class PromptServer(Protocol):
    """A source that has prompts too; those that it names were checked."""

    @property
    def name(self) -> str: ...

    async def prompts(self) -> Sequence[OfferedDefinition]: ...

    async def get_prompt(self, call: Call, own_name: str, arguments: Mapping[str, str]) -> Result: ...

    async def complete(self, call: Call, asked: Json) -> Result: ...

    def follow(self, tell: Callable[[Listed], None]) -> Callable[[], None]: ...


class _Prompt(NamedTuple):
    server: PromptServer
    own_name: str
    shown: Json
    mentions: Mapping[str, str]


class Prompts:
    """The prompts of one agent: those that it and every agent above it are given.

    `servers` stand in the order of the project file: a name that two of them claim is the first one's. `tools` are the
    names in the pool: a prompt that speaks of another server's tool is not given to anybody.
    """

    def __init__(
        self, servers: Sequence[PromptServer], bounds: Sequence[Bounds], tools: Callable[[], ToolNames]
    ) -> None:
        self._tools = tools
        self.granted = tuple(one.prompts for one in bounds)
        self._grants = [_Grant(one) for one in self.granted]
        is_any = bool(self.granted) and all(one.patterns for one in self.granted)
        self._servers = [
            server for server in servers if is_any and all(grant.selects(server.name) for grant in self._grants)
        ]

    def __eq__(self, other: object) -> bool:
        """Whether the same is granted, of the same servers."""
        return isinstance(other, Prompts) and (self.granted, self._servers) == (other.granted, other._servers)

    __hash__ = None  # type: ignore[assignment]

    @property
    def offered(self) -> bool:
        """Whether there is a server that it may have a prompt of."""
        return bool(self._servers)

    @property
    def servers(self) -> Sequence[PromptServer]:
        """Those that it may have a prompt of."""
        return self._servers

    async def listed(self) -> list[Json]:
        """Those that servers list now; one that does not answer is left out."""
        return [prompt.shown for prompt in await self._clean()]

    async def offers(self) -> list[Offered]:
        """The same by name, each with its server."""
        return [Offered("prompt", prompt.shown["name"], prompt.server.name) for prompt in await self._clean()]

    async def _clean(self) -> list[_Prompt]:
        given, tools = await self._given(), self._tools()
        clean: list[_Prompt] = []
        looked = 0
        for prompt in given.values():
            if not spoken_of(prompt.server.name, prompt.mentions, tools):
                clean.append(prompt)
            looked += len(prompt.mentions)
            if looked > _AT_ONCE:  # others have their turn
                looked = 0
                await anyio.lowlevel.checkpoint()
        return clean

    def getting(self) -> Tool:
        """The getting of a prompt as the chain runs it; for one that is not granted it finds nothing."""
        return Tool(
            spec=_SPEC, source=_Getting(self), mutates=False, kind="mcp", own_name=GET_PROMPT, targets=("name",)
        )

    async def find(self, name: str) -> _Prompt | None:
        """The prompt of that name, if it is given to the agent."""
        if not all(grant.gives(name) for grant in self._grants):
            return None
        prompt = (await self._given()).get(name)
        return None if prompt is None or spoken_of(prompt.server.name, prompt.mentions, self._tools()) else prompt

    async def _given(self) -> dict[str, _Prompt]:
        answers: dict[str, Sequence[OfferedDefinition]] = {}

        async def ask(server: PromptServer) -> None:
            answers[server.name] = await server.prompts()

        async with anyio.create_task_group() as tasks:
            for server in self._servers:
                tasks.start_soon(ask, server)
        given: dict[str, _Prompt] = {}
        for server in self._servers:
            for name, prompt in _named(server, answers[server.name]).items():
                if name not in given and all(grant.gives(name) for grant in self._grants):
                    given[name] = prompt
        return given


class _Grant:
    """What one agent of the chain is given."""

    def __init__(self, grant: PromptGrant) -> None:
        self._patterns, self._deny = Globs(grant.patterns), Globs(grant.deny)
        self._servers: Collection[str] | None = grant.servers

    def selects(self, server: str) -> bool:
        return self._servers is None or server in self._servers

    def gives(self, name: str) -> bool:
        return self._patterns.match(name) is not None and self._deny.match(name) is None


class _Getting:
    """Asks the server whose prompt it is."""

    name = SOURCE

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts

    async def call(self, call: Call) -> Result:
        """Get the prompt from its server, under the server's own name."""
        name = call.arguments["name"]
        prompt = await self._prompts.find(name)
        if prompt is None:
            raise PromptNotFound(name)
        return await prompt.server.get_prompt(call, prompt.own_name, call.arguments.get("arguments") or {})


def _named(server: PromptServer, listed: Sequence[OfferedDefinition]) -> dict[str, _Prompt]:
    """The prompts of one server by their names here; two under one name are none."""
    found: dict[str, _Prompt] = {}
    twice: set[str] = set()
    for one, mentions in listed:
        name = pool_name(server.name, one["name"])
        if name in found:
            twice.add(name)
        found[name] = _Prompt(server, one["name"], {**one, "name": name}, mentions)
    return {name: prompt for name, prompt in found.items() if name not in twice}


_SPEC = ToolSpec(
    name=GET_PROMPT,
    description="Get a prompt of an MCP server.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    output_schema={},
    annotations=Annotations(readonly=True),
    source=SOURCE,
)
