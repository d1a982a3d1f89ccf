"""The operator's API: what the project is made of, what its agents do, and what waits for a decision."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, get_args

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from toolgrove.config import AgentConfig
from toolgrove.errors import InvalidArgument
from toolgrove.pool.definition_lint import ToolNames
from toolgrove.store.audit import AuditPage, AuditQuery, Kind, Outcome, as_csv, as_lines, naming
from toolgrove.store.state import ApprovalState
from toolgrove.web import schemas
from toolgrove.web.call_story import call_story
from toolgrove.web.exposition import Exposition
from toolgrove.web.http_json import HEADERS, body_of, stream
from toolgrove.web.live import Live
from toolgrove.web.operations import MAX_RECORDS
from toolgrove.web.project import Project
from toolgrove.web.routing import Handlers
from toolgrove.web.run_log import RunLog
from toolgrove.web.streams import FollowedResponse, Streams
from toolgrove.web.traffic import Traffic


class OperatorApi:
    """`/api/…` and `/metrics`, for the operator's token only. Nothing here takes a command to run."""

    def __init__(
        self,
        project: Project,
        live: Live,
        traffic: Traffic,
        exposition: Exposition,
        streams: Streams,
        runs: RunLog,
        version: str,
    ) -> None:
        self._project, self._live, self._counted, self._streams = project, live, traffic, streams
        self._figures, self._runs, self._version = exposition, runs, version

    def handlers(self) -> Handlers:
        """What answers each operation of the operator."""
        return {
            "metrics": self._exposition,
            "project": self._overview,
            "pool": self._pool,
            "events": self._events,
            "traffic": self._traffic,
            "call": self._call,
            "runs": self._list_runs,
            "run_story": self._run_story,
            "approvals": self._approvals,
            "approval": self._approval,
            "decide": self._decide,
            "revoke": self._revoke,
            "pins": self._pins,
            "decide_pin": self._decide_pin,
            "audit": self._audit,
            "verify": self._verify,
            "export": self._export,
        }

    async def _exposition(self, request: Request) -> Response:
        return Response(await self._figures.text(), media_type=self._figures.media_type, headers=HEADERS)

    async def _overview(self, request: Request) -> schemas.Project:
        project = self._project
        agents = [await self._summary(name, definition) for name, definition in project.config.agents.items()]
        snapshot = project.pool.latest  # after the agents, who wait for the pool
        return schemas.Project(
            project=project.config.project,
            revision=snapshot.revision,
            sources=[schemas.SourceOverview.of(state) for state in snapshot.sources.values()],
            rejected=[schemas.RejectedTool.of(offer) for offer in snapshot.rejected],
            tools=len(snapshot.offers),
            agents=agents,
            pending_approvals=len(await project.approvals.list("pending")),
            traffic=self._counted.minutes(last=60),
            healthy=project.healthy,
            troubles=list(project.troubles),
            version=self._version,
            file=project.config.file_name,
            folder=None if project.file is None else str(project.file.path.parent),
            tree=project.config.workspace.tree,
            configuration=[]
            if project.file is None
            else [schemas.FileProblem.of(one) for one in project.file.problems],
        )

    async def _summary(self, name: str, definition: AgentConfig) -> schemas.AgentSummary:
        agent = await self._project.agent(name)
        return schemas.AgentSummary(
            name=name,
            description=definition.description,
            role=definition.role,
            read_only=definition.read_only,
            tools=len(agent.granted),
            tokens_estimate=agent.receipt.cost.total,
            warnings=list(agent.receipt.warnings),
        )

    async def _pool(self, request: Request) -> schemas.Pool:
        snapshot = await self._project.pool.snapshot()
        tools = [schemas.PoolTool.of(offer) for offer in snapshot.offers.values()]
        return schemas.Pool(revision=snapshot.revision, tools=tools)

    async def _events(self, request: Request) -> Response:
        return FollowedResponse(stream(self._live.watch()), self._streams)

    async def _traffic(self, request: Request) -> schemas.Traffic:
        return schemas.Traffic(minutes=self._counted.minutes(request.query_params.get("agent")))

    async def _call(self, request: Request) -> schemas.Call:
        return await call_story(self._project, request.path_params["id"])

    async def _list_runs(self, request: Request) -> schemas.RunList:
        return self._runs.list()

    async def _run_story(self, request: Request) -> schemas.RunStory:
        return await self._runs.story(request.path_params["id"])

    async def _approvals(self, request: Request) -> schemas.ApprovalList:
        state: Any = request.query_params.get("state")
        if state not in (None, *get_args(ApprovalState)):
            raise InvalidArgument(f"state is one of {', '.join(get_args(ApprovalState))}.", path="state")
        found = await self._project.approvals.list(state)
        return schemas.ApprovalList(items=[schemas.Approval.of(approval) for approval in found])

    async def _approval(self, request: Request) -> schemas.Approval:
        return schemas.Approval.of(await self._project.approvals.get(request.path_params["id"]))

    async def _decide(self, request: Request) -> schemas.Approval:
        said = await body_of(request, schemas.Decision)
        decided = await self._project.approvals.decide(
            request.path_params["id"], approve=said.approve, by="operator", reason=said.reason, lasts=said.lasts
        )
        return schemas.Approval.of(decided)

    async def _revoke(self, request: Request) -> schemas.Approval:
        return schemas.Approval.of(await self._project.approvals.revoke(request.path_params["id"], by="operator"))

    async def _pins(self, request: Request) -> schemas.PinList:
        names, pins = self._tool_names(), self._project.pins.list()

        def shown() -> schemas.PinList:  # definitions are strangers' texts, and are compared line by line
            return schemas.PinList(items=[schemas.Pin.of(pin, names) for pin in pins])

        return await anyio.to_thread.run_sync(shown)

    async def _decide_pin(self, request: Request) -> schemas.Pin:
        said = await body_of(request, schemas.PinDecision)
        server, tool, pins = request.path_params["server"], request.path_params["tool"], self._project.pins
        decide = pins.accept if said.accept else pins.refuse
        pin = decide(server, tool, said.accept or said.refuse, by="operator")
        self._project.pool.invalidate(server)
        return await anyio.to_thread.run_sync(schemas.Pin.of, pin, self._tool_names())

    def _tool_names(self) -> ToolNames:
        return ToolNames.of(self._project.pool.latest.offers.values())

    async def _audit(self, request: Request) -> schemas.AuditPage:
        await self._project.recorder.collect()
        return schemas.AuditPage.of(await self._project.audit_log.records(_query(request, _limit(request))))

    async def _verify(self, request: Request) -> schemas.Verification:
        return schemas.Verification.of(
            await self._project.verify(deep=request.query_params.get("deep") in ("1", "true"))
        )

    async def _export(self, request: Request) -> Response:
        kind = request.query_params.get("format", "jsonl")
        if kind not in ("jsonl", "csv"):
            raise InvalidArgument("format is jsonl or csv.", path="format")
        most = _number(request.query_params.get("limit"), "limit")
        await self._project.recorder.collect()
        pages = self._pages(_query(request, MAX_RECORDS), sys.maxsize if most is None else most)
        if kind == "csv":
            return _file(_table(pages), "text/csv", "audit.csv")
        return _file(_lines(pages, self._project.audit_key), "application/jsonl", "audit.jsonl")

    async def _pages(self, query: AuditQuery, most: int) -> AsyncIterator[AuditPage]:
        """Page after page, so that a long log is never in memory as a whole."""
        while most > 0:
            page = await self._project.audit_log.records(replace(query, limit=min(most, query.limit)))
            yield page
            most -= len(page.lines)
            if page.next is None:
                return
            query = replace(query, before=page.next) if query.newest else replace(query, after=page.next)


