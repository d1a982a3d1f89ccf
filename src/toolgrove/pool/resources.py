"""What an agent may read of the resources that servers offer; whatever is not granted does not exist for it."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable
from urllib.parse import unquote

import anyio

from toolgrove.errors import GroveError, ResourceNotFound
from toolgrove.pool.globs import Globs
from toolgrove.types import READ_RESOURCE, SUBSCRIBE, Annotations, Bounds, Call, Listed, Offered, Result, Tool, ToolSpec

Json = dict[str, Any]
SOURCE = "resources"
MAX_URI = 4_096
_TARGET = 200
_BLANK = re.compile(r"[\x00-\x20\x7f]")
_PARTS = re.compile(r"[/\\?#;]")
_STEPS = frozenset((".", ".."))
_EXPRESSION = re.compile(r"\{[^{}]*\}")
_DECODINGS = 3


class Watchable(Protocol):
    """Tells of changes of its resources; `confirm_watch` raises ResourceNotFound for one that it has not."""

    @property
    def name(self) -> str: ...

    def watch(self, uri: str, tell: Callable[[], None]) -> Callable[[], None]: ...

    async def confirm_watch(self, call: Call, uri: str) -> Result: ...


class OwnResources(Watchable, Protocol):
    """Resources that are read by a call of a tool."""

    @property
    def template(self) -> Json: ...

    def has(self, uri: str) -> bool: ...

    def reading(self, uri: str) -> tuple[str, Json]: ...

    def contents(self, uri: str, result: Result) -> Result: ...


@runtime_checkable
class ResourceServer(Watchable, Protocol):
    """A source that has resources too; `read_resource` raises ResourceNotFound for one that it has not."""

    async def resources(self) -> Sequence[Json]: ...

    async def resource_templates(self) -> Sequence[Json]: ...

    async def read_resource(self, call: Call, uri: str) -> Result: ...

    async def complete(self, call: Call, asked: Json) -> Result: ...

    def follow(self, tell: Callable[[Listed], None]) -> Callable[[], None]: ...


class Resources:
    """The resources of one agent: those that it and every agent above it may read.

    `servers` stand in the order of the project file: of two that have the same address, the first one's is read. The
    `tree` is there for an agent that has the tool which reads it.
    """

    def __init__(
        self, servers: Sequence[ResourceServer], bounds: Sequence[Bounds], tree: OwnResources | None = None
    ) -> None:
        self._tree = tree
        self.granted = tuple(one.resources for one in bounds)
        self._globs = [Globs(patterns) for patterns in self.granted]
        named = [{pattern.partition(":")[0] for pattern in patterns} for patterns in self.granted]
        self._servers = [server for server in servers if named and all(server.name in names for names in named)]

    def __eq__(self, other: object) -> bool:
        """Whether the same is granted, of the same servers."""
        return isinstance(other, Resources) and self._key() == other._key()

    __hash__ = None  # type: ignore[assignment]

    def _key(self) -> tuple[object, ...]:
        return self.granted, self._servers, self._tree

    @property
    def offered(self) -> bool:
        """Whether there is anything that it may read."""
        return bool(self._servers) or self._tree is not None

    @property
    def servers(self) -> Sequence[ResourceServer]:
        """Those that it may read anything of."""
        return self._servers

    async def listed(self) -> list[Json]:
        """Those that servers list now; one that does not answer is left out."""
        return [one for _, one in await self._granted("resources", "uri")]

    async def templates(self) -> list[Json]:
        """The templates whose text, braces and all, a pattern covers."""
        own = [] if self._tree is None else [self._tree.template]
        return [*own, *(one for _, one in await self._granted("resource_templates", "uriTemplate"))]

    async def offers(self) -> list[Offered]:
        """All of them, each with its server."""
        found = [] if self._tree is None else [Offered("template", self._tree.template["uriTemplate"], self._tree.name)]
        for server, one in await self._granted("resource_templates", "uriTemplate"):
            found.append(Offered("template", one["uriTemplate"], server.name))
        for server, one in await self._granted("resources", "uri"):
            found.append(Offered("resource", one["uri"], server.name))
        return found

    async def _granted(self, what: str, key: str) -> list[tuple[ResourceServer, Json]]:
        """What servers list and the agent may read; of two with the same address, the first one's."""
        own = None if self._tree is None else self._tree.template["uriTemplate"]
        found: dict[str, tuple[ResourceServer, Json]] = {}
        for server, listed in await self._asked(what):
            for one in listed:
                if self._may_read(server, one[key]) and one[key] != own:
                    found.setdefault(one[key], (server, one))
        return list(found.values())

    async def holder(self, template: str) -> ResourceServer | None:
        """The first server that has a template which the agent may see."""
        for server, listed in await self._asked("resource_templates"):
            if self._may_read(server, template) and any(one["uriTemplate"] == template for one in listed):
                return server
        return None

    def of_tree(self, uri: str) -> tuple[str, Json] | None:
        """The call of a tool that reads what belongs to the tree; None for any other address."""
        return self._tree.reading(uri) if self._tree is not None and self._tree.has(uri) else None

    def contents(self, uri: str, call: Call, result: Result) -> Result:
        """What a reading answered, in the form of a resource."""
        return result if self._tree is None or call.name == READ_RESOURCE else self._tree.contents(uri, result)

    def reading(self, uri: str) -> Tool:
        """The reading of one resource as the chain runs it; for one that is not granted it finds nothing."""
        return Tool(
            spec=_SPEC,
            source=_Reading(self._readable(uri)),
            mutates=False,
            kind="mcp",
            own_name=READ_RESOURCE,
            targets=("uri",),
        )

    def watching(self, watch: Watch) -> Tool:
        """The subscription to one resource as the chain runs it; for one that is not granted it finds nothing."""
        return Tool(
            spec=_WATCHING,
            source=_Watching(watch, self._readable(watch.uri), self._tree_of(watch.uri)),
            mutates=False,
            kind="mcp",
            own_name=SUBSCRIBE,
            targets=("uri",),
        )

    def keep(self, watch: Watch) -> bool:
        """Go on with a watch that was granted before; False where it was of something else that is no longer there."""
        if watch.server is None:
            return True
        found = self._watchable(watch.uri)
        if any(one is watch.server for one in found):
            return True
        same = [one for one in found if one.name == watch.server.name]
        watch.end()
        if same:
            watch.begin(same[0])
        return bool(same)

    def _watchable(self, uri: str) -> Sequence[Watchable]:
        return self._tree_of(uri) or self._readable(uri)

    def _tree_of(self, uri: str) -> Sequence[Watchable]:
        return [self._tree] if self._tree is not None and self._tree.has(uri) else []

    def _readable(self, uri: str) -> list[ResourceServer]:
        return [server for server in self._servers if self._may_read(server, uri)]

    def _may_read(self, server: ResourceServer, uri: str) -> bool:
        """Whether all of the chain are granted it; a way around (`..`) is never what a pattern means."""
        address = f"{server.name}:{uri}"
        return not _is_devious(uri) and all(globs.match(address) is not None for globs in self._globs)

    async def _asked(self, what: str) -> list[tuple[ResourceServer, Sequence[Json]]]:
        """What every server lists, asked side by side and told in the order of the file."""
        answers: dict[str, Sequence[Json]] = {}

        async def ask(server: ResourceServer) -> None:
            answers[server.name] = await (server.resources() if what == "resources" else server.resource_templates())

        async with anyio.create_task_group() as tasks:
            for server in self._servers:
                tasks.start_soon(ask, server)
        return [(server, answers[server.name]) for server in self._servers]


