"""The HTTP API in one table, and the OpenAPI document written from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from toolgrove.store.approvals import State
from toolgrove.store.audit import Outcome
from toolgrove.web import forms
from toolgrove.web.answer import answer

PATH = "/api/openapi.json"
Who = Literal["everybody", "agent", "operator"]
_REF = "#/components/schemas/{model}"
_EVENTS = "text/event-stream"


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A part of the address after the question mark."""

    name: str
    meaning: str
    schema: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One method at one address. `answer` is a model, a list of one, a media type, or where it leads."""

    method: str
    path: str
    name: str
    who: Who
    summary: str
    answer: Any = None
    query: tuple[Parameter, ...] = ()
    body: type[BaseModel] | None = None
    failures: tuple[int, ...] = ()
    status: int = 200


def _text(name: str, meaning: str, *choices: str) -> Parameter:
    return Parameter(name=name, meaning=meaning, schema={"type": "string", **({"enum": choices} if choices else {})})


def _number(name: str, meaning: str, **bounds: int) -> Parameter:
    return Parameter(name=name, meaning=meaning, schema={"type": "integer", "minimum": 0, **bounds})


def _switch(name: str, meaning: str) -> Parameter:
    return Parameter(name=name, meaning=meaning, schema={"type": "string", "enum": ("1", "true")})


_AUDIT = (
    _text("agent", "Only calls of this agent."),
    _text("tool", "Only calls of this tool."),
    _text("outcome", "Only calls that ended so.", *get_args(Outcome)),
    _text("since", "Only records from this time on, such as 2026-01-31T12:00."),
    _number("after", "Only records with a larger number."),
    _number("before", "Only records with a smaller number."),
    _switch("newest", "The newest first."),
    _number("limit", "At most so many; 100 unless told.", maximum=1000),
)
_MCP = "/agents/{agent}/mcp"

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/health",
        name="health",
        who="everybody",
        summary="Whether the gateway can do its work.",
        answer=forms.Health,
        failures=(503,),
    ),
    Operation(
        method="GET",
        path="/console",
        name="console",
        who="everybody",
        summary="The console's page; what it shows it asks for with the operator's token.",
        answer="text/html",
    ),
    Operation(
        method="GET",
        path="/console/",
        name="console_folder",
        who="everybody",
        summary="The same page.",
        answer="text/html",
    ),
    Operation(method="GET", path="/", name="home", who="everybody", summary="Leads to the console.", status=307),
    Operation(
        method="GET", path=PATH, name="openapi", who="everybody", summary="This document.", answer="application/json"
    ),
    Operation(
        method="POST",
        path=_MCP,
        name="mcp",
        who="agent",
        summary="MCP over Streamable HTTP: one JSON-RPC message; the answer is JSON or an event stream.",
        answer=("application/json", _EVENTS),
        failures=(404,),
    ),
    Operation(
        method="GET",
        path=_MCP,
        name="mcp_stream",
        who="agent",
        summary="MCP: the stream of a session in the older protocol eras.",
        answer=_EVENTS,
        failures=(404, 405),
    ),
    Operation(
        method="DELETE",
        path=_MCP,
        name="mcp_end",
        who="agent",
        summary="MCP: end a session of the older protocol eras.",
        failures=(404, 405),
    ),
    Operation(
        method="GET",
        path="/agents/{agent}/openai-tools",
        name="openai_tools",
        who="agent",
        summary="The agent's tools as OpenAI tool definitions.",
        query=(
            _switch("strict", "Schemas that OpenAI's strict mode takes."),
            _switch("embedAnnotations", "Tell in the descriptions what a tool does to the world."),
        ),
        answer=list[forms.OpenAiTool],
        failures=(404,),
    ),
    Operation(
        method="GET",
        path="/agents/{agent}/receipt",
        name="receipt",
        who="agent",
        summary="Why the agent has each tool of the pool, or has not.",
        answer=forms.ReceiptForm,
        failures=(404,),
    ),
    Operation(
        method="POST",
        path="/agents/{agent}/runs",
        name="run",
        who="agent",
        summary="Make calls one after the other; the events are tool_started, tool_progress, tool_succeeded, "
        "tool_failed, and run_finished at the end.",
        body=forms.RunForm,
        answer=_EVENTS,
        failures=(400, 404, 415),
    ),
    Operation(
        method="GET",
        path="/api/project",
        name="project",
        who="operator",
        summary="The project at a glance.",
        answer=forms.ProjectForm,
    ),
    Operation(
        method="GET",
        path="/api/pool",
        name="pool",
        who="operator",
        summary="Every tool of every source, with its standing.",
        answer=forms.PoolForm,
    ),
    Operation(
        method="GET",
        path="/api/events",
        name="events",
        who="operator",
        summary="What happens, as it happens: watching, heartbeat, events_lost, tool_succeeded, tool_failed, "
        "tree_changed, pool_changed, approval_requested, approval_decided.",
        answer=_EVENTS,
    ),
    Operation(
        method="GET",
        path="/api/approvals",
        name="approvals",
        who="operator",
        summary="Calls that wait for a person, or waited.",
        query=(_text("state", "Only those in this state.", *get_args(State)),),
        answer=forms.ApprovalList,
        failures=(400,),
    ),
    Operation(
        method="GET",
        path="/api/approvals/{id}",
        name="approval",
        who="operator",
        summary="One of them.",
        answer=forms.ApprovalForm,
        failures=(404,),
    ),
    Operation(
        method="POST",
        path="/api/approvals/{id}",
        name="decide",
        who="operator",
        summary="Approve or reject a call that waits. An approval holds for that agent, those arguments and that "
        "definition, once.",
        body=forms.Decision,
        answer=forms.ApprovalForm,
        failures=(400, 404, 409, 415),
    ),
    Operation(
        method="GET",
        path="/api/pins",
        name="pins",
        who="operator",
        summary="The pinned definitions of MCP tools, and what changed.",
        answer=forms.PinList,
    ),
    Operation(
        method="POST",
        path="/api/pins/{server}/{tool}",
        name="accept",
        who="operator",
        summary="Take a changed definition: exactly the one that was looked at.",
        body=forms.Acceptance,
        answer=forms.PinForm,
        failures=(400, 404, 409, 415),
    ),
    Operation(
        method="GET",
        path="/api/audit",
        name="audit",
        who="operator",
        summary="The audit log, a page at a time.",
        query=_AUDIT,
        answer=forms.AuditList,
        failures=(400,),
    ),
    Operation(
        method="GET",
        path="/api/audit/verify",
        name="verify",
        who="operator",
        summary="Whether the log is as it was written, record by record.",
        answer=forms.Verification,
    ),
    Operation(
        method="GET",
        path="/api/audit/export",
        name="export",
        who="operator",
        summary="The log as a file: JSON Lines, or CSV that a spreadsheet reads as text.",
        query=(
            _text("format", "jsonl unless told.", "jsonl", "csv"),
            *_AUDIT[:-1],
            _number("limit", "At most so many; all unless told."),
        ),
        answer=("application/jsonl", "text/csv"),
        failures=(400,),
    ),
    Operation(
        method="GET",
        path="/metrics",
        name="metrics",
        who="operator",
        summary="Counters and durations for Prometheus.",
        answer="text/plain",
    ),
)
_MEANING = {
    400: "The request is wrong: fix it and retry.",
    401: "No token, or a void one.",
    403: "This token may not.",
    404: "There is no such thing, or it is not this token's.",
    405: "Not in this protocol era.",
    409: "Somebody was faster, or it has changed: read it again.",
    415: "The body is not application/json.",
    503: "What agents do cannot be kept.",
}


def openapi_routes() -> list[BaseRoute]:
    """`/api/openapi.json`: it holds nothing that the documentation does not."""

    async def show(request: Request) -> Response:
        return answer(document())

    return [Route(PATH, show)]


@cache
def document() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Toolgrove gateway",
            "version": "1",
            "description": "Every agent of a project at its own address, and what the person needs who answers "
            "for them. Errors have the shape of Failure.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An agent's token opens that agent's addresses; the operator's opens all.",
                }
            },
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    open_to_all = operation.who == "everybody"
    form: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.who],
        "parameters": [*_in_path(operation.path), *map(_in_query, operation.query)],
        "responses": {str(operation.status): _success(operation), **_refusals(operation)},
    }
    if open_to_all:
        form["security"] = []
    if operation.body is not None:
        form["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _reference(operation.body)}},
        }
    return form


def _in_path(path: str) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _in_query(parameter: Parameter) -> dict[str, Any]:
    return {"name": parameter.name, "in": "query", "description": parameter.meaning, "schema": parameter.schema}


def _success(operation: Operation) -> dict[str, Any]:
    given = operation.answer
    if given is None:
        return {"description": "Done." if operation.status == 200 else "Elsewhere."}
    if isinstance(given, str | tuple):
        media = (given,) if isinstance(given, str) else given
        return {"description": "The answer.", "content": {kind: {} for kind in media}}
    return {"description": "The answer.", "content": {"application/json": {"schema": _reference(given)}}}


def _refusals(operation: Operation) -> dict[str, Any]:
    by_token = {"everybody": (), "agent": (401,), "operator": (401, 403)}[operation.who]
    found: dict[str, Any] = {}
    for status in sorted({*operation.failures, *by_token}):
        model = forms.Health if status == 503 else forms.Failure
        content = {"application/json": {"schema": _reference(model)}}
        found[str(status)] = {"description": _MEANING[status], "content": content}
    return found


def _reference(given: Any) -> dict[str, Any]:
    if isinstance(given, type) and issubclass(given, BaseModel):
        return {"$ref": _REF.format(model=given.__name__)}
    schema: dict[str, Any] = TypeAdapter(given).json_schema(ref_template=_REF)
    schema.pop("$defs", None)
    return schema


def _schemas() -> dict[str, Any]:
    models = [one for one in vars(forms).values() if isinstance(one, type) and issubclass(one, BaseModel)]
    wanted = [(model, "validation") for model in models if model not in (BaseModel, forms.Form)]
    _, whole = models_json_schema(wanted, ref_template=_REF)  # type: ignore[arg-type]
    schemas: dict[str, Any] = whole["$defs"]
    return schemas
