"""Sources for the operator: how each stands, its tools with definition and standing, who has them, and restarts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import anyio.to_thread
from starlette.requests import Request

from toolgrove.agent import Agent
from toolgrove.config import Config
from toolgrove.errors import Conflict, NotFound
from toolgrove.notation.secret_names import names_a_secret
from toolgrove.pool.definition_lint import ToolNames
from toolgrove.pool.offer import Offer, Restarting
from toolgrove.pool.snapshot import PoolSnapshot, SourceState
from toolgrove.store import state
from toolgrove.web import schemas
from toolgrove.web.project import Project
from toolgrove.web.routing import Handlers
from toolgrove.web.tool_figures import ToolFigures

_HIDDEN = "•••"
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_WAITING = ("pending", "changed")


class SourcesApi:
    """`/api/sources…`, for the operator's token only."""

    def __init__(self, project: Project, figures: ToolFigures) -> None:
        self._project, self._figures = project, figures

    def handlers(self) -> Handlers:
        """What answers each operation."""
        return {"sources": self._sources, "source": self._source, "restart_source": self._restart}

    async def _sources(self, request: Request) -> schemas.SourceList:
        snapshot = await self._project.pool.snapshot()
        return schemas.SourceList(items=self._statuses(snapshot))

    async def _source(self, request: Request) -> schemas.SourceView:
        name = request.path_params["source"]
        snapshot = await self._project.pool.snapshot()
        status = next((one for one in self._statuses(snapshot) if one.name == name), None)
        if status is None:
            raise NotFound(f"There is no source {name!r}.")
        agents = [await self._project.agent(agent) for agent in self._project.config.agents]
        offers = [offer for offer in (*snapshot.offers.values(), *snapshot.rejected) if offer.source == name]
        pins = {pin.own_name: pin for pin in self._project.pins.list() if pin.server == name}
        names = ToolNames.of(snapshot.offers.values())

        def shown() -> dict[str, schemas.Pin]:  # definitions are strangers' texts, and are compared line by line
            return {own_name: schemas.Pin.of(pin, names) for own_name, pin in pins.items()}

        seen = await anyio.to_thread.run_sync(shown)
        return schemas.SourceView(
            source=status,
            agents=[_has(agent, name) for agent in agents],
            tools=[self._tool(offer, pins.get(offer.own_name), seen.get(offer.own_name), agents) for offer in offers],
        )

    async def _restart(self, request: Request) -> schemas.SourceStatus:
        name, pool = request.path_params["source"], self._project.pool
        source = pool.source(name)
        if source is None:
            raise Conflict(f"There is no source {name!r} that could be started again.", reason="not_started")
        if isinstance(source, Restarting):
            source.restart()
        pool.invalidate(name)
        await self._project.recorder.record("configuration", "source.restarted", by="operator", targets=(name,))
        snapshot = await pool.snapshot()
        return next(one for one in self._statuses(snapshot) if one.name == name)

    def _statuses(self, snapshot: PoolSnapshot) -> list[schemas.SourceStatus]:
        config = self._project.config
        found = [self._status(one, snapshot) for one in snapshot.sources.values()]
        disabled = [
            self._status(SourceState(name=name, kind="mcp"), snapshot, disabled=True)
            for name, server in config.mcp_servers.items()
            if server.disabled
        ]
        own = dict.fromkeys(offer.source for offer in snapshot.offers.values() if offer.kind == "builtin")
        built_in = [self._status(SourceState(name=name, kind="builtin"), snapshot) for name in own]
        return [*found, *disabled, *built_in]

    def _status(self, found: SourceState, snapshot: PoolSnapshot, *, disabled: bool = False) -> schemas.SourceStatus:
        source = self._project.pool.source(found.name)
        tools = [offer.name for offer in snapshot.offers.values() if offer.source == found.name]
        waiting = [pin for pin in self._project.pins.list() if pin.server == found.name and pin.state in _WAITING]
        return schemas.SourceStatus(
            name=found.name,
            kind=found.kind,
            state="disabled" if disabled else "down" if found.problem else "up",
            problem=found.problem,
            notice=found.notice,
            takes_login=found.takes_login,
            instructions=found.instructions,
            where=self._project.secrets.scrub_text(where(self._project.config, found.name)),
            last_words=list(source.last_words) if isinstance(source, Restarting) else [],
            restarts=source is not None and not disabled,
            tools=len(tools),
            waiting=len(waiting),
            figures=self._figures.of(tools),
        )

    def _tool(
        self, offer: Offer, pin: state.Pin | None, shown: schemas.Pin | None, agents: Sequence[Agent]
    ) -> schemas.SourceTool:
        tool = offer.tool
        kept = None if pin is None else dict(pin.definition or pin.seen_definition or {})
        definition = tool.spec.listing if tool is not None else kept
        said = (definition or {}).get("description", "")
        return schemas.SourceTool(
            name=offer.name,
            own_name=offer.own_name,
            standing=offer.standing,
            reason=offer.reason,
            description=said if isinstance(said, str) else "",
            changes=None if tool is None else tool.mutates,
            approval=None if tool is None else tool.approval,
            tokens=None if tool is None else tool.spec.tokens,
            definition=definition,
            pin=shown,
            figures=self._figures.of((offer.name,)),
            access={agent.name: _standing(agent, offer.name) for agent in agents if offer.name in agent.receipt},
        )


