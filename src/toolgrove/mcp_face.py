"""An agent as an MCP endpoint with exactly its tools, and what it may read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio

from mcp_serve.answer import Answer, Told
from mcp_serve.calls import Elsewhere, ToolRun, User
from mcp_serve.endpoint import Endpoint
from mcp_serve.prompts import NotGiven
from mcp_serve.resources import NotRead
from mcp_serve.table import Json, ToolEntry
from toolgrove.agent import Agent
from toolgrove.call.changed import marked
from toolgrove.errors import GroveError, PromptNotFound, ResourceNotFound
from toolgrove.notation.json_value import compact
from toolgrove.pool.prompts import PromptServer
from toolgrove.pool.resources import ResourceServer, Watch
from toolgrove.store.state import OPERATOR
from toolgrove.types import Arguments, Call, Listed, Result, ToolSpec

SESSION = "toolgrove/session"
VERSION = "toolgrove/version"
ERROR = "toolgrove/error"
MAX_SESSION = 128
PATIENCE = 0.25
"""Seconds for which a refusal by a limit is held back: a client that ignores the limit cannot crowd out others."""


def mcp_endpoint(agent: Agent, version: str) -> Endpoint:
    """An MCP server with exactly the agent's tools."""
    return McpFace(agent, version).endpoint


class McpFace:
    """An agent over MCP; a refusal of ours is an answer with `isError` that says so in its `_meta`."""

    def __init__(
        self, agent: Agent, version: str, state_key: bytes | None = None, elsewhere: Elsewhere | None = None
    ) -> None:
        self.agent = agent
        self._entries = _entries(agent)
        self._shelf = _Shelf(self)
        self._followed: dict[ResourceServer | PromptServer, Callable[[], None]] = {}
        self.endpoint = Endpoint(
            agent.name,
            version,
            self,
            self._run,
            in_place=True,
            refuse=_not_served,
            resources=self._shelf,
            prompts=_Prompter(self),
            logs=self._logs,
            page=agent.list_page,
            state_key=state_key,
            elsewhere=elsewhere,
        )
        self._follow_lists()
        self.endpoint.instruct(agent.instructions or None)

    def use(self, agent: Agent) -> None:
        """Go on with the same agent, resolved again; clients are told what changed."""
        before, self.agent = self.agent, agent
        self.endpoint.instruct(agent.instructions or None)
        if agent.tools != before.tools or agent.approvals != before.approvals:
            self._entries = _entries(agent)
        self.endpoint.list_in_pages(agent.list_page)
        if agent.tools != before.tools:
            self.endpoint.changed("tools")
        if agent.resources != before.resources:
            self._shelf.keep()
            self.endpoint.changed("resources")
        if agent.prompts != before.prompts:
            self.endpoint.changed("prompts")
        self._follow_lists()

    def _logs(self) -> bool:
        """Whether the agent has a tool of a server, whose log may be passed on."""
        return any(spec.as_given is not None for spec in self.agent.granted)

    def close(self) -> None:
        """Hear of no more changes at servers."""
        for end in self._followed.values():
            end()
        self._followed = {}

    def _follow_lists(self) -> None:
        """Hear of changed lists of those servers that the agent has something of."""
        servers: set[ResourceServer | PromptServer] = {*self.agent.resources.servers, *self.agent.prompts.servers}
        for gone in self._followed.keys() - servers:
            self._followed.pop(gone)()
        for server in servers - self._followed.keys():
            self._followed[server] = server.follow(partial(self._list_changed, server))

    def _list_changed(self, server: ResourceServer | PromptServer, what: Listed) -> None:
        has = self.agent.resources.servers if what == "resources" else self.agent.prompts.servers
        if server in has:
            self.endpoint.changed(what)

    def entries(self) -> Mapping[str, ToolEntry]:
        """What `tools/list` shows."""
        return self._entries

    def entry(self, name: str) -> ToolEntry | None:
        return self._entries.get(name)

    async def _run(self, tool: str, arguments: Arguments | None, run: ToolRun) -> Answer:
        meta = run.channel.meta or {}
        agent = self.agent_for(run.user, meta)
        call = agent.begin(tool, arguments, run)
        call.for_model = True
        call.at_least = _known_version(meta)
        if run.channel.wants_chunks and (run.user is None or run.user.id == agent.name):
            call.patience = agent.hold  # an operator who acts for the agent is the person who is asked
        result = await agent.send(call)
        if call.error is not None:
            await _pause(call.error)
        answer = marked(call, _answer(call, result))
        return answer if run.channel.modern else _for_older_clients(answer)

    def agent_for(self, user: User | None, meta: Mapping[str, Any]) -> Agent:
        """The agent in the session that a request is part of."""
        session = session_of(self.agent.name, None if user is None else user.id, meta.get(SESSION))
        return self.agent if session is None else self.agent.in_session(session)


