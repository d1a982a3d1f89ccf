"""Holds a call back until a person agreed to it: this agent, these arguments, this definition, once."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Protocol, runtime_checkable

from toolgrove.call.toolset import granted
from toolgrove.errors import ApprovalRejected, ApprovalRequired, ApprovalUnavailable, StaleVersion
from toolgrove.store.approvals import AlreadyDecided, Approval, Inbox, InboxFull, Request
from toolgrove.tree.json_value import canonical
from toolgrove.types import Arguments, Call, Next, Result, Tool

MAX_ARGUMENTS = 256 * 1024
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


class ApprovalStep:
    """Claims an approval, or asks for one; if nobody can be asked, nothing is sent.

    `ask_client` tells for which agents the person at the agent's own MCP client may decide. That answer comes over
    the agent's connection, so whoever controls the agent's client controls it too: it is off unless the operator
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
        request = self._request(call, granted(call), rule)
        try:
            claimed = await self._claimed(request) or await self._asked(call, request)
        except InboxFull as error:
            raise ApprovalUnavailable(
                tool=call.name,
                problem=f"{error.facts['limit']} calls of this agent wait for one already",
                hint="Wait until a person has decided about them; do not send more.",
            ) from None
        except OSError:
            raise ApprovalUnavailable(
                tool=call.name,
                problem="the inbox cannot be reached",
                hint="Nothing was sent. The operator must look after the state file; do not retry until then.",
            ) from None
        try:
            return await onward(call)
        except StaleVersion:  # nothing ran, and who waited for a person seldom has a version that is still current
            with suppress(OSError):  # it is then asked for again
                await self._inbox.give_back(claimed.id)
            raise

    async def _asked(self, call: Call, request: Request) -> Approval:
        """The approval of somebody who is asked now; most often it must be waited for."""
        approval = await self._inbox.request(request)
        await self._ask(call, approval)
        claimed = await self._claimed(request)
        if claimed is None:
            raise ApprovalRequired(
                tool=call.name, approval_id=approval.id, rule=request.rule, expires_at=_moment(approval.expires_at)
            )
        return claimed

    async def _claimed(self, request: Request) -> Approval | None:
        approval = await self._inbox.claim(*request.key)
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

    def _request(self, call: Call, tool: Tool, rule: str) -> Request:
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
        definition = _definition(tool)
        return Request(
            agent=call.caller.agent,
            tool=call.name,
            arguments=shown,
            arguments_hash=_digest(text),
            definition=definition,
            definition_hash=tool.definition or _digest(canonical(definition)),
            rule=rule,
            receipt=call.receipt,
            sends=sends,
        )


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


def _question(request: Request) -> str:
    arguments = json.dumps(request.arguments, indent=2)
    return f"Agent {request.agent!r} wants to run {request.tool} ({request.rule}) with\n{arguments}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _moment(time: float) -> str:
    return datetime.datetime.fromtimestamp(time, datetime.UTC).isoformat(timespec="seconds")
