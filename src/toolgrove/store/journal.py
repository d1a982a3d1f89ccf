"""The journal: one append takes the commits, the idempotency record and the audit record, or none of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from toolgrove.store.audit import AuditRecord
from toolgrove.tree.history import Commit
from toolgrove.tree.workspace import Change
from toolgrove.types import Result


@dataclass(frozen=True, kw_only=True, slots=True)
class IdempotencyRecord:
    """The result that a key stands for."""

    agent: str
    key: str
    request: str
    result: Result


@dataclass(frozen=True, kw_only=True, slots=True)
class Effects:
    """What a call changed: commits of the tree, and changes beside it."""

    commits: Sequence[Commit] = ()
    changes: Sequence[Change] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """All that one call leaves behind."""

    audit: AuditRecord
    effects: Effects | None = None
    idempotency: IdempotencyRecord | None = None


class Journal(Protocol):
    """Keeps entries.

    `append` is atomic: when it returns, the whole entry is kept; when it raises OSError, nothing of it is.
    It finishes even if the caller is cancelled meanwhile. `Commit.after` may be read during `append` only.
    """

    async def append(self, entry: Entry) -> None: ...

    async def recall(self, agent: str, key: str) -> IdempotencyRecord | None: ...