class _Shelf:
    """What the agent of a face may read."""

    def __init__(self, face: McpFace) -> None:
        self._face = face
        self._watches: set[Watch] = set()

    @property
    def offered(self) -> bool:
        return self._face.agent.resources.offered

    watchable = offered

    async def listed(self) -> list[Json]:
        return await self._face.agent.resources.listed()

    async def templates(self) -> list[Json]:
        return await self._face.agent.resources.templates()

    async def read(self, uri: str, user: User | None, meta: Mapping[str, Any]) -> Json:
        agent = self._face.agent_for(user, meta)
        call = agent.begin_reading(uri)
        call.at_least = _known_version(meta)
        result = await _patiently(agent, call)
        if call.error is None:
            return agent.resources.contents(uri, call, marked(call, result))
        if call.error["code"] == ResourceNotFound.code:
            raise NotRead
        raise NotRead(call.error["message"], {ERROR: result["error"]})

    async def watch(
        self, uri: str, tell: Callable[[], None], user: User | None, meta: Mapping[str, Any]
    ) -> Callable[[], None]:
        agent, watch = self._face.agent_for(user, meta), Watch(uri, tell)
        call = agent.begin_watching(watch)
        result = await _patiently(agent, call)
        if call.error is None:
            self._watches.add(watch)
            self._keep(watch)  # what is granted may be another meanwhile
            return partial(self._end, watch)
        if call.error["code"] == ResourceNotFound.code:
            raise NotRead
        raise NotRead(call.error["message"], {ERROR: result["error"]})

    def keep(self) -> None:
        """Go on with what is still granted; what is not is watched no more."""
        for watch in list(self._watches):
            self._keep(watch)

    def _keep(self, watch: Watch) -> None:
        if not self._face.agent.resources.keep(watch):
            self._watches.discard(watch)

    def _end(self, watch: Watch) -> None:
        self._watches.discard(watch)
        watch.end()


class _Prompter:
    """The prompts that the agent of a face is given."""

    def __init__(self, face: McpFace) -> None:
        self._face = face

    @property
    def offered(self) -> bool:
        return self._face.agent.prompts.offered

    @property
    def completes(self) -> bool:
        return self.offered or bool(self._face.agent.resources.servers)

    async def listed(self) -> list[Json]:
        return await self._face.agent.prompts.listed()

    async def get(self, name: str, arguments: Mapping[str, str], user: User | None, meta: Mapping[str, Any]) -> Json:
        agent = self._face.agent_for(user, meta)
        return await self._answered(agent, agent.begin_getting(name, arguments))

    async def complete(self, asked: Json, user: User | None, meta: Mapping[str, Any]) -> Json:
        agent = self._face.agent_for(user, meta)
        return await self._answered(agent, agent.begin_completing(asked))

    async def _answered(self, agent: Agent, call: Call) -> Json:
        result = await _patiently(agent, call)
        if call.error is None:
            return marked(call, result)
        if call.error["code"] == PromptNotFound.code:
            raise NotGiven
        raise NotGiven(call.error["message"], {ERROR: result["error"]})


async def _patiently(agent: Agent, call: Call) -> Result:
    result = await agent.send(call)
    if call.error is not None:
        await _pause(call.error)
    return result


async def _pause(error: Mapping[str, Any]) -> None:
    """Hold a refusal by a limit back for a moment."""
    if isinstance(wait := error.get("retryAfter"), float):
        await anyio.sleep(min(wait, PATIENCE))


def session_of(agent: str, caller: str | None, wanted: object = None) -> str | None:
    """The session of a request: the one it names, and never the agent's own where somebody else acts for it."""
    named = wanted if isinstance(wanted, str) and 0 < len(wanted) <= MAX_SESSION else None
    if caller is None or caller == agent:
        return None if named is not None and named.startswith(OPERATOR) else named  # no agent passes for a person
    return caller if named is None else f"{caller}/{named}"


def _known_version(meta: Mapping[str, Any]) -> str | None:
    version = meta.get(VERSION)
    return version if isinstance(version, str) else None


def _answer(call: Call, result: Result) -> dict[str, Any]:
    if call.error is not None and not call.failed_by_itself:
        return _refusal(call, result)
    if call.tool is not None and call.tool.kind == "mcp":
        return result
    text = call.text_of(result) if call.shortened is None else None
    if text is not None and "\\u" not in text:  # an escaped character costs a model more than it does as it is
        return Told(result, text)
    content = _text(result) if call.shortened is None else [{"type": "text", "text": call.shortened.text}]
    return {"content": content, "structuredContent": result, "isError": False}


def _refusal(call: Call, result: Result) -> dict[str, Any]:
    """Our own word, not the tool's. Some clients hold what is structured against the output schema, errors too."""
    answer = {"content": _text(result), "isError": True, "_meta": {ERROR: result["error"]}}
    promised = call.tool is not None and call.tool.spec.output_schema
    return answer if promised else {**answer, "structuredContent": result}


def _not_served(text: str) -> dict[str, Any]:
    """What the endpoint refuses before a call reaches the agent, or when it ends under way."""
    result = GroveError(text, reason="not_served").to_json()
    return {"content": _text(result), "isError": True, "_meta": {ERROR: result["error"]}}


def _text(value: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": compact(value)}]


def _for_older_clients(answer: dict[str, Any]) -> dict[str, Any]:
    """Before 2026-07-28 only an object can be structured; any other value is left to the text."""
    if isinstance(answer.get("structuredContent", {}), dict):
        return answer
    plain = {key: value for key, value in answer.items() if key != "structuredContent"}
    return plain if plain["content"] else {**plain, "content": _text(answer["structuredContent"])}


def _entries(agent: Agent) -> dict[str, ToolEntry]:
    return {spec.name: _entry(spec, may_speak=agent.may_speak(spec.name)) for spec in agent.tools}


def _entry(spec: ToolSpec, *, may_speak: bool) -> ToolEntry:
    return ToolEntry(tool=spec, wire=spec.listing, may_speak=may_speak)