class Watch:
    """One who wants to hear of the changes of a resource; `tell` is called for each, until the end."""

    def __init__(self, uri: str, tell: Callable[[], None]) -> None:
        self.uri = uri
        self.tell = tell
        self.server: Watchable | None = None
        self._end: Callable[[], None] | None = None

    def begin(self, server: Watchable) -> None:
        """Have this server tell."""
        self.server, self._end = server, server.watch(self.uri, self.tell)

    def end(self) -> None:
        """Hear no more."""
        if self._end is not None:
            self._end()
        self.server = self._end = None


class _Asking:
    """Knows which servers may be asked for a resource, and which of them has it."""

    name = SOURCE

    def __init__(self, servers: Sequence[ResourceServer]) -> None:
        self._servers = servers

    async def _owners(self, uri: str) -> Sequence[ResourceServer]:
        """The first that lists it or has a template for it: what belongs to one server is not told to others."""
        if len(self._servers) < 2:
            return self._servers
        for server in self._servers:
            if any(one["uri"] == uri for one in await server.resources()):
                return [server]
        for server in self._servers:
            templates = [_pattern(one["uriTemplate"]) for one in await server.resource_templates()]
            if Globs(templates).match(uri) is not None:
                return [server]
        return self._servers


class _Reading(_Asking):
    """Asks the server that has the resource, out of those that may be asked."""

    async def call(self, call: Call) -> Result:
        """Read it; where no server says that it has it, each one is asked until one does."""
        uri = call.arguments["uri"]
        problem: GroveError | None = None
        for server in await self._owners(uri):
            call.targets = (f"{server.name}:{uri}"[:_TARGET],)
            try:
                return await server.read_resource(call, uri)
            except ResourceNotFound:
                continue
            except GroveError as error:
                problem = problem or error
        raise problem or ResourceNotFound(uri)


class _Watching(_Asking):
    """Has the server that has the resource tell of its changes."""

    def __init__(self, watch: Watch, servers: Sequence[ResourceServer], own: Sequence[Watchable]) -> None:
        super().__init__(servers)
        self._watch = watch
        self._own = own

    async def call(self, call: Call) -> Result:
        """Begin to watch; the first server that agrees is the one."""
        uri = self._watch.uri
        problem: GroveError | None = None
        for server in self._own or await self._owners(uri):
            call.targets = (f"{server.name}:{uri}"[:_TARGET],)
            self._watch.begin(server)
            try:
                return await server.confirm_watch(call, uri)
            except ResourceNotFound:
                self._watch.end()
            except GroveError as error:
                self._watch.end()
                problem = problem or error
            except BaseException:
                self._watch.end()
                raise
        raise problem or ResourceNotFound(uri)


def _pattern(template: str) -> str:
    """A glob for the addresses that a template can become."""
    return "*".join(map(glob.escape, _EXPRESSION.split(template)))


def _is_devious(uri: str) -> bool:
    """Whether a server could take an address for another one than a pattern sees."""
    if len(uri) > MAX_URI or _BLANK.search(uri) is not None:
        return True
    for _ in range(_DECODINGS):  # some servers decode an address more than once
        if "\0" in uri or not _STEPS.isdisjoint(_PARTS.split(uri)):
            return True
        plain = unquote(uri, errors="replace")
        if plain == uri:
            return False
        uri = plain
    return True


def _spec(name: str, description: str) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=description,
        input_schema={
            "type": "object",
            "properties": {"uri": {"type": "string"}},
            "required": ["uri"],
            "additionalProperties": False,
        },
        output_schema={},
        annotations=Annotations(readonly=True),
        source=SOURCE,
    )


_SPEC = _spec(READ_RESOURCE, "Read a resource of an MCP server.")
_WATCHING = _spec(SUBSCRIBE, "Hear of changes of a resource of an MCP server.")
