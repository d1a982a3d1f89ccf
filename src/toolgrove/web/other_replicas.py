"""The other replicas: an answer to a question that one of them asked goes there, and the outcome comes back.

What the client hears while the call goes on, such as progress, stays behind.
"""

from __future__ import annotations

import json
import logging

from mcp_serve.answer import Refusal
from mcp_serve.calls import GONE, Calls, Channel, Outcome, Question, Returned, User
from mcp_serve.table import Json
from mcp_serve.wire import encoded
from toolgrove.store.state import HandoffLost, Handoffs

log = logging.getLogger("toolgrove.web")
LOST = (
    "This call went on at another replica, and its result was lost. It may have had its effect: look before you call "
    "again."
)


class OtherReplicas:
    """Where answers to one agent's questions go that another replica asked."""

    def __init__(self, handoffs: Handoffs, agent: str) -> None:
        self._handoffs, self._agent = handoffs, agent

    @property
    def here(self) -> str:
        return self._handoffs.here

    async def resume(self, holder: str, returned: Returned, channel: Channel, user: User | None) -> Outcome | None:
        said = {
            "returned": returned,
            "user": None if user is None else user.id,
            "channel": {"can_answer": channel.can_answer, "can_open": channel.can_open},
        }
        try:
            outcome = await self._handoffs.hand(holder, self._agent, json.dumps(said))
        except HandoffLost:
            return Refusal(LOST)
        return None if outcome is None else _read(outcome)


async def gone_on(calls: Calls | None, answer: str) -> str:
    """Go on with a call of ours for another replica; what became of it, for `OtherReplicas` there."""
    if calls is None:
        return _written(Refusal(GONE))
    try:
        said = json.loads(answer)
        user = None if said["user"] is None else User(said["user"])
        return _written(await calls.resume_here(Returned(*said["returned"]), Channel(**said["channel"]), user))
    except Exception:
        log.exception("A call could not go on with an answer from another replica")
        return _written(Refusal(LOST))


def _written(outcome: Outcome) -> str:
    told: Json = {"Answer": outcome}
    if isinstance(outcome, Question | Refusal):
        told = {type(outcome).__name__: outcome._asdict()}
    return encoded(told, modern=True).decode()


def _read(outcome: str) -> Outcome:
    ((kind, told),) = json.loads(outcome).items()
    return Question(**told) if kind == "Question" else Refusal(**told) if kind == "Refusal" else told
