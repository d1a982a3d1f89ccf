"""Reading the audit records back: by kind, agent, tool, outcome and time, page by page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Protocol, runtime_checkable

from toolgrove.notation.json_value import compact
from toolgrove.store.audit.chain import Place
from toolgrove.store.audit.proof import Proof, Served, TreeProof
from toolgrove.store.audit.record import Kind, Outcome

_LOWER = {ord(letter): letter.lower() for letter in ascii_uppercase}
PAGE = 8 * 1024 * 1024
"""How many bytes a page may have before it ends early; one record always fits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditQuery:
    """Which records, and from which end; `since` and `until` are timestamps as the records carry them.

    `tool_part` is a part of a tool's name, and `text` a part of a record or of what the call was given or answered;
    small and capital letters of ASCII are alike in both. `call` and `run` are ids.

    `after` is the number where a page ended, `before` the same where the newest come first.
    """

    agent: str | None = None
    tool: str | None = None
    tool_part: str | None = None
    outcome: Outcome | None = None
    kind: Kind | None = None
    since: str | None = None
    until: str | None = None
    text: str | None = None
    call: str | None = None
    run: str | None = None
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
            and self.kind in (None, record.get("kind", "call"))
            and (self.since is None or record["timestamp"] >= self.since)
            and (self.until is None or record["timestamp"] < self.until)
            and self.call in (None, record.get("callId"))
            and self.run in (None, record.get("runId"))
            and (self.tool_part is None or _lower(self.tool_part) in _lower(record["operation"]))
            and (self.text is None or _lower(as_written(self.text)) in _lower(compact(record, ascii=True)))
        )


def as_written(text: str) -> str:
    """A text as it stands inside of a record."""
    return compact(text, ascii=True)[1:-1]


def _lower(text: str) -> str:
    """Without capital letters of ASCII, as SQLite compares."""
    return text.translate(_LOWER)


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditPage:
    """Records in the order asked for, with their bodies, to the letter as the log holds them.

    `next` is the `after` of the page behind this one, or its `before`.
    """

    lines: Sequence[str]
    next: int | None = None

    @classmethod
    def of(cls, found: Iterable[str], limit: int) -> AuditPage:
        """The first of the found records."""
        lines: list[str] = []
        size = 0
        for line in found:
            if lines and (len(lines) == limit or size + len(line) > PAGE):
                return cls(lines=lines, next=json.loads(lines[-1])["number"])
            lines.append(line)
            size += len(line)
        return cls(lines=lines)

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records as JSON."""
        return [json.loads(line) for line in self.lines]


@runtime_checkable
class SealedStore(Protocol):
    """A store that says which key signs its audit log."""

    def sealed_by(self) -> str:
        """The public half of that key; empty where it says none."""
        ...


@runtime_checkable
class ReplayedStore(Protocol):
    """A store whose journal can be replayed against its tree."""

    async def replay(self, served: Sequence[Served] = ()) -> TreeProof:
        """What that shows; `served` is the tree of this process, where the store has one process alone."""
        ...


class AuditLog(Protocol):
    """Where audit records can be read, whoever keeps them."""

    async def records(self, query: AuditQuery) -> AuditPage: ...

    async def verify(self, anchors: Iterable[Place] = ()) -> Proof: ...
