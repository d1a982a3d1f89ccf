"""Approvals: calls that wait for a person, and where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from toolgrove.store.state.deeds import Deed
from toolgrove.types import EarlierCall

T = TypeVar("T")
ApprovalState = Literal["pending", "approved", "rejected", "claimed", "used", "unknown", "revoked", "expired"]
Lasting = Literal["15m", "1h", "8h"]
"""For how long a standing approval holds."""
ApprovalKey = tuple[str, str, str, str, tuple[str, ...]]
"""Agent, tool, hash of the arguments, hash of the definition, and the chain of agents."""


class Moment(NamedTuple):
    """A time by both clocks: the wall's, which can be set, and the one that only runs on until the machine restarts."""

    wall: float
    monotonic: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalRequest:
    """A call that needs an approval; `arguments` and `effect` are what a person is shown, the hashes are what binds.

    `chain` names the agents from the outermost to the one that calls. `effect` says in names what the call would
    change, `footprint_hash` stands for what it would remove or overwrite; both are empty for tools that cannot tell.
    `sends` is the method and the URL of an HTTP tool's request, `earlier` the same call before a crash, which may have
    run. `run_id` is the run that asked first, `parent_call_id` the call that a delegated agent works for.
    `asked_by` is who acted as the agent, None where it called itself.
    """

    agent: str
    tool: str
    arguments: Mapping[str, Any]
    arguments_hash: str
    definition: Mapping[str, Any]
    definition_hash: str
    rule: str
    receipt: str = ""
    sends: Mapping[str, str] | None = None
    chain: tuple[str, ...] = ()
    effect: str = ""
    footprint_hash: str = ""
    earlier: EarlierCall | None = None
    run_id: str = ""
    parent_call_id: str | None = None
    asked_by: str | None = None

    def __post_init__(self) -> None:
        if not self.chain:
            object.__setattr__(self, "chain", (self.agent,))

    @property
    def is_ours(self) -> bool:
        """Whether the call changes only what we keep ourselves: only there can the effect be known beforehand."""
        return bool(self.effect)

    @property
    def key(self) -> ApprovalKey:
        """What an approval of this call must have in common with it, whatever it would change."""
        return (self.agent, self.tool, self.arguments_hash, self.definition_hash, self.chain)


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """A request and what became of it. A rejection is told once; `closed_at` is when it was told, claimed or revoked.

    `monotonic` is the running clock when it was asked for or decided, `replaces` an earlier approval of the same call,
    which would have changed something else. One with `lasts` stands: it holds for any arguments until it expires, and
    `uses` counts them. `call_id` is the call that claimed it, or used it last, and `process` the one that call runs in.
    """

    id: str
    request: ApprovalRequest
    state: ApprovalState
    requested_at: float
    expires_at: float
    monotonic: float = 0.0
    decided_at: float | None = None
    decided_by: str = ""
    reason: str = ""
    lasts: Lasting | None = None
    uses: int = 0
    closed_at: float | None = None
    call_id: str = ""
    process: int = 0
    replaces: str = ""

    def at(self, now: Moment) -> Approval:
        """The approval as it stands at a moment: what nobody decided or used in time is expired.

        Setting the wall clock back does not stretch it: the running clock counts as well, and a wall clock that stands
        before the decision tells nothing about its age.
        """
        if self.state not in ("pending", "approved"):
            return self
        since = self.requested_at if self.decided_at is None else self.decided_at
        age = max(now.wall - since, now.monotonic - self.monotonic)
        if now.wall < since or age >= self.expires_at - since:
            return replace(self, state="expired")
        return self


class ApprovalTable(Protocol):
    """The approvals inside one transaction."""

    def get(self, approval_id: str) -> Approval | None: ...

    def of(self, key: ApprovalKey) -> Sequence[Approval]:
        """Those of one call, oldest first."""

    def of_agent(self, agent: str, state: ApprovalState) -> Sequence[Approval]: ...

    def all(self) -> Sequence[Approval]: ...

    def put(self, approval: Approval) -> None: ...

    def purge(self, before: float) -> None:
        """Drop what expired before a moment."""

    def note(self, deed: Deed) -> None:
        """Keep what was decided for the audit log."""


class Approvals(Protocol):
    """Where approvals are kept; `transact` runs work whole or not at all, and raises OSError if it cannot.

    `look` runs work that changes nothing, and waits for nobody who writes.
    """

    async def transact(self, work: Callable[[ApprovalTable], T]) -> T: ...

    async def look(self, work: Callable[[ApprovalTable], T]) -> T: ...
