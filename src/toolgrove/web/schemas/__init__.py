"""What the HTTP API takes and answers; its reference and the console's types are written from these.

A body is a pydantic model, since a stranger sent it. An answer is a dataclass, since there is nothing to validate in
what is ours; pydantic describes it and writes it.

- ``access``: changes of what an agent may use, and tokens
- ``agents``: what an agent asks for: its receipt, its tools for OpenAI-style APIs, and a run
- ``approvals``: approvals, and a person's decision about one
- ``audit``: the audit log: its records, a page of them, and what a check of the whole found
- ``calls``: one call with all that is known about it, and one run
- ``json_object``: what all of them have in common, and what a failure says
- ``logins``: logins to MCP servers, made in a browser
- ``manual``: the documentation
- ``overview``: the project at a glance
- ``pins``: pinned definitions, and a person's decision about one
- ``pool``: sources, their tools, and those that were turned down
- ``sources``: sources as the operator looks at them
"""

from __future__ import annotations

from toolgrove.web.schemas.access import (
    AccessChange,
    AccessEffect,
    AccessPreview,
    AccessUndo,
    AccessWish,
    AccessWritten,
    NewToken,
    RevokedToken,
    TokenList,
    TokenSummary,
    TokenWish,
)
from toolgrove.web.schemas.agents import MAX_CALLS, OpenAiFunction, OpenAiTool, Receipt, Run, RunCall, Verdict
from toolgrove.web.schemas.approvals import Approval, ApprovalList, Decision, EarlierCall, OutgoingRequest
from toolgrove.web.schemas.audit import AuditPage, AuditRecord, Breach, Break, UsedApproval, Verification
from toolgrove.web.schemas.calls import Access, Call, RunList, RunStory, RunSummary, TreeChange
from toolgrove.web.schemas.json_object import Answer, Body, ErrorCode, ErrorFacts, Failure
from toolgrove.web.schemas.logins import LoginQuestion
from toolgrove.web.schemas.manual import ManualContents, ManualEntry, ManualPage
from toolgrove.web.schemas.overview import (
    AgentSummary,
    FileProblem,
    Health,
    Project,
    Ready,
    Traffic,
    TrafficMinute,
    TroubleWord,
)
from toolgrove.web.schemas.pins import Pin, PinDecision, PinList
from toolgrove.web.schemas.pool import Pool, PoolTool, RejectedTool, Source, SourceOverview
from toolgrove.web.schemas.sources import Figures, SourceAgent, SourceList, SourceStatus, SourceTool, SourceView

__all__ = [
    "MAX_CALLS",
    "Access",
    "AccessChange",
    "AccessEffect",
    "AccessPreview",
    "AccessUndo",
    "AccessWish",
    "AccessWritten",
    "AgentSummary",
    "Answer",
    "Approval",
    "ApprovalList",
    "AuditPage",
    "AuditRecord",
    "Body",
    "Breach",
    "Break",
    "Call",
    "Decision",
    "EarlierCall",
    "ErrorCode",
    "ErrorFacts",
    "Failure",
    "Figures",
    "FileProblem",
    "Health",
    "LoginQuestion",
    "ManualContents",
    "ManualEntry",
    "ManualPage",
    "NewToken",
    "OpenAiFunction",
    "OpenAiTool",
    "OutgoingRequest",
    "Pin",
    "PinDecision",
    "PinList",
    "Pool",
    "PoolTool",
    "Project",
    "Ready",
    "Receipt",
    "RejectedTool",
    "RevokedToken",
    "Run",
    "RunCall",
    "RunList",
    "RunStory",
    "RunSummary",
    "Source",
    "SourceAgent",
    "SourceList",
    "SourceOverview",
    "SourceStatus",
    "SourceTool",
    "SourceView",
    "TokenList",
    "TokenSummary",
    "TokenWish",
    "Traffic",
    "TrafficMinute",
    "TreeChange",
    "TroubleWord",
    "UsedApproval",
    "Verdict",
    "Verification",
]
