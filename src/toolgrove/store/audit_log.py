"""Reading the audit records back: by agent, tool, outcome and time, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolgrove.store.audit import Breach, Outcome


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditQuery:
    """Which records, and from which end; `since` is a timestamp as the records carry it.

    `after` is the number where a page ended, `before` the same where the newest come first.
    """

    agent: str | None = None
    tool: str | None = None
    outcome: Outcome | None = None
    since: str | None = None
    after: int = 0
    before: int | None = None
    newest: bool = False
    limit: int = 100

    def wants(self, record: dict[str, Any]) -> bool:
        """Whether a record belongs to the answer."""
        return (
            record["number"] > self.after
            and (self.before is None or record["number"] < self.before)
            and self.agent in (None, record["agent"])
            and self.tool in (None, record["operation"])
            and self.outcome in (None, record["outcome"])
            and (self.since is None or record["timestamp"] >= self.since)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditPage:
    """Records in the order asked for; `next` is the `after` of the page behind this one, or its `before`."""

    records: Sequence[dict[str, Any]]
    next: int | None = None

    @classmethod
    def cut(cls, found: Sequence[dict[str, Any]], limit: int) -> AuditPage:
        """The first of the found records, given one more than fits if there is one."""
        page = found[:limit]
        return cls(records=page, next=page[-1]["number"] if len(found) > limit else None)


class AuditLog(Protocol):
    """The records that are kept."""

    async def records(self, query: AuditQuery) -> AuditPage: ...

    async def verify(self) -> Breach | None: ...
