"""A call goes on at the replica that holds it, for the user who began it and for nobody else."""

from __future__ import annotations

import pytest

from mcp_serve.answer import Answer, Refusal
from mcp_serve.calls import GONE, Calls, Channel, Outcome, Question, Returned, ToolRun, User
from mcp_serve.table import Json
from toolgrove.store.state import HandoffLost
from toolgrove.store.state.handoffs import GoOn
from toolgrove.web.other_replicas import LOST, OtherReplicas, gone_on

pytestmark = pytest.mark.anyio
ANN, BOB = User("ann"), User("bob")
CLIENT = Channel(can_answer=True)
YES = {"action": "accept", "content": {"ok": True}}


class Lane:
    """Handoffs between replicas of one process."""

    def __init__(self, here: str, others: dict[str, Calls]) -> None:
        self.here, self._others = here, others
        self.is_lossy = False

    async def hand(self, holder: str, agent: str, answer: str) -> str | None:
        if holder not in self._others:
            return None
        outcome = await gone_on(self._others[holder], answer)
        if self.is_lossy:
            raise HandoffLost
        return outcome

    async def follow(self, go_on: GoOn) -> None:
        """Nothing is left lying here."""


async def asks_twice(tool: str, arguments: Json | None, run: ToolRun) -> Answer:
    said = [await run.elicit(f"Question {number}?", None) for number in (1, 2)]
    return {"content": [], "structuredContent": {"said": said}, "isError": False}


class Replicas:
    """Two of them; what one asked is answered at the other."""

    def __init__(self) -> None:
        self.known: dict[str, Calls] = {}
        self.lane = Lane("b", self.known)
        self.known["a"] = self.one = Calls(asks_twice, elsewhere=OtherReplicas(Lane("a", self.known), "agent"))
        self.known["b"] = self.two = Calls(asks_twice, elsewhere=OtherReplicas(self.lane, "agent"))

    async def question(self) -> Question:
        asked = await self.one.begin("tool", {}, CLIENT, ANN)
        assert isinstance(asked, Question)
        return asked

    async def answer(self, question: Outcome, user: User | None = ANN, channel: Channel = CLIENT) -> Outcome:
        assert isinstance(question, Question)
        return await self.two.resume(Returned(question.id, YES), channel, user)


async def test_each_question_of_a_call_can_be_answered_at_another_replica() -> None:
    replicas = Replicas()
    second = await replicas.answer(await replicas.question())
    assert isinstance(second, Question)
    assert second.message == "Question 2?"
    told = await replicas.answer(second)
    assert isinstance(told, dict)
    assert told["structuredContent"] == {"said": [{"ok": True}, {"ok": True}]}
    assert await replicas.answer(second) == Refusal(GONE)


@pytest.mark.parametrize("other", [BOB, None])
async def test_another_user_is_refused_and_the_call_stays_answerable(other: User | None) -> None:
    replicas = Replicas()
    question = await replicas.question()
    assert await replicas.answer(question, other) == Refusal(GONE)
    assert isinstance(await replicas.answer(question), Question)


async def test_a_client_that_can_answer_no_more_is_not_asked_again() -> None:
    replicas = Replicas()
    told = await replicas.answer(await replicas.question(), channel=Channel())
    assert isinstance(told, dict)
    assert told["structuredContent"] == {"said": [{"ok": True}, None]}


async def test_who_cannot_hear_the_outcome_is_told_so() -> None:
    replicas = Replicas()
    question = await replicas.question()
    replicas.lane.is_lossy = True
    assert await replicas.answer(question) == Refusal(LOST)
    del replicas.known["a"]
    assert await replicas.answer(question) == Refusal(GONE)
