"""The operator's API: what the project is made of, what its agents do, and what waits for a decision."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any, get_args

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from toolgrove.errors import Forbidden, GroveError, InvalidArgument
from toolgrove.store.audit import Outcome
from toolgrove.store.audit_export import as_csv, as_lines
from toolgrove.store.audit_log import AuditPage, AuditQuery
from toolgrove.web.answer import HEADERS, answer, failure, stream
from toolgrove.web.body import json_body
from toolgrove.web.live import Live
from toolgrove.web.metrics import Metrics
from toolgrove.web.project import Project
from toolgrove.web.streams import Followed, Streams

MAX_RECORDS = 1_000
Handler = Callable[[Request], Awaitable[Response]]


class OperatorApi:
    """`/api/…` and `/metrics`, for the operator's token only. Nothing here takes a command to run."""

    def __init__(self, project: Project, live: Live, metrics: Metrics, streams: Streams) -> None:
        self._project, self._live, self._metrics, self._streams = project, live, metrics, streams

    def routes(self) -> list[BaseRoute]:
        """Every address of the operator."""
        return [
            Route("/metrics", _operator(self._exposition)),
            Route("/api/project", _operator(self._overview)),
            Route("/api/pool", _operator(self._pool)),
            Route("/api/events", _operator(self._events)),
            Route("/api/approvals", _operator(self._approvals)),
            Route("/api/approvals/{id}", _operator(self._approval)),
            Route("/api/approvals/{id}", _operator(self._decide), methods=["POST"]),
            Route("/api/pins", _operator(self._pins)),
            Route("/api/pins/{server}/{tool:path}", _operator(self._accept), methods=["POST"]),
            Route("/api/audit", _operator(self._audit)),
            Route("/api/audit/verify", _operator(self._verify)),
            Route("/api/audit/export", _operator(self._export)),
        ]

    async def _exposition(self, request: Request) -> Response:
        return Response(self._metrics.exposition(), media_type=self._metrics.media_type, headers=HEADERS)

    async def _overview(self, request: Request) -> Response:
        project = self._project
        agents = []
        for name, definition in project.config.agents.items():
            agent = await project.agent(name)
            agents.append(
                {
                    "name": name,
                    "description": definition.description,
                    "role": definition.role,
                    "readOnly": definition.read_only,
                    "tools": len(agent.tools),
                    "warnings": list(agent.receipt.warnings),
                }
            )
        snapshot = project.pool.latest
        pending = await project.approvals.list("pending")
        return answer(
            {
                "project": project.config.project,
                "revision": snapshot.revision,
                "sources": [asdict(state) for state in snapshot.sources.values()],
                "rejected": [{"name": o.name, "source": o.source, "reason": o.reason} for o in snapshot.rejected],
                "tools": len(snapshot.offers),
                "agents": agents,
                "pendingApprovals": len(pending),
                "traffic": self._metrics.traffic(),
                "healthy": project.healthy,
            }
        )

    async def _pool(self, request: Request) -> Response:
        snapshot = await self._project.pool.snapshot()
        tools = [
            {
                "name": offer.name,
                "source": offer.source,
                "kind": offer.kind,
                "standing": offer.standing,
                "reason": offer.reason,
                "description": offer.tool.spec.description if offer.tool is not None else "",
            }
            for offer in snapshot.offers.values()
        ]
        return answer({"revision": snapshot.revision, "tools": tools})

    async def _events(self, request: Request) -> Response:
        return Followed(stream(self._live.watch()), self._streams)

    async def _approvals(self, request: Request) -> Response:
        state: Any = request.query_params.get("state")
        if state not in (None, "pending", "approved", "rejected", "used", "expired"):
            raise InvalidArgument("state is one of pending, approved, rejected, used, expired.", path="state")
        return answer({"items": [one.to_json() for one in await self._project.approvals.list(state)]})

    async def _approval(self, request: Request) -> Response:
        return answer((await self._project.approvals.get(request.path_params["id"])).to_json())

    async def _decide(self, request: Request) -> Response:
        form = await _body(request, {"approve": bool, "reason": str}, required=("approve",))
        decided = await self._project.approvals.decide(
            request.path_params["id"], approve=form["approve"], by="operator", reason=form.get("reason", "")
        )
        return answer(decided.to_json())

    async def _pins(self, request: Request) -> Response:
        return answer({"items": [pin.to_json() for pin in self._project.pins.list()]})

    async def _accept(self, request: Request) -> Response:
        form = await _body(request, {"accept": str}, required=("accept",))
        server, tool = request.path_params["server"], request.path_params["tool"]
        pin = self._project.pins.accept(server, tool, form["accept"], by="operator")
        self._project.pool.invalidate(server)
        return answer(pin.to_json())

    async def _audit(self, request: Request) -> Response:
        page = await self._project.audit_log.records(_query(request, _limit(request)))
        return answer({"items": list(page.records), "next": page.next})

    async def _verify(self, request: Request) -> Response:
        breach = await self._project.audit_log.verify()
        return answer({"whole": breach is None, "breach": None if breach is None else asdict(breach)})

    async def _export(self, request: Request) -> Response:
        kind = request.query_params.get("format", "jsonl")
        if kind not in ("jsonl", "csv"):
            raise InvalidArgument("format is jsonl or csv.", path="format")
        most = _number(request.query_params.get("limit"), "limit")
        pages = self._pages(_query(request, MAX_RECORDS), sys.maxsize if most is None else most)
        if kind == "csv":
            return _file(_table(pages), "text/csv", "audit.csv")
        return _file((as_lines(page.records) async for page in pages), "application/jsonl", "audit.jsonl")

    async def _pages(self, query: AuditQuery, most: int) -> AsyncIterator[AuditPage]:
        """Page after page, so that a long log is never in memory as a whole."""
        while most > 0:
            page = await self._project.audit_log.records(replace(query, limit=min(most, query.limit)))
            yield page
            most -= len(page.records)
            if page.next is None:
                return
            query = replace(query, before=page.next) if query.newest else replace(query, after=page.next)


def _operator(handle: Handler) -> Handler:
    """Only for the operator; what goes wrong becomes an answer."""

    async def guarded(request: Request) -> Response:
        try:
            if not request.user.is_operator:
                raise Forbidden("This address is the operator's; use the operator's token.", reason="operator")
            return await handle(request)
        except GroveError as error:
            return failure(error)

    return guarded


async def _body(request: Request, fields: dict[str, type], *, required: tuple[str, ...]) -> dict[str, Any]:
    wanted = ", ".join(f"{name}: {kind.__name__}" for name, kind in fields.items())
    form = await json_body(request)
    known = isinstance(form, dict) and form.keys() <= fields.keys() and all(name in form for name in required)
    if not known or not all(isinstance(form[name], fields[name]) for name in form):
        raise InvalidArgument(f"The body must be an object with {wanted}.", reason="body")
    body: dict[str, Any] = form
    return body


def _query(request: Request, limit: int) -> AuditQuery:
    query = request.query_params
    outcome: Any = query.get("outcome")
    if outcome not in (None, *get_args(Outcome)):
        raise InvalidArgument(f"outcome is one of {', '.join(get_args(Outcome))}.", path="outcome")
    return AuditQuery(
        agent=query.get("agent"),
        tool=query.get("tool"),
        outcome=outcome,
        since=query.get("since"),
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


async def _table(pages: AsyncIterator[AuditPage]) -> AsyncIterator[str]:
    yield as_csv(())
    async for page in pages:
        yield as_csv(page.records, heading=False)


def _file(parts: AsyncIterator[str], media_type: str, name: str) -> Response:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(parts, media_type=media_type, headers=headers)
