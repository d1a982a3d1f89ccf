"""What stands between a call and the person who must agree."""

from __future__ import annotations

from toolgrove.errors.kinds import Conflict, Forbidden, NotFound


class ApprovalNotFound(NotFound):
    """Nothing waits under that id."""

    def __init__(self, approval_id: str) -> None:
        super().__init__(
            f"No approval {approval_id!r} is in the inbox. 'toolgrove approvals' lists what is waiting.",
            reason="approval",
        )


class ApprovalRequired(Forbidden):
    """The call waits in the inbox until a person decides."""

    retryable = True

    def __init__(self, *, tool: str, approval_id: str, rule: str, expires_at: str, replaces: str | None = None) -> None:
        changed = f"It would now change something other than when {replaces!r} was requested. " if replaces else ""
        super().__init__(
            f"{tool} needs a person's approval ({rule}). {changed}The call waits as {approval_id!r} until "
            f"{expires_at}; repeat it with the same arguments once it is approved. Changing the arguments starts a new "
            "approval request.",
            reason="approval_required",
            approvalId=approval_id,
            expiresAt=expires_at,
            replaces=replaces,
        )


class ApprovalRejected(Forbidden):
    """A person decided against the call."""

    def __init__(self, *, tool: str, approval_id: str, by: str, why: str) -> None:
        because = f": {why}" if why else ""
        super().__init__(
            f"{by} rejected {tool} with these arguments{because}. Do not repeat it as it is; find another way, or "
            "ask what would be accepted.",
            reason="approval_rejected",
            approvalId=approval_id,
        )


class ApprovalUnavailable(Forbidden):
    """There is nobody who could be asked for the approval."""

    def __init__(self, *, tool: str, problem: str, hint: str, retry_after: float | None = None) -> None:
        message = f"{tool} needs an approval, but {problem}. {hint}"
        super().__init__(message, reason="approval_unavailable", retryAfter=retry_after)
        self.retryable = retry_after is not None


class InboxFull(Forbidden):
    """An agent has as many calls waiting as it may."""

    def __init__(self, *, agent: str, limit: int) -> None:
        super().__init__(
            f"Agent {agent!r} already has {limit} calls waiting for approval. Wait until a person decides.",
            reason="approval_limit",
            limit=limit,
        )


class OwnApproval(Forbidden):
    """An agent must not decide about its own call."""

    def __init__(self, *, approval_id: str, agent: str) -> None:
        super().__init__(
            f"{agent!r} requested approval {approval_id!r}, so it cannot decide it. Someone else has to.",
            reason="own_approval",
        )


class AlreadyDecided(Conflict):
    """Another decision came first, or none came in time."""

    retryable = False

    def __init__(self, *, approval_id: str, state: str, by: str) -> None:
        if state == "expired":
            text = "has expired; the agent must make its call again"
        elif by:
            verdict = "rejected" if state == "rejected" else "approved"
            text = f"was already {verdict} by {by}; the first decision stands"
        else:
            text = f"is {state}"
        super().__init__(f"Approval {approval_id!r} {text}.", reason="approval_decided", state=state)


class NotRevocable(Conflict):
    """Only an approval that is not used up can be taken back."""

    retryable = False

    def __init__(self, *, approval_id: str, state: str) -> None:
        text = (
            "is still waiting; reject it instead"
            if state == "pending"
            else f"is {state}; there is nothing to take back"
        )
        super().__init__(f"Approval {approval_id!r} {text}.", reason="approval_not_revocable", state=state)


class ApprovalTakenBack(Conflict):
    """The approval that the call had claimed was given back before the call was kept, since its replica was silent."""

    def __init__(self, *, approval_id: str) -> None:
        super().__init__(
            f"Nothing was changed or sent: approval {approval_id!r} was taken back meanwhile, since this replica was "
            "not heard of for a while. Repeat the call: it runs if the approval is still good, or asks for a new one.",
            reason="approval_taken_back",
            approvalId=approval_id,
        )


class EffectChanged(Conflict):
    """The call would change something other than what was approved."""

    def __init__(self) -> None:
        super().__init__(
            "The call would now change something other than what was approved. Repeat it to ask for a new approval.",
            reason="effect_changed",
        )
