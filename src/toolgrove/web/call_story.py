"""One call, with all that the log, the inbox, the tree's history and the agent's access say about it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

from toolgrove.errors import AgentNotFound, ApprovalNotFound, NotFound
from toolgrove.store.audit import AuditQuery
from toolgrove.web import schemas
from toolgrove.web.project import Project

Record = dict[str, Any]
_MOST = 200


async def call_story(project: Project, call_id: str) -> schemas.Call:
    """What is known about a call; NotFound if the log has no such call."""
    await project.recorder.collect()
    found = (await project.audit_log.records(AuditQuery(call=call_id, kind="call", newest=True, limit=2))).records
    if not found:
        raise NotFound(
            f"The audit log has no call {call_id!r}. It may be older than what the log keeps.", reason="call"
        )
    record = found[0]
    return schemas.Call(
        record=cast(schemas.AuditRecord, record),
        begun=record["outcome"] == "begun",
        approval=await _approval(project, record),
        change=_change(project, record),
        access=await _access(project, record),
        delegated=cast(list[schemas.AuditRecord], await _delegated(project, record)),
    )


async def _approval(project: Project, record: Record) -> schemas.Approval | None:
    asked = record.get("approval", {}).get("id") or record.get("error", {}).get("approvalId")
    if asked is None:
        return None
    with suppress(ApprovalNotFound):  # they are kept for a month
        return schemas.Approval.of(await project.approvals.get(asked))
    return None


def _change(project: Project, record: Record) -> schemas.TreeChange | None:
    version = record.get("version")
    if version is None or record["outcome"] != "success":
        return None
    account = project.account_of(version, agent=record["agent"], tool=record["operation"])
    return None if account is None else schemas.TreeChange.of(account, project.secrets.scrub)


async def _access(project: Project, record: Record) -> schemas.Access | None:
    """The agent as it is now; of a sub-agent, within the bounds of those above it."""
    try:
        agent = await project.agent(record["chain"][0])
        for name in record["chain"][1:]:
            agent = await project.agent(name, within=agent.bounds)
    except AgentNotFound:
        return None
    verdict = agent.receipt.get(record["operation"])
    if verdict is None:
        return None
    return schemas.Access(
        verdict=schemas.Verdict(**verdict._asdict()),
        approval=agent.approvals.get(record["operation"]),
        same=record.get("receipt") == agent.receipt.hash,
    )


async def _delegated(project: Project, record: Record) -> list[Record]:
    if record["operation"] != "spawn_agents":
        return []
    query = AuditQuery(run=record["runId"], kind="call", limit=1_000)
    found = (await project.audit_log.records(query)).records
    return [one for one in found if one.get("parentCallId") == record["callId"] and one["outcome"] != "begun"][:_MOST]