def _standing(agent: Agent, tool: str) -> str:
    verdict = agent.receipt[tool].verdict
    return "asks" if verdict == "granted" and tool in agent.approvals else verdict


def _has(agent: Agent, source: str) -> schemas.SourceAgent:
    return schemas.SourceAgent(
        name=agent.name,
        tools=sum(spec.source == source for spec in agent.granted),
        tokens=agent.receipt.cost.sources.get(source, 0),
    )


def where(config: Config, source: str) -> str:
    """The command, address or folder of a source as the file writes it; what may be a secret is only hinted at."""
    server, http = config.mcp_servers.get(source), config.http_tools.get(source)
    if server is not None:
        if server.url is not None:
            return _address(server.url)
        return shlex.join(_words([server.command or "", *server.args])).replace(f"'{_HIDDEN}'", _HIDDEN)
    if http is not None:
        if http.openapi is None:
            return f"{http.method} {_address(http.url or '')}"
        document = http.openapi.name if isinstance(http.openapi, Path) else _address(http.openapi)
        return document if http.url is None else f"{_address(http.url)}, described by {document}"
    if source == "extensions":
        return "Python modules" if config.extensions is None else str(config.extensions)
    return ""


def _words(words: Iterable[str]) -> list[str]:
    """A command line without the values of options that are named like secrets; references hold none, and stay."""
    shown: list[str] = []
    after_secret = False
    for word in words:
        option, assigned, value = _parts(word)
        secret = names_a_secret(option)
        if after_secret and not word.startswith("-"):
            shown.append(word if _REFERENCE.fullmatch(word) else _HIDDEN)
        elif secret and assigned and not _REFERENCE.fullmatch(value):
            shown.append(f"{option}={_HIDDEN}")
        else:
            shown.append(word)
        after_secret = secret and not assigned
    return shown


def _parts(word: str) -> tuple[str, str, str]:
    if word.startswith("-"):
        option, assigned, value = word.partition("=")
        return option, assigned, value
    return "", "", ""


def _address(url: str) -> str:
    """An address without the user and without the values of its query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return _HIDDEN
    place = parts.netloc.rpartition("@")[2]
    pairs = (one.partition("=") for one in parts.query.split("&") if one)
    query = "&".join(
        f"{name}={value if _REFERENCE.fullmatch(value) else _HIDDEN}" if equals else name
        for name, equals, value in pairs
    )
    return urlunsplit((parts.scheme, place, parts.path, query, ""))