def _query(request: Request, limit: int) -> AuditQuery:
    query = request.query_params
    outcome: Any = query.get("outcome")
    if outcome not in (None, *get_args(Outcome)):
        raise InvalidArgument(f"outcome is one of {', '.join(get_args(Outcome))}.", path="outcome")
    kind: Any = query.get("kind")
    if kind not in (None, *get_args(Kind)):
        raise InvalidArgument(f"kind is one of {', '.join(get_args(Kind))}.", path="kind")
    return AuditQuery(
        agent=query.get("agent"),
        tool=query.get("tool"),
        tool_part=query.get("toolPart"),
        outcome=outcome,
        kind=kind,
        since=query.get("since"),
        until=query.get("until"),
        text=query.get("text"),
        call=query.get("call"),
        run=query.get("run"),
        after=_number(query.get("after"), "after") or 0,
        before=_number(query.get("before"), "before"),
        newest=query.get("newest") in ("1", "true"),
        limit=limit,
    )


def _limit(request: Request) -> int:
    return min(_number(request.query_params.get("limit"), "limit") or 100, MAX_RECORDS)


def _number(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidArgument(f"{name} must be a number.", path=name)
    return int(text)


async def _lines(pages: AsyncIterator[AuditPage], key: str) -> AsyncIterator[str]:
    async for page in pages:
        yield as_lines(page.lines)
    if key:
        yield as_lines([naming(key)])


async def _table(pages: AsyncIterator[AuditPage]) -> AsyncIterator[str]:
    yield as_csv(())
    async for page in pages:
        yield as_csv(page.records, heading=False)


def _file(parts: AsyncIterator[str], media_type: str, name: str) -> Response:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(parts, media_type=media_type, headers=headers)
