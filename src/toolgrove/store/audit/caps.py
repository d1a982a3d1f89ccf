"""How long each part of a record may be, so that nobody can fill a disk with a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgrove.errors import MESSAGE, NAME, brief
from toolgrove.notation.json_value import compact
from toolgrove.store.audit.record import AuditRecord

TARGETS = FACTS = 20
"""How many values a list in a record has at most."""
_NAMES = ("call_id", "agent", "session", "operation", "version", "idempotency_key", "receipt", "by")
_PROSE = frozenset(("message", "hint", "problem"))


def capped(record: AuditRecord) -> AuditRecord:
    """The record with every part within its cap; one that fits is left as it is."""
    if _fits(record):
        return record
    cut: dict[str, Any] = {}
    for name in _NAMES:
        value = getattr(record, name)
        if value is not None and len(value) > NAME:
            cut[name] = brief(value, NAME)
    targets = record.targets
    if targets and (len(targets) > TARGETS or max(map(len, targets)) > NAME):
        cut["targets"] = tuple(brief(target, NAME) for target in targets[:TARGETS])
    for name in ("error", "details"):
        facts: Mapping[str, Any] | None = getattr(record, name)
        if facts is not None:
            cut[name] = {brief(key, NAME): _fact(key, value) for key, value in facts.items()}
    if record.approval is not None and len(record.approval.by) > NAME:
        cut["approval"] = record.approval._replace(by=brief(record.approval.by, NAME))
    return record._replace(**cut)


def _fits(record: AuditRecord) -> bool:
    """Whether it is the plain record of a call, whose other names are our own; most are, and this must be quick."""
    return (
        record.error is None
        and record.kind == "call"
        and len(record.operation) <= NAME
        and len(record.session) <= NAME
        and record.approval is None
        and record.idempotency_key is None
        and (not record.targets or (len(record.targets) <= TARGETS and max(map(len, record.targets)) <= NAME))
    )


def _fact(name: str, value: Any) -> Any:
    """A fact is a text, a number or a list of such; what is more becomes its own text."""
    if isinstance(value, str):
        return brief(value, MESSAGE if name in _PROSE else NAME)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple):
        return [_fact("", one) for one in value[:TARGETS]]
    return brief(compact(value, default=str), NAME)
