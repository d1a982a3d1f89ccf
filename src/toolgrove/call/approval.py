"""Holds a call back until a person agreed to it: this agent, these arguments, this definition, this effect."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from math import inf
from typing import Any, Literal, Protocol, runtime_checkable

import anyio

from toolgrove.call.actor import actor
from toolgrove.call.inbox import Inbox, decided, requested
from toolgrove.errors import (
    AlreadyDecided,
    ApprovalRejected,
    ApprovalRequired,
    ApprovalTakenBack,
    ApprovalUnavailable,
    EffectChanged,
    InboxFull,
    NotKept,
    StaleVersion,
)
from toolgrove.notation.json_value import canonical
from toolgrove.notation.times import to_seconds
from toolgrove.notation.unseen_text import visible_json
from toolgrove.store.state import Approval, ApprovalRequest, StateAway, StateBusy
from toolgrove.types import Arguments, Call, Client, Foreseen, Next, Result, Tool, UsedApproval

MAX_ARGUMENTS = 256 * 1024
_RETRY = 2.0
SAY_SO = 5.0
"""Seconds between two words to a client whose call is held open."""
# Conditions on a built-in write, not part of it: a retry may come with fresh ones.
_ASIDE = frozenset(("idempotencyKey", "versionToken"))
_QUESTION = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Let this call run, once"},
        "reason": {"type": "string", "title": "Reason"},
    },
    "required": ["approve"],
}


@runtime_checkable
class Previewing(Protocol):
    """A source that can tell what a call would send, without sending it."""

    def preview(self, call: Call) -> Mapping[str, str]: ...


@runtime_checkable
class Foreseeing(Protocol):
    """A source that can tell what a call would change, without changing it."""

    async def foresee(self, call: Call) -> Foreseen: ...


class ApprovalStep:
    """Claims an approval, or asks for one; if there is no one to ask, nothing is sent.

    `ask_client` tells for which agents the person at the agent's own MCP client may decide. That answer comes over
    the agent's connection, so control of the agent's client is control of it: it is off unless the operator
    says otherwise.
    """

    def __init__(
        self,
        inbox: Inbox,
        *,
        scrub: Callable[[Any], Any] = lambda value: value,
        ask_client: Callable[[str], bool] = lambda agent: False,
    ) -> None:
        self._inbox = inbox
        self._scrub = scrub
        self._ask_client = ask_client

    def __call__(self, call: Call, onward: Next) -> Awaitable[Result]:
        if call.approval is None:
            return onward(call)
        return self._approved(call, onward, call.approval)

    async def _approved(self, call: Call, onward: Next, rule: str) -> Result:
        while True:
            request = await self._request(call, call.granted, rule)
            approval = await self._obtained(call, request)
            call.used_approval = UsedApproval(approval.id, approval.decided_by)
            call.footprint = request.footprint_hash if approval.lasts is None else None
            try:
                result = await onward(call)
            except (ApprovalTakenBack, EffectChanged, NotKept, StaleVersion) as error:
                # Nothing ran, and after waiting for a person the caller's version is seldom still current.
                call.used_approval = None
                await self._settle(approval, "approved")
                if not isinstance(error, EffectChanged):
                    raise
            except BaseException:
                await self._settle(approval, "unknown" if call.cut_off and call.begun else "used")
                raise
            else:
                await self._settle(approval, "used")
                return result

    async def _settle(self, approval: Approval, state: Literal["used", "approved", "unknown"]) -> None:
        """Tell the inbox what became of an approval; if that fails, it finds out at the next start."""
        with anyio.CancelScope(shield=True), suppress(OSError):
            await self._inbox.settle(approval, state)

    async def _obtained(self, call: Call, request: ApprovalRequest) -> Approval:
        """The approval that the call may use; if there is no one to ask, nothing is sent."""
        try:
            return await self._claimed(call, request) or await self._asked(call, request)
        except InboxFull as error:
            raise ApprovalUnavailable(
                tool=call.name,
                problem=f"{error.facts['limit']} calls of this agent wait for one already",
                hint="Wait until a person has decided about them; do not send more.",
            ) from None
        except StateBusy:
            raise ApprovalUnavailable(
                tool=call.name,
                problem="another program holds the inbox",
                hint=f"Nothing was sent. It is safe to repeat the call: try again in {_RETRY:g} s.",
                retry_after=_RETRY,
            ) from None
        except StateAway:
            raise ApprovalUnavailable(
                tool=call.name,
                problem="the inbox cannot be reached just now",
                hint=f"Nothing was sent. It is safe to repeat the call: try again in {_RETRY:g} s.",
                retry_after=_RETRY,
            ) from None
        except OSError:
            raise ApprovalUnavailable(
                tool=call.name,
                problem="the inbox cannot be reached",
                hint="Nothing was sent. The operator must look after the state file; do not retry until then.",
            ) from None

    async def _asked(self, call: Call, request: ApprovalRequest) -> Approval:
        """The approval of somebody who is asked now; most often it must be waited for."""
        approval = await self._inbox.request(request)
        await self._ask(call, approval)
        if approval.state == "pending" and call.patience:
            await self._wait(call, approval)
        claimed = await self._claimed(call, request)
        if claimed is None:
            raise ApprovalRequired(
                tool=call.name,
                approval_id=approval.id,
                rule=request.rule,
                expires_at=to_seconds(approval.expires_at),
                replaces=approval.replaces or None,
            )
        return claimed

    async def _wait(self, call: Call, asked: Approval) -> None:
        """Wait for a decision as long as the call may; whoever follows its run hears of that."""
        publish = call.publish or (lambda event: None)
        publish(requested(asked))
        async with anyio.create_task_group() as tasks:
            if call.client is not None and call.patience < inf:
                tasks.start_soon(_say_so, call, call.client)
            found = await self._inbox.wait(asked, call.patience)
            tasks.cancel_scope.cancel()
        if found.decided_at is not None:
            publish(decided(found, found.decided_at))

    async def _claimed(self, call: Call, request: ApprovalRequest) -> Approval | None:
        approval = await self._inbox.claim(request, call.id)
        if approval is not None and approval.state == "rejected":
            raise ApprovalRejected(
                tool=request.tool, approval_id=approval.id, by=approval.decided_by, why=approval.reason
            )
        return approval

    async def _ask(self, call: Call, approval: Approval) -> None:
        agent = call.caller.agent
        if approval.state != "pending" or call.client is None or not self._ask_client(agent):
            return
        answer = await call.client.elicit(_question(approval.request), _QUESTION)
        if not isinstance(answer, Mapping) or not isinstance(answer.get("approve"), bool):
            return
        try:
            await self._inbox.decide(
                approval.id,
                approve=answer["approve"],
                by=f"the person at the client of {agent}",
                reason=str(answer.get("reason") or ""),
            )
        except AlreadyDecided:
            return  # somebody at the inbox was faster, and that decision stands

    async def _request(self, call: Call, tool: Tool, rule: str) -> ApprovalRequest:
        arguments = call.arguments
        if tool.kind == "builtin":
            arguments = {name: value for name, value in arguments.items() if name not in _ASIDE}
        text = canonical(arguments)
        if len(text) > MAX_ARGUMENTS:
            raise ApprovalUnavailable(
                tool=call.name,
                problem=f"its arguments are larger than {MAX_ARGUMENTS // 1024} KiB",
                hint="That is more than a person can look through; send less at a time.",
            )
        shown: Arguments = self._scrub(arguments)
        source = tool.source
        sends = self._scrub(source.preview(call)) if isinstance(source, Previewing) else None
        foreseen = await source.foresee(call) if isinstance(source, Foreseeing) else Foreseen("", "")
        definition = _definition(tool)
        return ApprovalRequest(
            agent=call.caller.agent,
            tool=call.name,
            arguments=shown,
            arguments_hash=_digest(text),
            definition=definition,
            definition_hash=tool.definition or _digest(canonical(definition)),
            rule=rule,
            receipt=call.receipt,
            sends=sends,
            chain=call.caller.chain,
            effect=self._scrub(foreseen.effect),
            footprint_hash=foreseen.footprint,
            earlier=call.earlier,
            run_id=call.run_id,
            parent_call_id=call.caller.parent_call_id,
            asked_by=actor(call.caller),
        )


async def _say_so(call: Call, client: Client) -> None:
    """Tell the client, again and again, why it hears nothing else."""
    waited = 0.0
    while True:
        await client.progress(waited, call.patience, f"Waiting for a person to approve {call.name}")
        await anyio.sleep(SAY_SO)
        waited += SAY_SO


def _definition(tool: Tool) -> dict[str, Any]:
    spec = tool.spec
    return {
        "name": spec.name,
        "description": spec.description,
        "inputSchema": dict(spec.input_schema),
        "outputSchema": dict(spec.output_schema),
        "annotations": asdict(spec.annotations),
        "source": spec.source,
    }


def _question(request: ApprovalRequest) -> str:
    """What a person at a client is asked; nothing in it hides, and no argument can pass for our words."""
    sender = " for ".join(map(repr, reversed(request.chain)))
    effect = f" It {request.effect}." if request.effect else ""
    if request.earlier is not None:
        effect += f" The same call before it, {request.earlier}."
    who = "Agent" if request.asked_by is None else f"The {request.asked_by}, acting as agent"
    asked = f"{who} {sender} wants to run {request.tool} ({request.rule}).{effect}"
    return f"{asked}\nIts arguments:\n{visible_json(request.arguments)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
