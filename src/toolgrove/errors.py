"""Every failure an agent can meet; each says what to do next.

GroveError
├── InvalidArgument    invalid_argument   the request is wrong: fix it and retry
│   ├── SchemaMismatch, NotJson, UnreadableArguments   the arguments themselves
│   ├── PayloadMismatch, UnknownType, GuardedProperty
│   ├── BatchTooLarge, BadPageToken, KeyReused
│   └── BadQuery                          a selection query, with a caret line
├── NotFound           not_found          nothing has that name
│   └── NodeNotFound, ToolNotFound, AgentNotFound, Unnamed, ApprovalNotFound, PinNotFound
├── Forbidden          forbidden          stop: this agent may not
│   ├── ApprovalRequired                  a person must agree first, then the same call goes through
│   ├── ApprovalRejected                  a person said no
│   ├── ApprovalUnavailable               there is no one to ask, so nothing is sent
│   ├── InboxFull                         the agent has as many calls waiting as it may
│   ├── OwnApproval                       an agent must not decide about its own call
│   ├── OutsideWriteRoot                  a change reaches beyond the subtree that is open
│   ├── SecretOutOfScope                  the secret names the tools that may use it, and this is none of them
│   └── SpawnBudgetSpent                  a run has started as many sub-agents as it may
├── Conflict           conflict           read again, then retry with the latest version
│   ├── StaleVersion
│   ├── OutcomeUnknown                    the same call was cut off by a crash, and may have run
│   ├── AlreadyDecided                    another decision about the approval stands
│   ├── NotRevocable                      there is no open approval to take back
│   ├── EffectChanged                     the call would change something else than was approved
│   └── PinMoved                          the definition to accept is not the one that is there now
├── RateLimited        rate_limited       wait retryAfter seconds
│   └── ShareSpent                        the agent uses all of an upstream that is its to use
├── Internal           internal           our fault; the call id leads to the log
├── SecretUnset        internal           the operator has not set a secret that the tool needs
├── RunnerMissing      internal           the operator has not said what runs sub-agents
├── RunFailed          internal           a sub-agent's run ended without an answer
└── UpstreamFailed     internal           the tool's own server failed, hung or answered nonsense
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, ClassVar

NAME = 200
MESSAGE = 2048
"""How many characters of a name and of a message are repeated, in answers and in records."""
_LONGEST = 100
_MANY = 200


def brief(text: str, most: int) -> str:
    """Both ends of a text that is longer than it may be: a message begins with what is wrong and ends with advice."""
    if len(text) <= most:
        return text
    tail = most // 4
    return f"{text[: most - tail - 3]} … {text[-tail:]}"


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that looks most like the given one; cheap also among many thousands."""
    wanted = word.casefold()
    if len(wanted) > _LONGEST:
        return None
    room = max(2, len(wanted) // 4)
    near = {name.casefold(): name for name in known if abs(len(name) - len(wanted)) <= room}
    if len(near) > _MANY:
        near = dict(islice(((key, name) for key, name in near.items() if key[:3] == wanted[:3]), _MANY))
    match = difflib.get_close_matches(wanted, near, n=1, cutoff=0.6)
    return near[match[0]] if match else None


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    match = closest(word, known)
    return f" Did you mean {match!r}?" if match else ""


class GroveError(Exception):
    """A failure with a code for machines, a message for readers and facts for both."""

    code: ClassVar[str] = "internal"
    retryable: bool = False

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = {name: value for name, value in facts.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """The error object as every face returns it; what a caller wrote comes back in part if it is long."""
        facts = {name: brief(one, MESSAGE) if isinstance(one, str) else one for name, one in self.facts.items()}
        return {"error": {"code": self.code, "message": brief(self.message, MESSAGE), **facts}}


class InvalidArgument(GroveError):
    """The request cannot be carried out as written."""

    code = "invalid_argument"


class SchemaMismatch(InvalidArgument):
    """An argument does not match the tool's input schema."""

    def __init__(self, *, path: str, problem: str, hint: str | None = None) -> None:
        where = f"Argument {path!r}" if path else "The arguments"
        tail = f" {hint}" if hint else ""
        super().__init__(f"{where}: {problem}.{tail}", reason="schema", path=path, hint=hint)


class NotJson(InvalidArgument):
    """An argument holds something that JSON cannot carry."""

    def __init__(self, *, path: str, problem: str) -> None:
        super().__init__(f"Argument {path!r} {problem}. Send plain JSON.", reason="not_json", path=path)


class UnreadableArguments(InvalidArgument):
    """A model wrote arguments that are not a JSON object."""

    def __init__(self, *, tool: str, problem: str) -> None:
        super().__init__(
            f"The arguments for {tool!r} cannot be read: {problem}. Send one complete JSON object, {{}} for none.",
            reason="not_json",
        )


class PayloadMismatch(InvalidArgument):
    """A payload does not fit its registered type."""

    def __init__(self, *, payload_type: str, path: str, problem: str, node_id: str | None = None) -> None:
        where = f"property {path!r}" if path else "the payload"
        super().__init__(
            f"{where} does not fit payload type {payload_type!r}: {problem}. "
            "list_payload_types shows what the type allows.",
            reason="payload_schema",
            path=path,
            payloadType=payload_type,
            nodeId=node_id,
        )


class UnknownType(InvalidArgument):
    """No payload type of that name is registered."""

    def __init__(self, *, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"Payload type {name!r} is not registered; known types: {', '.join(known)}.{_did_you_mean(name, known)}",
            reason="unknown_type",
            payloadType=name,
        )


class GuardedProperty(InvalidArgument):
    """A structural property of a self-payload node was to be written."""

    def __init__(self, *, name: str, payload_type: str, node_id: str | None = None) -> None:
        super().__init__(
            f"{name!r} belongs to the node itself on self-payload type {payload_type!r} and cannot be "
            "written. Use move_node to change the parent; ids and types never change.",
            reason="guarded_property",
            property=name,
            nodeId=node_id,
        )


class BatchTooLarge(InvalidArgument):
    """A request asks for more at once than is configured."""

    def __init__(self, *, argument: str, count: int, limit: int, hint: str | None = None) -> None:
        advice = hint or f"Send batches of at most {limit}."
        super().__init__(
            f"{argument!r} covers {count} items; the limit is {limit}. {advice}",
            reason="batch_limit",
            argument=argument,
            count=count,
            limit=limit,
        )


class BadPageToken(InvalidArgument):
    """A page token was altered or belongs to another question."""

    def __init__(self) -> None:
        super().__init__(
            "This pageToken was not issued for this agent, tool and arguments. Repeat the call without "
            "pageToken to start at the first page, and keep every other argument unchanged between pages.",
            reason="page_token",
        )


class KeyReused(InvalidArgument):
    """An idempotency key came back with another request."""

    def __init__(self, *, key: str) -> None:
        super().__init__(
            f"idempotencyKey {key!r} was already used for a different request. Use a new key for a new "
            "request, or repeat the first one unchanged.",
            reason="idempotency_key_reused",
        )


class BadQuery(InvalidArgument):
    """A selection query cannot be read; the message carries a caret line."""

    def __init__(
        self, *, query: str, position: int, problem: str, expected: Sequence[str] = (), hint: str | None = None
    ) -> None:
        start = max(0, position - 60)
        line = query[start : position + 40].replace("\n", " ").replace("\t", " ")
        caret = " " * (position - start) + "^"
        wanted = f"\nexpected: {', '.join(expected)}" if expected else ""
        advice = f"\nhint: {hint}" if hint else ""
        super().__init__(
            f"{problem} at position {position}\n  {line}\n  {caret}{wanted}{advice}",
            reason="query",
            position=position,
            expected=list(expected) or None,
            hint=hint,
        )


class NotFound(GroveError):
    """Nothing has that name."""

    code = "not_found"


class NodeNotFound(NotFound):
    """No node has that id."""

    def __init__(self, node_id: str) -> None:
        super().__init__(
            f"No node has the id {node_id!r}. It may have been removed; use search or get_view to find current ids.",
            nodeId=node_id,
        )


class ToolNotFound(NotFound):
    """The agent has no tool of that name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"There is no tool {name!r}.{_did_you_mean(name, known)}", tool=name)


class AgentNotFound(NotFound):
    """The project defines no agent of that name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        others = f"; agents: {', '.join(known)}.{_did_you_mean(name, known)}" if known else " here."
        super().__init__(f"No agent {name!r} is defined{others}", agent=name)


class Unnamed(NotFound):
    """A snapshot, bookmark, ruleset or version that does not exist."""

    def __init__(self, *, kind: str, name: str, known: Sequence[str], where: str) -> None:
        super().__init__(
            f"No {kind} {name!r} exists.{_did_you_mean(name, known)} {where} shows what there is.", reason=kind
        )


class ApprovalNotFound(NotFound):
    """Nothing waits under that id."""

    def __init__(self, approval_id: str) -> None:
        super().__init__(
            f"No approval {approval_id!r} is in the inbox. 'toolgrove approvals' lists what waits.", reason="approval"
        )


class PinNotFound(NotFound):
    """No tool of that server has a pin."""

    def __init__(self, *, server: str, own_name: str, known: Sequence[str]) -> None:
        name = f"{server}/{own_name}"
        super().__init__(
            f"There is no pin for {name!r}.{_did_you_mean(name, known)} 'toolgrove pins' lists all.", reason="pin"
        )


class Forbidden(GroveError):
    """This agent may not do that."""

    code = "forbidden"


class ApprovalRequired(Forbidden):
    """The call waits in the inbox until a person decides."""

    retryable = True

    def __init__(self, *, tool: str, approval_id: str, rule: str, expires_at: str, replaces: str | None = None) -> None:
        anew = f"What it would change is not what it was when {replaces!r} was asked for. " if replaces else ""
        super().__init__(
            f"{tool} needs the approval of a person ({rule}). {anew}The call waits as {approval_id!r} until "
            f"{expires_at}; repeat it with the same arguments once it is approved. Do not change the arguments: that "
            "asks anew.",
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
    """The request for an approval cannot be put before anybody."""

    def __init__(self, *, tool: str, problem: str, hint: str) -> None:
        super().__init__(f"{tool} needs an approval, and {problem}. {hint}", reason="approval_unavailable")


class InboxFull(Forbidden):
    """An agent has as many calls waiting as it may."""

    def __init__(self, *, agent: str, limit: int) -> None:
        super().__init__(
            f"{limit} calls of agent {agent!r} wait for approval already. Wait until a person has decided about them.",
            reason="approval_limit",
            limit=limit,
        )


class OwnApproval(Forbidden):
    """An agent must not decide about its own call."""

    def __init__(self, *, approval_id: str, agent: str) -> None:
        super().__init__(
            f"{agent!r} asked for approval {approval_id!r} and cannot decide it; somebody else must.",
            reason="own_approval",
        )


class OutsideWriteRoot(Forbidden):
    """A change reaches outside the subtree that the agent, or one above it, may write."""

    def __init__(self, *, root: str, node_id: str, of: str | None) -> None:
        holder = f", the write root of agent {of!r}, on whose behalf you work" if of is not None else ""
        super().__init__(
            f"You may write only at and below {root!r}{holder}; {node_id!r} lies outside. Nothing was changed.",
            reason="write_root",
            writeRoot=root,
            nodeId=node_id,
        )


class SecretOutOfScope(Forbidden):
    """A tool's settings refer to a secret that is not meant for it."""

    def __init__(self, *, reference: str, field: str, user: str, allowed: Sequence[str]) -> None:
        tools = ", ".join(allowed) or "no tool"
        super().__init__(
            f"{field} refers to {reference}, which {user} may not use; it is for {tools}. "
            "The operator can add the tool to that secret's 'tools'; do not retry.",
            reason="secret_scope",
            field=field,
        )


class SpawnBudgetSpent(Forbidden):
    """A run, with all that it spawned, asks for more sub-agents than it may start."""

    def __init__(self, *, asked: int, remaining: int, limit: int) -> None:
        advice = f"Ask for at most {remaining}" if remaining else "Finish the work with your own tools; do not retry"
        super().__init__(
            f"{asked} more sub-agents would pass the limit of {limit} for a run and all that it spawns. {advice}.",
            reason="spawn_budget",
            remaining=remaining,
            limit=limit,
        )


class Conflict(GroveError):
    """The request rests on something that is no longer so."""

    code = "conflict"
    retryable = True


class StaleVersion(Conflict):
    """The version token is missing or no longer current."""

    def __init__(self, *, given: str | None, latest: str, changed: Sequence[str], count: int) -> None:
        opening = "versionToken is missing" if given is None else "versionToken is not current"
        detail = f": {count} node{'s' * (count != 1)} changed since" if count else ""
        super().__init__(
            f"{opening}{detail}. Read what you rely on again, then retry with versionToken "
            f"{latest!r} (every result carries the current one as 'version').",
            reason="missing_version" if given is None else "stale_version",
            latestVersion=latest,
            changedNodeIds=list(changed),
        )


class OutcomeUnknown(Conflict):
    """The same call was cut off by a crash before, and nobody knows whether it ran."""

    def __init__(self, *, tool: str, call_id: str, begun_at: str) -> None:
        super().__init__(
            f"The last call of {tool!r} with these arguments ({call_id}, begun at {begun_at}) was cut off and may have "
            "run. Find out whether it did. To run it all the same, send this call once more.",
            reason="outcome_unknown",
            callId=call_id,
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
        text = "still waits; reject it instead" if state == "pending" else f"is {state}; there is nothing to take back"
        super().__init__(f"Approval {approval_id!r} {text}.", reason="approval_not_revocable", state=state)


class EffectChanged(Conflict):
    """The call would change something else than was approved."""

    def __init__(self) -> None:
        super().__init__(
            "What the call would change has changed since it was approved. Repeat it; a person is asked anew.",
            reason="effect_changed",
        )


class PinMoved(Conflict):
    """The definition to accept is not the one that the server has now."""

    def __init__(self, *, server: str, own_name: str, given: str, seen: str) -> None:
        now = f"the server now offers {seen}" if seen else "nothing waits to be accepted"
        super().__init__(
            f"{server}/{own_name} has no definition {given} to accept: {now}. Look at the difference again.",
            reason="pin_moved",
            seen=seen or None,
        )


class RateLimited(GroveError):
    """The agent called too often."""

    code = "rate_limited"
    retryable = True

    def __init__(self, *, limit: str, retry_after: float, of: str | None = None) -> None:
        holder = f" of agent {of!r}, on whose behalf you work," if of is not None else ""
        super().__init__(
            f"The limit of {limit}{holder} is used up. Wait {retry_after:g} s before the next call; "
            "fewer, larger calls help.",
            retryAfter=retry_after,
        )


class ShareSpent(RateLimited):
    """The agent has as many calls under way at an upstream as it may."""

    def __init__(self, *, of: str, running: int, waiting: int, retry_after: float) -> None:
        GroveError.__init__(
            self,
            f"{of} has {running} calls of this agent under way and {waiting} in line, and keeps the rest for others. "
            f"Wait {retry_after:g} s before the next call.",
            reason="upstream_busy",
            retryAfter=retry_after,
        )


class Internal(GroveError):
    """Something broke on our side; the detail is in the server's log under the call id."""

    code = "internal"

    def __init__(self, *, call_id: str, reason: str | None = None) -> None:
        super().__init__(
            f"The call failed on our side; nothing was changed. Report call {call_id!r} to the operator.",
            callId=call_id,
            reason=reason,
        )


class SecretUnset(GroveError):
    """A reference to a secret leads to nothing; names the field and the reference, never a value."""

    code = "internal"

    def __init__(self, *, reference: str, field: str, problem: str) -> None:
        super().__init__(
            f"{field} refers to {reference}, but {problem}. The operator must set it; do not retry until then.",
            reason="secret_unset",
            field=field,
            reference=reference,
        )


class RunnerMissing(GroveError):
    """Nothing is there that could run a sub-agent; says what the operator adds."""

    code = "internal"

    def __init__(self, *, problem: str, remedy: str) -> None:
        super().__init__(
            f"Sub-agents cannot run: {problem}. The operator {remedy}. Until then, do the work with your own tools.",
            reason="no_runner",
        )


class RunFailed(GroveError):
    """A sub-agent's run ended without an answer; `reason` says where it broke."""

    code = "internal"

    def __init__(self, message: str, *, reason: str, retryable: bool = False, **facts: Any) -> None:
        super().__init__(message, reason=reason, **facts)
        self.retryable = retryable


class UpstreamFailed(GroveError):
    """A tool's own server failed, hung or answered nonsense; `reason` says which."""

    code = "internal"

    def __init__(self, message: str, *, reason: str, retryable: bool = False, **facts: Any) -> None:
        super().__init__(message, reason=reason, **facts)
        self.retryable = retryable
