"""Approvals that a call uses up: what became of one is said in the transaction that keeps the call's final record.

So both agree, whoever is quicker. Another replica may take one that hangs for gone. Before a call has left, it gives
back what that one claimed, and the call comes too late. After that it closes the call, and nobody knows whether it ran.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolgrove.store.audit import AuditRecord
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.journal.tables.rows import Rows

_HELD = "SELECT 1 FROM approvals WHERE id = ? AND call_id = ? AND state IN ('claimed', 'used') FOR UPDATE"
_STANDS = "SELECT 1 FROM approvals WHERE id = ? AND body::json ->> 'lasts' IS NOT NULL"
_BECAME = "UPDATE approvals SET state = ? WHERE id = ? AND call_id = ? AND state IN ('claimed', 'used', 'unknown')"
_CLOSED = f"{_BECAME} AND state <> 'unknown' AND body::json ->> 'lasts' IS NULL RETURNING body"


def has_lost_claim(connection: Connection, rows: Rows) -> bool:
    """Whether an entry changes something, or is about to, by an approval that is no longer its call's.

    An approval that is still the call's stays so until the open transaction ends.
    """
    record, used = rows.audit, rows.audit.approval
    if used is None or (rows.effects is None and record.outcome != "begun"):
        return False
    is_held = connection.execute(_HELD, (used.id, record.call_id)).fetchone() is not None
    return not is_held and connection.execute(_STANDS, (used.id,)).fetchone() is None


def settle_ended(connection: Connection, records: Iterable[AuditRecord]) -> None:
    """Settle what calls that have ended claimed, in the open transaction; one that stands is claimed by nobody."""
    for record in records:
        if record.approval is not None and record.outcome != "begun" and record.kind == "call":
            state = "unknown" if record.outcome == "unknown" else "used"
            connection.execute(_BECAME, (state, record.approval.id, record.call_id))


def settle_closed(connection: Connection, records: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Settle what calls claimed that are closed for processes that are gone, in the open transaction; what to record
    of that."""
    for record in records:
        used = record.get("approval")
        if record["outcome"] != "unknown" or used is None:
            continue
        for (body,) in connection.execute(_CLOSED, ("unknown", used["id"], record["callId"])).fetchall():
            yield _abandoned(record, used["id"], json.loads(body)["request"]["rule"])


def _abandoned(record: Mapping[str, Any], approval: str, rule: str) -> Mapping[str, Any]:
    tool = record["operation"]
    details = {"approvalId": approval, "tool": tool, "rule": rule, "claimedBy": record["callId"], "state": "unknown"}
    return AuditRecord(
        timestamp=record["timestamp"],
        call_id="",
        agent=record["agent"],
        session="",
        operation="approval.abandoned",
        outcome="success",
        targets=(tool,),
        chain=tuple(record["chain"]),
        parent_call_id=record.get("parentCallId"),
        run_id=record["runId"],
        kind="approval",
        by="start-up",
        details=details,
    ).to_json()
