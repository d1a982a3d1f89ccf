"""The inbox: calls that wait for a person, bound to agent, arguments, definition and effect.

An approval is good for one run, unless the person lets it stand for a while.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import anyio
import anyio.to_thread

from toolgrove.call.claimant import claimant, is_other_alive
from toolgrove.errors import AlreadyDecided, ApprovalNotFound, InboxFull, InvalidArgument, NotRevocable, OwnApproval
from toolgrove.events import ApprovalDecided, ApprovalRequested, ApprovalRevoked, Event
from toolgrove.store.state import (
    Approval,
    ApprovalRequest,
    Approvals,
    ApprovalState,
    ApprovalTable,
    Deed,
    Lasting,
    Moment,
)
from toolgrove.types import Clock

LIFETIME = 3600.0
LASTING: dict[Lasting, float] = {"15m": 900.0, "1h": 3600.0, "8h": 28_800.0}
KEPT_FOR = 30 * 86_400.0
MAX_PENDING = 20
_MANY = 10_000
LOOK_AGAIN = 1.0
"""Seconds after which somebody who waits looks whether another process decided."""


class Inbox:
    """Takes requests, hears decisions, and gives each approval out once; a standing one until it expires."""

    def __init__(
        self,
        approvals: Approvals,
        clock: Clock,
        *,
        publish: Callable[[Event], None] = lambda event: None,
        lifetime: float = LIFETIME,
        max_pending: int = MAX_PENDING,
        claimant: Callable[[], int] = claimant,
        is_other_alive: Callable[[int], bool] = is_other_alive,
    ) -> None:
        self._approvals = approvals
        self._clock = clock
        self._publish = publish
        self._lifetime = lifetime
        self._max_pending = max_pending
        self._claimant, self._is_other_alive = claimant, is_other_alive
        self._told: dict[str, int] | None = None
        self._decided_here: dict[str, float] = {}
        self._decision = anyio.Event()
        self._lets_go = False

    async def request(self, request: ApprovalRequest) -> Approval:
        """Put a call before a person; one that waits or is approved already is found again.

        One of the same call that would have changed something else gives way.
        """
        kept, fresh = await self._approvals.transact(lambda table: self._request(table, request, self._now()))
        if fresh and self._is_news(kept):
            self._publish(requested(kept))
        return kept

    async def decide(
        self, approval_id: str, *, approve: bool, by: str, reason: str = "", lasts: Lasting | None = None
    ) -> Approval:
        """Approve or reject what waits; the first decision stands, and repeating it changes nothing.

        With `lasts`, every call of this tool by this agent is approved for that long, whatever its arguments.
        """
        if lasts is not None and not approve:
            raise InvalidArgument("Only an approval can stand for a while; reject without 'for'.", path="for")
        decided, fresh = await self._approvals.transact(
            lambda table: self._decide(table, approval_id, approve, by, reason, lasts)
        )
        if fresh:
            now = self._clock.wall()
            waiting = {known: until for known, until in self._decided_here.items() if until > now}
            self._decided_here = {**waiting, decided.id: decided.expires_at}
            if self._is_news(decided):
                self._publish_decision(decided)
            self._wake()
        return decided

    async def heard(self) -> None:
        """Look at what other processes did: who waits here is woken, and events tell of it as if it was done here."""
        self._wake()
        every = await self.list()
        if self._told is None:
            self._told = {one.id: _verdict(one) for one in every}
            return
        for one in every:
            if not self._is_news(one):
                continue
            if one.state == "pending":
                self._publish(requested(one))
            elif one.state == "revoked":
                self._publish(ApprovalRevoked(**_about(one, self._clock.wall()), by=""))
            elif one.state != "expired":
                self._decided_here[one.id] = one.expires_at
                self._publish_decision(one)
        if len(self._told) > _MANY + len(every):
            self._told = {one.id: self._told[one.id] for one in every}

    def _wake(self) -> None:
        self._decision, earlier = anyio.Event(), self._decision
        earlier.set()

    def _is_news(self, approval: Approval) -> bool:
        """Whether no event told of it yet; what was read a moment ago may be older than what is known."""
        if self._told is None:
            return True
        verdict, known = _verdict(approval), self._told.get(approval.id, -1)
        self._told[approval.id] = max(verdict, known)
        return verdict > known

    async def wait(self, asked: Approval, seconds: float) -> Approval:
        """Wait until somebody decided, here or in another process, or it expired, or the time is over."""
        with anyio.move_on_after(seconds):
            while asked.state == "pending" and not self._lets_go:
                decision = self._decision
                asked = await self.get(asked.id)
                with anyio.move_on_after(LOOK_AGAIN if asked.state == "pending" else 0):
                    await decision.wait()
        return asked

    def let_go(self) -> None:
        """Have nobody wait any longer: the gateway is about to end, and what waits stays in the inbox."""
        self._lets_go = True
        self._decision.set()

    async def claim(self, request: ApprovalRequest, call_id: str) -> Approval | None:
        """Take the approval of this very call, or hear once that it was rejected; None if there is no decision."""
        claimed = await self._approvals.transact(
            lambda table: _claim(table, request, call_id, self._now(), self._claimant())
        )
        if claimed is not None:
            if claimed.id not in self._decided_here:
                self._publish_decision(claimed)
            self._decided_here.pop(claimed.id, None)
            if claimed.lasts is not None:
                self._decided_here[claimed.id] = claimed.expires_at
        return claimed

    async def settle(self, claimed: Approval, state: Literal["used", "approved", "unknown"]) -> None:
        """Say what became of a claim: its call has ended, or nothing ran and it is good again, or nobody knows."""
        settled = await self._approvals.transact(lambda table: _settle(table, claimed, state))
        if settled is not None and state == "approved":
            self._decided_here[settled.id] = settled.expires_at

    async def release(self, abandoned: Approval, state: Literal["approved", "unknown"]) -> None:
        """Settle a claim whose process is no more: it is good again, or nobody knows; that goes on record."""
        await self._approvals.transact(lambda table: _release(table, abandoned, state, self._now()))

    async def abandoned(self) -> Sequence[Approval]:
        """The approvals claimed by a process that no longer exists; asked before this one claims any."""
        claimed = await self.list("claimed")
        return [one for one in claimed if not await anyio.to_thread.run_sync(self._is_other_alive, one.process)]

    async def revoke(self, approval_id: str, *, by: str) -> Approval:
        """Take back an approval that is not used up; repeating it changes nothing."""
        revoked, fresh = await self._approvals.transact(lambda table: _revoke(table, approval_id, by, self._now()))
        if fresh and self._is_news(revoked):
            self._publish(ApprovalRevoked(**_about(revoked, self._clock.wall()), by=by))
        return revoked

    async def get(self, approval_id: str) -> Approval:
        """One approval as it stands now."""
        found = await self._approvals.look(lambda table: _found(table, approval_id))
        return found.at(self._now())

    async def list(self, state: ApprovalState | None = None) -> Sequence[Approval]:
        """Every approval, or those in one state, oldest first."""
        kept = await self._approvals.look(lambda table: table.all())
        now = self._now()
        found = [approval.at(now) for approval in kept]
        return [approval for approval in found if state is None or approval.state == state]

    def _now(self) -> Moment:
        """Asked for inside a transaction, so that no decision in the file is younger."""
        return Moment(self._clock.wall(), self._clock.monotonic())

    def _request(self, table: ApprovalTable, request: ApprovalRequest, now: Moment) -> tuple[Approval, bool]:
        table.purge(now.wall - KEPT_FOR)
        replaces = ""
        for known in table.of(request.key):
            if known.lasts is None and known.at(now).state in ("pending", "approved"):
                if known.request.footprint_hash == request.footprint_hash:
                    return _asked_again(table, known, request), False
                table.put(replace(known, state="expired", closed_at=now.wall))
                replaces = known.id
        agent = request.agent
        waiting = sum(known.at(now).state == "pending" for known in table.of_agent(agent, "pending"))
        if waiting >= self._max_pending:
            raise InboxFull(agent=agent, limit=self._max_pending)
        asked = Approval(
            id=f"ap_{secrets.token_urlsafe(16)}",
            request=request,
            state="pending",
            requested_at=now.wall,
            expires_at=now.wall + self._lifetime,
            monotonic=now.monotonic,
            replaces=replaces,
        )
        table.put(asked)
        return asked, True

    def _decide(
        self, table: ApprovalTable, approval_id: str, approve: bool, by: str, reason: str, lasts: Lasting | None
    ) -> tuple[Approval, bool]:
        now = self._now()
        found = _found(table, approval_id).at(now)
        if not by or by in (found.request.agent, *found.request.chain):
            raise OwnApproval(approval_id=found.id, agent=by or found.request.agent)
        state: ApprovalState = "approved" if approve else "rejected"
        verdict = "approved" if found.state in ("claimed", "used", "unknown") else found.state
        if verdict == state and found.decided_by == by and found.lasts == lasts:  # a double click
            return found, False
        if found.state != "pending":
            raise AlreadyDecided(approval_id=found.id, state=found.state, by=found.decided_by)
        lifetime = found.expires_at - found.requested_at if lasts is None else LASTING[lasts]
        decided = replace(
            found,
            state=state,
            decided_at=now.wall,
            decided_by=by,
            reason=reason,
            lasts=lasts,
            expires_at=now.wall + lifetime,
            monotonic=now.monotonic,
        )
        table.put(decided)
        table.note(_deed(state, decided, by, now))
        return decided, True

    def _publish_decision(self, approval: Approval) -> None:
        self._publish(decided(approval, self._clock.wall()))


def _verdict(approval: Approval) -> int:
    """How far it has come: asked for, decided, or over."""
    return {"pending": 0, "revoked": 2, "expired": 2}.get(approval.state, 1)


def requested(approval: Approval) -> ApprovalRequested:
    """That a call waits for a person, as an event."""
    asked = approval.request
    return ApprovalRequested(
        **_about(approval, approval.requested_at), rule=asked.rule, receipt=asked.receipt, asked_by=asked.asked_by
    )


def decided(approval: Approval, now: float) -> ApprovalDecided:
    """What a person decided, as an event."""
    return ApprovalDecided(
        **_about(approval, now),
        approved=approval.state != "rejected",
        by=approval.decided_by,
        reason=approval.reason,
        lasts=approval.lasts,
    )


def _about(approval: Approval, now: float) -> dict[str, Any]:
    """What every event of an approval says."""
    asked = approval.request
    return {
        "approval_id": approval.id,
        "tool": asked.tool,
        "chain": asked.chain,
        "run_id": asked.run_id,
        "parent_call_id": asked.parent_call_id,
        "timestamp": now,
    }


def _found(table: ApprovalTable, approval_id: str) -> Approval:
    found = table.get(approval_id)
    if found is None:
        raise ApprovalNotFound(approval_id)
    return found


def _asked_again(table: ApprovalTable, known: Approval, request: ApprovalRequest) -> Approval:
    """A request that is found again; where the agent itself asks as well, nobody else is named any more."""
    if known.request.asked_by is None or request.asked_by is not None:
        return known
    same = replace(known, request=replace(known.request, asked_by=None))
    table.put(same)
    return same


def _claim(table: ApprovalTable, request: ApprovalRequest, call_id: str, now: Moment, process: int) -> Approval | None:
    known = table.of(request.key)
    for one in known:
        if one.state == "rejected" and one.closed_at is None and now.wall < one.expires_at:
            told = replace(one, closed_at=now.wall)
            table.put(told)
            return told
    for one in known:
        same = one.lasts is None and one.request.footprint_hash == request.footprint_hash
        if same and one.at(now).state == "approved":
            claimed = replace(one, state="claimed", closed_at=now.wall, call_id=call_id, process=process)
            table.put(claimed)
            return claimed
    for one in table.of_agent(request.agent, "approved"):
        if one.lasts is not None and one.at(now).state == "approved" and _covers(one.request, request):
            for waiting in known:
                if waiting.state == "pending":  # nobody need look at it any more
                    table.put(replace(waiting, state="expired", closed_at=now.wall))
            used = replace(one, uses=one.uses + 1, call_id=call_id)
            table.put(used)
            return used
    return None


def _covers(standing: ApprovalRequest, request: ApprovalRequest) -> bool:
    """Whether two calls differ in nothing but their arguments, and what those change."""
    return (standing.tool, standing.definition_hash, standing.chain, standing.rule) == (
        request.tool,
        request.definition_hash,
        request.chain,
        request.rule,
    )


def _settle(table: ApprovalTable, claimed: Approval, state: ApprovalState) -> Approval | None:
    found = table.get(claimed.id)
    if found is None or found.state != "claimed" or found.call_id != claimed.call_id:  # one that stands is not claimed
        return None
    settled = replace(found, state=state)
    if state == "approved":
        settled = replace(settled, closed_at=None, call_id="", process=0)
    table.put(settled)
    return settled


def _release(table: ApprovalTable, abandoned: Approval, state: ApprovalState, now: Moment) -> None:
    if _settle(table, abandoned, state) is not None:
        became = {"claimedBy": abandoned.call_id, "state": state}
        table.note(_deed("abandoned", abandoned, "start-up", now, **became))


def _revoke(table: ApprovalTable, approval_id: str, by: str, now: Moment) -> tuple[Approval, bool]:
    found = _found(table, approval_id).at(now)
    if found.state == "revoked":
        return found, False
    if found.state != "approved":
        raise NotRevocable(approval_id=found.id, state=found.state)
    revoked = replace(found, state="revoked", closed_at=now.wall)
    table.put(revoked)
    table.note(_deed("revoked", revoked, by, now))
    return revoked, True


def _deed(verb: str, approval: Approval, by: str, now: Moment, **more: str) -> Deed:
    """What was decided about a call, or became of it."""
    asked = approval.request
    details = {
        "approvalId": approval.id,
        "tool": asked.tool,
        "rule": asked.rule,
        "effect": asked.effect,
        "for": approval.lasts,
        "reason": approval.reason,
        **more,
    }
    told = {name: value for name, value in details.items() if value}
    return Deed(
        kind="approval",
        operation=f"approval.{verb}",
        at=now.wall,
        by=by,
        agent=asked.agent,
        targets=(asked.tool,),
        details=told,
        chain=asked.chain,
        parent_call_id=asked.parent_call_id,
        run_id=asked.run_id,
    )
