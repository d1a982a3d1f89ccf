"""The HTTP API in one table: what is routed, what is open to everybody, and what the reference says, come from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import BaseModel

from toolgrove.store.audit import Kind, Outcome
from toolgrove.store.state import ApprovalState
from toolgrove.web import schemas
from toolgrove.web.open_addresses import CALLBACK

Who = Literal["everybody", "agent", "operator"]
MAX_RECORDS = 1_000
_EVENTS = "text/event-stream"


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A part of the address after the question mark."""

    name: str
    meaning: str
    schema: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One method at one address. `answer` is what a success holds: a type, or the media types of what is not JSON."""

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
    _text("toolPart", "Only calls of tools whose names have this in them."),
    _text("outcome", "Only calls that ended so.", *get_args(Outcome)),
    _text("kind", "Only records of this kind.", *get_args(Kind)),
    _text("since", "Only records from this time on, such as 2026-01-31T12:00."),
    _text("until", "Only records from before this time."),
    _text("text", "Only records with this anywhere in them, in arguments and results too."),
    _text("call", "Only records of the call with this id."),
    _text("run", "Only records of the run with this id."),
    _number("after", "Only records with a larger number."),
    _number("before", "Only records with a smaller number."),
    _switch("newest", "The newest first."),
    _number("limit", "At most so many; 100 unless told.", maximum=MAX_RECORDS),
)
_MCP = "/agents/{agent}/mcp"

OPERATIONS: tuple[Operation, ...] = (
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
            _switch("strict", "Schemas that OpenAI's strict mode takes; a tool that it cannot say has strict: false."),
            _switch("embedAnnotations", "Tell in the descriptions what a tool does to the world."),
        ),
        answer=list[schemas.OpenAiTool],
        failures=(404,),
    ),
    Operation(
        method="GET",
        path="/agents/{agent}/receipt",
        name="receipt",
        who="agent",
        summary="Why the agent does or doesn't have each tool of the pool. With its own token, an agent sees only "
        "the tools that it has, and those that its role blocks.",
        answer=schemas.Receipt,
        failures=(404,),
    ),
    Operation(
        method="POST",
        path="/agents/{agent}/runs",
        name="run",
        who="agent",
        summary="Make calls one after the other, or have the agent's model work on a task (input). The events are "
        "tool_started, tool_progress, tool_succeeded, tool_failed, and run_finished at the end. A tool_failed has "
        "error, and result too where a tool of an MCP server says itself that it failed. Those of sub-agents, at any "
        "depth, are among them, without their results: each event has agent, depth, chain and runId, one of a "
        "sub-agent parentCallId as well. A sub-agent that does not exist, or fails, is a tool_failed. A model adds "
        "text; where a person must approve a call, its run waits, with approval_requested and approval_decided. "
        "run_finished has outcome, toolCalls and seconds, and counts the calls of sub-agents under delegated; of a "
        "model it has usage as well, and output or error. Whoever reads too slowly gets events_lost with a count.",
        body=schemas.Run,
        answer=_EVENTS,
        failures=(400, 404, 415),
    ),
    Operation(
        method="GET",
        path="/health",
        name="health",
        who="everybody",
        summary="Whether the gateway lives; it says so itself where it cannot do all of its work.",
        answer=schemas.Health,
    ),
    Operation(
        method="GET",
        path="/ready",
        name="ready",
        who="everybody",
        summary="Whether the gateway can do its work now, for whoever sends it clients: 200, or 503 with the reasons.",
        answer=schemas.Ready,
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
        method="GET",
        path="/api/openapi.json",
        name="openapi",
        who="everybody",
        summary="This document.",
        answer="application/json",
    ),
    Operation(
        method="GET",
        path="/api/project",
        name="project",
        who="operator",
        summary="The project at a glance.",
        answer=schemas.Project,
    ),
    Operation(
        method="GET",
        path="/api/pool",
        name="pool",
        who="operator",
        summary="Every tool of every source, with its standing.",
        answer=schemas.Pool,
    ),
    Operation(
        method="GET",
        path="/api/traffic",
        name="traffic",
        who="operator",
        summary="How many calls each minute of the last day had, how they ended, and how long they took.",
        query=(_text("agent", "Only calls of this agent."),),
        answer=schemas.Traffic,
    ),
    Operation(
        method="GET",
        path="/api/sources",
        name="sources",
        who="operator",
        summary="Where tools come from: how each source stands, what it last said, and how its tools do.",
        answer=schemas.SourceList,
    ),
    Operation(
        method="GET",
        path="/api/sources/{source}",
        name="source",
        who="operator",
        summary="One source: its tools with definition and standing, and which agents have which.",
        answer=schemas.SourceView,
        failures=(404,),
    ),
    Operation(
        method="POST",
        path="/api/sources/{source}/restart",
        name="restart_source",
        who="operator",
        summary="Start a server again, or ask a source again what it offers. Calls to it that are under way fail.",
        answer=schemas.SourceStatus,
        failures=(409,),
    ),
    Operation(
        method="GET",
        path="/api/docs",
        name="manual",
        who="operator",
        summary="The pages of the documentation of this version.",
        answer=schemas.ManualContents,
    ),
    Operation(
        method="GET",
        path="/api/docs/{page}",
        name="manual_page",
        who="operator",
        summary="One page of the documentation, as Markdown.",
        answer=schemas.ManualPage,
        failures=(404,),
    ),
    Operation(
        method="POST",
        path="/api/access/preview",
        name="preview_access",
        who="operator",
        summary="What would be written into the project file so that an agent has a tool, asks before each call, or "
        "does not see it. Only access keys of that agent are changed; nothing is written.",
        body=schemas.AccessWish,
        answer=schemas.AccessPreview,
        failures=(400, 404, 409, 415),
    ),
    Operation(
        method="POST",
        path="/api/access",
        name="change_access",
        who="operator",
        summary="Write that into the project file, if it is still the one of the preview, and take it at once.",
        body=schemas.AccessChange,
        answer=schemas.AccessWritten,
        failures=(400, 404, 409, 415),
    ),
    Operation(
        method="POST",
        path="/api/access/undo",
        name="undo_access",
        who="operator",
        summary="Put back the project file as it was before a change, if nobody has changed it since.",
        body=schemas.AccessUndo,
        answer=schemas.AccessWritten,
        failures=(400, 404, 409, 415),
    ),
    Operation(
        method="GET",
        path="/api/tokens",
        name="tokens",
        who="operator",
        summary="Who has tokens; the tokens themselves are never shown again.",
        answer=schemas.TokenList,
    ),
    Operation(
        method="POST",
        path="/api/tokens",
        name="new_token",
        who="operator",
        summary="Make a token of an agent, shown this once; its others stay good.",
        body=schemas.TokenWish,
        answer=schemas.NewToken,
        failures=(400, 404, 415),
    ),
    Operation(
        method="DELETE",
        path="/api/tokens/{id}",
        name="revoke_token",
        who="operator",
        summary="Revoke a token; not the one that the request itself uses.",
        answer=schemas.RevokedToken,
        failures=(404, 409),
    ),
    Operation(
        method="GET",
        path="/api/calls/{id}",
        name="call",
        who="operator",
        summary="One call: its record, the approval that it used or waits for, what it changed in the tree with the "
        "names of the nodes, which rule gives the agent the tool, and the calls of agents that worked for it.",
        answer=schemas.Call,
        failures=(404,),
    ),
    Operation(
        method="GET",
        path="/api/runs",
        name="runs",
        who="operator",
        summary="The latest runs of this process, the newest first.",
        answer=schemas.RunList,
    ),
    Operation(
        method="GET",
        path="/api/runs/{id}",
        name="run_story",
        who="operator",
        summary="What happened in one run so far, without results. Of a run that is not in memory any more, and of "
        "what sub-agents did for a call, the calls in the audit log.",
        answer=schemas.RunStory,
        failures=(404,),
    ),
    Operation(
        method="GET",
        path="/api/events",
        name="events",
        who="operator",
        summary="What happens, as it happens: watching, heartbeat, events_lost, tool_succeeded, tool_failed, "
        "tree_changed, pool_changed, configuration_read, approval_requested, approval_decided, approval_revoked.",
        answer=_EVENTS,
    ),
    Operation(
        method="GET",
        path="/api/approvals",
        name="approvals",
        who="operator",
        summary="Calls that wait for a person, or waited.",
        query=(_text("state", "Only those in this state.", *get_args(ApprovalState)),),
        answer=schemas.ApprovalList,
        failures=(400,),
    ),
    Operation(
        method="GET",
        path="/api/approvals/{id}",
        name="approval",
        who="operator",
        summary="One approval, by its id.",
        answer=schemas.Approval,
        failures=(404,),
    ),
    Operation(
        method="POST",
        path="/api/approvals/{id}",
        name="decide",
        who="operator",
        summary="Approve or reject a call that waits. An approval holds for that agent on whoever's behalf it asked, "
        "those arguments, that definition and that effect, once; with `for`, for any arguments until it expires.",
        body=schemas.Decision,
        answer=schemas.Approval,
        failures=(400, 404, 409, 415),
    ),
    Operation(
        method="DELETE",
        path="/api/approvals/{id}",
        name="revoke",
        who="operator",
        summary="Take back an approval that is not used up.",
        answer=schemas.Approval,
        failures=(404, 409),
    ),
    Operation(
        method="GET",
        path="/api/pins",
        name="pins",
        who="operator",
        summary="The pinned definitions of MCP tools, and what waits for a person.",
        answer=schemas.PinList,
    ),
    Operation(
        method="POST",
        path="/api/pins/{server}/{tool:path}",
        name="decide_pin",
        who="operator",
        summary="Accept or refuse a definition that waits: exactly the one that was looked at.",
        body=schemas.PinDecision,
        answer=schemas.Pin,
        failures=(400, 404, 409, 415),
    ),
    Operation(
        method="POST",
        path="/api/logins/{server}",
        name="begin_login",
        who="operator",
        summary="Begin a login to an MCP server that asks for OAuth: where a person agrees to it in a browser. What "
        "the server wants besides is asked for too.",
        answer=schemas.LoginQuestion,
        failures=(400, 500),
    ),
    Operation(
        method="GET",
        path=CALLBACK,
        name="login_answer",
        who="everybody",
        summary="Where the browser comes back to with the answer; only that to a login which was begun is taken, once. "
        "Leads to the console.",
        status=303,
    ),
    Operation(
        method="GET",
        path="/api/audit",
        name="audit",
        who="operator",
        summary="The audit log, a page at a time.",
        query=_AUDIT,
        answer=schemas.AuditPage,
        failures=(400,),
    ),
    Operation(
        method="GET",
        path="/api/audit/verify",
        name="verify",
        who="operator",
        summary="Whether the log is as it was written, record by record.",
        query=(
            _switch("deep", "Whether the journal leads to the stored tree, too, and each process serves that one."),
        ),
        answer=schemas.Verification,
    ),
    Operation(
        method="GET",
        path="/api/audit/export",
        name="export",
        who="operator",
        summary="The log as a file: JSON Lines, whose last line names the public key where there is one, or CSV that a "
        "spreadsheet reads as text.",
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
