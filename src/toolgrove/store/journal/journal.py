"""The journal: one append takes the effects, the idempotency record and the audit record, or none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from toolgrove.store.audit import AuditRecord, Unfinished
from toolgrove.tree.effects import Effects
from toolgrove.tree.saved import SavedWorkspace
from toolgrove.types import Result


@dataclass(frozen=True, kw_only=True, slots=True)
class IdempotencyRecord:
    """The result that a key stands for."""

    agent: str
    key: str
    request: str
    result: Result


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyLimits:
    """For how many seconds an idempotency key holds, and how many of an agent's are kept; the oldest go first.

    The lifetime is what clients are told. The number is there against a flood: whoever makes keys faster than that has
    the oldest forgotten early, which is logged.
    """

    lifetime: float = 86_400.0
    per_agent: int = 10_000


KEYS_ON_DISK = 1_000_000
"""How many keys of an agent a journal in a file keeps: eleven a second for a day."""


class JournalEntry(NamedTuple):
    """All that one call leaves behind; a `durable` one is on the disk when `append` returns.

    Effects that come `alone`, none after them before they have their place, may take their time to be written down. One
    that is `overdue` was refused several times because others were quicker; if it is refused again, the journal keeps
    others waiting for a moment, so that the next try comes first.
    """

    audit: AuditRecord
    effects: Effects | None = None
    idempotency: IdempotencyRecord | None = None
    durable: bool = False
    alone: bool = False
    overdue: bool = False


class Behind(OSError):
    """The effects rest on a change that is not the newest one in the journal."""

    def __init__(self, *, parent: str, newest: str) -> None:
        super().__init__(
            f"The change rests on {parent}, and the journal stands at {newest}. Take the change back, "
            "catch up with the journal, and run the call again."
        )


class Diverged(OSError):
    """What a process holds is not in the stored history: the store was set back, or is another one now."""


class KeyTaken(OSError):
    """Another process has used the idempotency key meanwhile. Nothing of the entry was kept; recall the key."""

    def __init__(self) -> None:
        super().__init__("The idempotency key was used by another process meanwhile.")


class ClaimLost(OSError):
    """The approval that the call claimed was given back meanwhile, and may be another's. Nothing was kept."""

    def __init__(self) -> None:
        super().__init__("The call's claim on its approval was taken back meanwhile.")


OUTRUN = (Behind, KeyTaken, ClaimLost)
"""Refusals of an entry because another one was quicker; the store is well."""


class Stalled(OSError):
    """The store does not answer, or another program holds it. Nothing of the entry was kept; make it again later."""

    def __init__(self) -> None:
        super().__init__("The store takes nothing just now.")


class Outdated(Stalled):
    """A newer version has changed the store so that this one may not write it any more, for as long as it runs."""


class Gone(OSError):
    """The files of the store were deleted, replaced or overwritten while it was open."""

    def __init__(self) -> None:
        super().__init__(
            "The store's files were deleted, replaced or overwritten while it was open. Stop the gateway, put them "
            "back or restore a backup, and start again."
        )


Trouble = Literal[
    "store_locked",
    "store_unreachable",
    "store_behind",
    "store_diverged",
    "store_unwritable",
    "store_gone",
    "state_gone",
    "file_outdated",
    "limits_narrowed",
    "version_outdated",
]
"""Why a project cannot keep what agents do; with `limits_narrowed` it can, and only counts their calls by itself."""


RECORD_BYTES = 2 * 1024**3
"""How many bytes of arguments and results a journal keeps unless told otherwise."""


class Journal(Protocol):
    """Keeps entries, in the order in which `append` was called.

    `append` takes its place before it first waits, is atomic, and finishes even if the caller is cancelled
    meanwhile. When it returns, effects and idempotency record are durable, together with the audit record; a
    bare audit record may still be on its way, unless the entry is `durable`. When it raises OSError, nothing of the
    entry is kept; when it lets a cancellation through, all of it is. Effects are kept only if they rest on the newest
    change of the journal: compare and swap; else it raises Behind. Where another program holds the store, it
    raises Stalled soon, and `writable` is where to wait.
    """

    async def open(self) -> SavedWorkspace | None:
        """Make ready; the workspace as it was left, or None if there is nothing to go on with."""
        ...

    @property
    def unfinished(self) -> Unfinished:
        """Calls that began to change something outside and have not ended, and calls whose outcome is unknown."""
        ...

    def fingerprint(self, text: str) -> str:
        """A fingerprint of a text, the same after a restart; nobody can make it without the key."""
        ...

    @property
    def trouble(self) -> Trouble | None:
        """Why an entry could not be kept now; None while all is well."""
        ...

    async def append(self, entry: JournalEntry) -> None: ...

    async def writable(self) -> None:
        """Return when nobody else holds the store; raises OSError if that is not so within the wait that all share."""
        ...

    async def recall(self, agent: str, key: str) -> IdempotencyRecord | None: ...

    async def close(self) -> None:
        """Keep what is on its way, and let go."""
        ...
