"""Approvals that a process claimed and did not live to use: what became of each is settled at the next start."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolgrove.call.inbox import Inbox
from toolgrove.store.audit import AuditLog, AuditQuery
from toolgrove.store.state import Approval

log = logging.getLogger("toolgrove.call")
_PAGE = 1_000
_OPEN = ("begun", "unknown")


async def settle_abandoned(inbox: Inbox, records: AuditLog) -> None:
    """Tell used approvals from unused ones by the journal, which keeps an effect with its record or not at all.

    A change of the tree without a record did not happen, so its approval is good again. What was sent elsewhere may
    have arrived, so that approval is spent, and its state says that nobody knows.
    """
    for approval in await inbox.abandoned():
        said = (approval.id, approval.request.agent, approval.request.tool, approval.call_id)
        if await _has_record(records, approval):
            await inbox.settle(approval, "used")
        elif approval.request.is_ours:
            await inbox.release(approval, "approved")
            log.warning("Approval %s (%s, %s) was claimed by call %s and not used; it is good again.", *said)
        else:
            await inbox.release(approval, "unknown")
            log.warning("Approval %s (%s, %s) was claimed by call %s; whether that ran is not known.", *said)


async def _has_record(records: AuditLog, approval: Approval) -> bool:
    """Whether the call that claimed the approval came to an end; its own id tells, since a clock may have been set."""
    query = AuditQuery(agent=approval.request.agent, tool=approval.request.tool, newest=True, limit=_PAGE)
    while True:
        page = await records.records(query)
        if any(_is_end(one, approval.call_id) for one in page.records):
            return True
        if page.next is None:
            return False
        query = replace(query, before=page.next)


def _is_end(record: Mapping[str, Any], call_id: str) -> bool:
    return record["callId"] == call_id and record["outcome"] not in _OPEN and record.get("kind") is None
