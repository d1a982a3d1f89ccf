"""Approvals: calls that wait for a person, bound to agent, arguments and definition, each good for one run."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeVar

from toolgrove.errors import Conflict, Forbidden, NotFound
from toolgrove.events import ApprovalDecided, ApprovalRequested, Event
from toolgrove.types import Clock

T = TypeVar("T")
State = Literal["pending", "approved", "rejected", "used", "expired"]
LIFETIME = 3600.0
KEPT_FOR = 30 * 86_400.0
MAX_PENDING = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A call that needs an approval; `arguments` is what a person is shown, the hashes are what binds.

    `sends` is the method and the URL of an HTTP tool's request.
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

    @property
    def key(self) -> Key:
        """What an approval of this call must have in common with it."""
        return (self.agent, self.tool, self.arguments_hash, self.definition_hash)


Key = tuple[str, str, str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """A request and what became of it. A rejection is told once; `closed_at` is when it was told, or used."""

    id: str
    request: Request
    state: State
    requested_at: float
    expires_at: float
    decided_at: float | None = None
    decided_by: str = ""
    reason: str = ""
    closed_at: float | None = None

    def at(self, now: float) -> Approval:
        """The approval as it stands at a moment: what nobody decided or used in time is expired."""
        if self.state in ("pending", "approved") and now >= self.expires_at:
            return replace(self, state="expired")
        return self

    def to_json(self) -> dict[str, Any]:
        """The approval as a person's tools read it."""
        asked = self.request
        return {
            "id": self.id,
            "state": self.state,
            "agent": asked.agent,
            "tool": asked.tool,
            "arguments": dict(asked.arguments),
            "sends": None if asked.sends is None else dict(asked.sends),
            "definition": dict(asked.definition),
            "definitionHash": asked.definition_hash,
            "rule": asked.rule,
            "receipt": asked.receipt,
            "requestedAt": self.requested_at,
            "expiresAt": self.expires_at,
            "decidedAt": self.decided_at,
            "decidedBy": self.decided_by or None,
            "reason": self.reason or None,
        }


class Table(Protocol):
    """The approvals inside one transaction."""

    def get(self, approval_id: str) -> Approval | None: ...

    def of(self, key: Key) -> Sequence[Approval]:
        """Those of one call, oldest first."""

    def of_agent(self, agent: str, state: State) -> Sequence[Approval]: ...

    def all(self) -> Sequence[Approval]: ...

    def put(self, approval: Approval) -> None: ...

    def purge(self, before: float) -> None:
        """Drop what expired before a moment."""


class Approvals(Protocol):
    """Where approvals are kept; `transact` runs work whole or not at all, and raises OSError if it cannot."""

    async def transact(self, work: Callable[[Table], T]) -> T: ...


class ApprovalNotFound(NotFound):
    """Nothing waits under that id."""

    def __init__(self, approval_id: str) -> None:
        super().__init__(
            f"No approval {approval_id!r} is in the inbox. 'toolgrove approvals' lists what waits.", reason="approval"
        )


class AlreadyDecided(Conflict):
    """Somebody was faster, or nobody was fast enough."""

    retryable = False

    def __init__(self, approval: Approval) -> None:
        if approval.state == "expired":
            text = "has expired; the agent must make its call again"
        elif approval.decided_by:
            verdict = "rejected" if approval.state == "rejected" else "approved"
            text = f"was already {verdict} by {approval.decided_by}; the first decision stands"
        else:
            text = f"is {approval.state}"
        super().__init__(f"Approval {approval.id!r} {text}.", reason="approval_decided", state=approval.state)


class OwnApproval(Forbidden):
    """An agent must not decide about its own call."""

    def __init__(self, approval: Approval) -> None:
        super().__init__(
            f"{approval.request.agent!r} asked for approval {approval.id!r} and cannot decide it; somebody else must.",
            reason="own_approval",
        )


class InboxFull(Forbidden):
    """An agent has as many calls waiting as it may."""

    def __init__(self, *, agent: str, limit: int) -> None:
        super().__init__(
            f"{limit} calls of agent {agent!r} wait for approval already. Wait until a person has decided about them.",
            reason="approval_limit",
            limit=limit,
        )


