"""Approvals that a call uses up: they are so in the transaction that keeps its record, or not at all.

Another replica may take one that hangs for gone, and give back what it claimed; then its call comes too late.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolgrove.store.audit import AuditRecord
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.journal.tables.rows import Rows

_HELD = "SELECT 1 FROM approvals WHERE id = ? AND call_id = ? AND state IN ('claimed', 'used') FOR UPDATE"
_STANDS = "SELECT 1 FROM approvals WHERE id = ? AND body::json ->> 'lasts' IS NOT NULL"
_USED = "UPDATE approvals SET state = 'used' WHERE id = ? AND call_id = ? AND state = 'claimed'"


def has_lost_claim(connection: Connection, rows: Rows) -> bool:
    """Whether an entry changes something, or is about to, by an approval that is no longer its call's.

    An approval that is still the call's stays so until the open transaction ends.
    """
    record, used = rows.audit, rows.audit.approval
    if used is None or (rows.effects is None and record.outcome != "begun"):
        return False
    is_held = connection.execute(_HELD, (used.id, record.call_id)).fetchone() is not None
    return not is_held and connection.execute(_STANDS, (used.id,)).fetchone() is None


def settle_used(connection: Connection, records: Iterable[AuditRecord]) -> None:
    """Settle what calls that have ended claimed, in the open transaction; one that stands is claimed by nobody."""
    for record in records:
        if record.approval is not None and record.outcome != "begun":
            connection.execute(_USED, (record.approval.id, record.call_id))
