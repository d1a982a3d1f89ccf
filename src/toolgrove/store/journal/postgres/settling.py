"""Approvals that a call used up: they are so in the transaction that keeps its record, or not at all."""

from __future__ import annotations

from collections.abc import Iterable

from toolgrove.store.audit import AuditRecord
from toolgrove.store.journal.tables.connection import Connection

_USED = "UPDATE approvals SET state = 'used' WHERE id = ? AND call_id = ? AND state = 'claimed'"


def settle_used(connection: Connection, records: Iterable[AuditRecord]) -> None:
    """Settle what calls that have ended claimed, in the open transaction; one that stands is claimed by nobody."""
    for record in records:
        if record.approval is not None and record.outcome != "begun":
            connection.execute(_USED, (record.approval.id, record.call_id))