class Inbox:
    """Takes requests, hears decisions, and gives each approval out once."""

    def __init__(
        self,
        approvals: Approvals,
        clock: Clock,
        *,
        emit: Callable[[Event], None] = lambda event: None,
        lifetime: float = LIFETIME,
        max_pending: int = MAX_PENDING,
    ) -> None:
        self._approvals = approvals
        self._clock = clock
        self._emit = emit
        self._lifetime = lifetime
        self._max_pending = max_pending
        self._decided_here: dict[str, float] = {}

    async def request(self, request: Request) -> Approval:
        """Put a call before a person; one that waits or is approved already is found again."""
        now = self._clock.wall()
        asked = Approval(
            id=f"ap_{secrets.token_urlsafe(16)}",
            request=request,
            state="pending",
            requested_at=now,
            expires_at=now + self._lifetime,
        )
        kept = await self._approvals.transact(lambda table: self._request(table, asked, now))
        if kept is asked:
            self._emit(
                ApprovalRequested(
                    approval_id=asked.id,
                    tool=request.tool,
                    agent=request.agent,
                    rule=request.rule,
                    receipt=request.receipt,
                    timestamp=now,
                )
            )
        return kept

    async def decide(self, approval_id: str, *, approve: bool, by: str, reason: str = "") -> Approval:
        """Approve or reject what waits; the first decision stands, and repeating it changes nothing."""
        now = self._clock.wall()
        decided, fresh = await self._approvals.transact(
            lambda table: _decide(table, approval_id, approve, by, reason, now)
        )
        if fresh:
            waiting = {known: until for known, until in self._decided_here.items() if until > now}
            self._decided_here = {**waiting, decided.id: decided.expires_at}
            self._tell(decided)
        return decided

    async def claim(self, agent: str, tool: str, arguments_hash: str, definition_hash: str) -> Approval | None:
        """Use up the approval of this very call, or hear once that it was rejected; None if nobody decided."""
        now = self._clock.wall()
        key = (agent, tool, arguments_hash, definition_hash)
        claimed = await self._approvals.transact(lambda table: _claim(table, key, now))
        if claimed is not None:
            if claimed.id not in self._decided_here:
                self._tell(claimed)
            self._decided_here.pop(claimed.id, None)
        return claimed

    async def give_back(self, approval_id: str) -> None:
        """Let an approval be claimed once more, since nothing ran."""
        open_again = await self._approvals.transact(lambda table: _give_back(table, approval_id))
        if open_again is not None:
            self._decided_here[approval_id] = open_again.expires_at

    async def get(self, approval_id: str) -> Approval:
        """One approval as it stands now."""
        found = await self._approvals.transact(lambda table: table.get(approval_id))
        if found is None:
            raise ApprovalNotFound(approval_id)
        return found.at(self._clock.wall())

    async def list(self, state: State | None = None) -> Sequence[Approval]:
        """Every approval, or those in one state, oldest first."""
        now = self._clock.wall()
        found = [approval.at(now) for approval in await self._approvals.transact(lambda table: table.all())]
        return [approval for approval in found if state is None or approval.state == state]

    def _request(self, table: Table, asked: Approval, now: float) -> Approval:
        table.purge(now - KEPT_FOR)
        for known in table.of(asked.request.key):
            if known.at(now).state in ("pending", "approved"):
                return known
        agent = asked.request.agent
        waiting = sum(known.at(now).state == "pending" for known in table.of_agent(agent, "pending"))
        if waiting >= self._max_pending:
            raise InboxFull(agent=agent, limit=self._max_pending)
        table.put(asked)
        return asked

    def _tell(self, approval: Approval) -> None:
        self._emit(
            ApprovalDecided(
                approval_id=approval.id,
                tool=approval.request.tool,
                agent=approval.request.agent,
                approved=approval.state != "rejected",
                by=approval.decided_by,
                reason=approval.reason,
                timestamp=self._clock.wall(),
            )
        )


def _decide(table: Table, approval_id: str, approve: bool, by: str, reason: str, now: float) -> tuple[Approval, bool]:
    found = table.get(approval_id)
    if found is None:
        raise ApprovalNotFound(approval_id)
    found = found.at(now)
    if not by or by == found.request.agent:
        raise OwnApproval(found)
    state: State = "approved" if approve else "rejected"
    verdict = "approved" if found.state == "used" else found.state
    if verdict == state and found.decided_by == by:  # a double click
        return found, False
    if found.state != "pending":
        raise AlreadyDecided(found)
    lifetime = found.expires_at - found.requested_at
    decided = replace(found, state=state, decided_at=now, decided_by=by, reason=reason, expires_at=now + lifetime)
    table.put(decided)
    return decided, True


def _claim(table: Table, key: Key, now: float) -> Approval | None:
    for known in table.of(key):
        found = known.at(now)
        if found.closed_at is None and found.state in ("approved", "rejected") and now < found.expires_at:
            used: State = "used" if found.state == "approved" else "rejected"
            claimed = replace(found, state=used, closed_at=now)
            table.put(claimed)
            return claimed
    return None


def _give_back(table: Table, approval_id: str) -> Approval | None:
    found = table.get(approval_id)
    if found is None or found.state != "used":
        return None
    open_again = replace(found, state="approved", closed_at=None)
    table.put(open_again)
    return open_again


class MemoryApprovals:
    """Approvals of a process that may forget."""

    def __init__(self) -> None:
        self._table = _Rows()

    async def transact(self, work: Callable[[Table], T]) -> T:
        """Nothing here waits, so work is whole by itself."""
        return work(self._table)


class _Rows:
    def __init__(self) -> None:
        self._rows: dict[str, Approval] = {}

    def get(self, approval_id: str) -> Approval | None:
        return self._rows.get(approval_id)

    def of(self, key: Key) -> Sequence[Approval]:
        return [row for row in self._rows.values() if row.request.key == key]

    def of_agent(self, agent: str, state: State) -> Sequence[Approval]:
        return [row for row in self._rows.values() if row.request.agent == agent and row.state == state]

    def all(self) -> Sequence[Approval]:
        return list(self._rows.values())

    def put(self, approval: Approval) -> None:
        self._rows[approval.id] = approval

    def purge(self, before: float) -> None:
        self._rows = {name: row for name, row in self._rows.items() if row.expires_at >= before}
