"""A module that asks the user: in both eras it runs once, whatever the user answers."""

import json
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from apcore import Config, Executor, Registry
from mcp import Client
from mcp.shared.exceptions import MCPError

from e2e.conftest import Connect
from e2e.modules import Journal
from e2e.servers import Address, serving
from e2e.wire import MODERN, call_body, envelope, messages, modern_headers
from mcp_text import text_of
from waiting import eventually

pytestmark = pytest.mark.anyio

ELICITATION: dict[str, Any] = {"elicitation": {"form": {}}}
YES = {"action": "accept", "content": {"ok": True}}


class User:
    """Answers in turn."""

    def __init__(self, *answers: types.ElicitResult | types.ErrorData) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Any]] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        self.asked.append((params.message, params.requested_schema))
        return self.answers[len(self.asked) - 1]


def accept(**content: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=content)


def answers(result: types.CallToolResult) -> Any:
    return json.loads(text_of(result))["answers"]


@pytest.mark.requirement("FR-EXT-002", "FR-EXEC-004")
async def test_async_and_sync_modules_ask_the_user_over_every_transport_in_both_eras(
    connect: Connect, journal: Journal
) -> None:
    user = User(*[accept(ok=True), accept(ok=False)] * 3)
    async with connect(elicitation_callback=user) as client:
        for name in ("ask.twice", "ask.twice_threaded"):
            assert answers(await client.call_tool(name, {"key": name})) == [{"ok": True}, {"ok": False}]
        for name, answer in {"ask.once": True, "ask.once_threaded": False}.items():
            assert answers(await client.call_tool(name, {"key": name})) == [{"ok": answer}]
    assert [message for message, _ in user.asked] == ["Question 1?", "Question 2?"] * 2 + ["Question 1?"] * 2
    assert user.asked[0][1]["properties"]["ok"]["type"] == "boolean"
    runs = [line for line in journal.lines if line.startswith("run ")]
    assert runs == ["run ask.twice", "run ask.twice_threaded", "run ask.once", "run ask.once_threaded"]


@pytest.mark.parametrize("era", [MODERN, "legacy"])
@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.requirement("FR-EXT-002")
async def test_a_user_who_does_not_answer_is_none_to_the_module(
    address: Address, journal: Journal, era: str, action: Any
) -> None:
    user = User(types.ElicitResult(action=action), accept(ok=True))
    async with Client(address.mcp, mode=era, elicitation_callback=user) as client:
        assert answers(await client.call_tool("ask.twice", {"key": "k"})) == [None, {"ok": True}]
    assert journal.lines.count("run k") == 1


@pytest.mark.parametrize("transport", ["memory", "http"])
@pytest.mark.parametrize("name", ["ask.twice", "ask.twice_threaded"])
@pytest.mark.requirement("FR-EXT-002")
async def test_a_client_without_elicitation_is_not_asked(connect: Connect, journal: Journal, name: str) -> None:
    async with connect() as client:
        assert answers(await client.call_tool(name, {"key": "k"})) == [None, None]
    assert journal.lines.count("run k") == 1


@pytest.mark.parametrize("era", [MODERN, "legacy"])
@pytest.mark.requirement("FR-EXT-002")
async def test_without_a_schema_the_user_gets_a_free_form(address: Address, era: str) -> None:
    user = User(accept(response="whatever"))
    async with Client(address.mcp, mode=era, elicitation_callback=user) as client:
        result = await client.call_tool("ask.freely", {"key": "k"})
    assert json.loads(text_of(result)) == {"answer": {"response": "whatever"}}
    message, schema = user.asked[0]
    assert message == ""
    assert schema["type"] == "object"


@pytest.mark.parametrize("era", [MODERN, "legacy"])
@pytest.mark.requirement("FR-EXT-001", "FR-EXT-002")
async def test_progress_before_and_after_a_question_reaches_the_client_and_increases(
    address: Address, era: str
) -> None:
    seen: list[tuple[float, str | None]] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    async with Client(address.mcp, mode=era, elicitation_callback=User(accept(ok=True))) as client:
        result = await client.call_tool("ask.between_reports", {"key": "k"}, progress_callback=heard)
    assert json.loads(text_of(result)) == {"answer": {"ok": True}}
    assert seen == [(1, "before"), (2, "after")]


class Raw2026:
    """A client of the new era that drives the rounds by hand."""

    def __init__(self, client: httpx2.AsyncClient, address: Address) -> None:
        self.client = client
        self.address = address
        self.question = ""

    async def post(self, name: str, key: str, **params: Any) -> Any:
        body = call_body(name, {"key": key}, _meta=envelope(**ELICITATION), **params)
        response = await self.client.post(self.address.mcp, json=body, headers=modern_headers("tools/call", name))
        return messages(response)[-1]

    async def asked(self, name: str = "ask.once", key: str = "k") -> str:
        """Start a call; the state that the server wants back with the answer."""
        result = (await self.post(name, key))["result"]
        assert result["resultType"] == "input_required"
        [(self.question, question)] = result["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        return str(result["requestState"])

    async def answer(self, state: str, name: str = "ask.once", key: str = "k", answer: Any = YES) -> Any:
        return await self.post(name, key, requestState=state, inputResponses={self.question: answer})


@pytest.fixture
async def raw(address: Address) -> Any:
    async with httpx2.AsyncClient(timeout=30) as client:
        yield Raw2026(client, address)


@pytest.mark.requirement("FR-EXT-002")
async def test_the_retry_resumes_the_suspended_call(raw: Raw2026, journal: Journal) -> None:
    state = await raw.asked()
    assert journal.lines == ["run k"]
    result = (await raw.answer(state))["result"]
    assert json.loads(result["content"][0]["text"]) == {"answers": [{"ok": True}]}
    assert journal.lines.count("run k") == 1


@pytest.mark.requirement("FR-EXT-002")
async def test_answering_twice_says_that_the_call_is_gone(raw: Raw2026, journal: Journal) -> None:
    state = await raw.asked()
    await raw.answer(state)
    again = (await raw.answer(state))["result"]
    assert again["isError"] is True
    assert "no longer wait" in again["content"][0]["text"]
    assert journal.lines.count("run k") == 1


@pytest.mark.requirement("FR-EXT-002")
async def test_two_answers_at_once_resume_the_call_once(raw: Raw2026, journal: Journal) -> None:
    state = await raw.asked()
    outcomes: list[Any] = []

    async def answer() -> None:
        outcomes.append((await raw.answer(state))["result"])

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(answer)
    assert sorted(bool(outcome.get("isError")) for outcome in outcomes) == [False, True, True, True, True]
    assert journal.lines.count("run k") == 1


@pytest.mark.requirement("FR-EXT-002")
async def test_the_first_state_does_not_answer_the_second_question(raw: Raw2026, journal: Journal) -> None:
    first = await raw.asked("ask.twice")
    second = (await raw.answer(first, "ask.twice"))["result"]
    assert second["resultType"] == "input_required"
    replayed = (await raw.answer(first, "ask.twice"))["result"]
    assert "no longer wait" in replayed["content"][0]["text"]
    done = (await raw.answer(second["requestState"], "ask.twice", answer={"action": "decline"}))["result"]
    assert json.loads(done["content"][0]["text"]) == {"answers": [{"ok": True}, None]}
    assert journal.lines.count("run k") == 1


@pytest.mark.requirement("FR-EXT-002")
async def test_a_retry_without_the_answer_is_asked_again(raw: Raw2026, journal: Journal) -> None:
    """What the protocol recommends for a response that is missing or has the wrong key."""
    state = await raw.asked()
    for responses in ({}, {"wrong": YES}):
        again = (await raw.post("ask.once", "k", requestState=state, inputResponses=responses))["result"]
        assert again["resultType"] == "input_required"
        state = again["requestState"]
    answered = (await raw.answer(state))["result"]
    assert json.loads(answered["content"][0]["text"]) == {"answers": [{"ok": True}]}
    assert journal.lines.count("run k") == 1


def _flip(state: str, position: int) -> str:
    return state[:position] + ("A" if state[position] != "A" else "B") + state[position + 1 :]


@pytest.mark.requirement("FR-EXT-002")
async def test_a_tampered_state_is_refused_and_the_call_stays_answerable(raw: Raw2026, journal: Journal) -> None:
    state = await raw.asked()
    middle = len(state) // 2
    for forged in (_flip(state, middle), _flip(state, 10), state[:-4], "k", "", state + "A" * 20):
        answer = await raw.answer(forged)
        assert answer["error"]["code"] == types.INVALID_PARAMS, forged
    assert "result" in await raw.answer(state)
    assert journal.lines.count("run k") == 1


@pytest.mark.requirement("FR-EXT-002")
async def test_a_state_for_another_tool_or_other_arguments_is_refused(raw: Raw2026, journal: Journal) -> None:
    state = await raw.asked("ask.once", "k")
    assert "error" in await raw.answer(state, "ask.twice", "k")
    assert "error" in await raw.answer(state, "ask.once", "other")
    assert "result" in await raw.answer(state, "ask.once", "k")
    assert journal.lines == ["run k", "answered k [{'ok': True}]"]


@pytest.mark.requirement("FR-EXT-002")
async def test_a_state_of_another_server_is_refused(raw: Raw2026, samples: Registry) -> None:
    state = await raw.asked()
    with serving(samples) as other:
        assert "error" in await Raw2026(raw.client, other).answer(state)


@pytest.mark.requirement("FR-EXT-002")
async def test_an_answer_of_the_wrong_shape_is_no_answer(raw: Raw2026, journal: Journal) -> None:
    for key, bad in {"a": {"action": "explode"}, "b": {"action": "accept", "content": "text"}, "c": 5}.items():
        state = await raw.asked(key=key)
        outcome = await raw.answer(state, key=key, answer=bad)
        assert "error" in outcome or "result" in outcome
    assert [line for line in journal.lines if line.startswith("run")] == ["run a", "run b", "run c"]


@pytest.mark.requirement("FR-EXT-002")
async def test_a_question_that_is_never_answered_ends_with_none(
    monkeypatch: pytest.MonkeyPatch, samples: Registry, journal: Journal
) -> None:
    monkeypatch.setattr("mcp_serve.calls.ANSWER_WITHIN", 0.3)
    with serving(samples) as address:
        async with httpx2.AsyncClient() as client:
            raw = Raw2026(client, address)
            state = await raw.asked()
            await eventually(lambda: "answered k [None]" in journal)
            late = await raw.answer(state)
    assert "no longer wait" in late["result"]["content"][0]["text"]


@pytest.mark.requirement("FR-EXT-002", "FR-ERROR-004")
async def test_a_run_that_ends_while_it_waits_is_told_to_whoever_answers(samples: Registry) -> None:
    """apcore's own time limit goes on while the user thinks."""
    executor = Executor(samples, config=Config(data={"executor": {"default_timeout": 200}}))
    with serving(executor) as address:
        async with httpx2.AsyncClient(timeout=10) as client:
            raw = Raw2026(client, address)
            state = await raw.asked()
            await anyio.sleep(0.5)  # the user thinks for longer than the module may run
            late = (await raw.answer(state))["result"]
    assert late["isError"] is True


@pytest.mark.requirement("FR-EXT-002")
async def test_too_many_open_questions_are_not_asked(
    monkeypatch: pytest.MonkeyPatch, samples: Registry, journal: Journal
) -> None:
    monkeypatch.setattr("mcp_serve.calls.MAX_SUSPENDED", 2)
    with serving(samples) as address:
        async with httpx2.AsyncClient() as client:
            raw = Raw2026(client, address)
            states = [await raw.asked(key=key) for key in "ab"]
            unasked = await raw.post("ask.once", "c")
            assert json.loads(unasked["result"]["content"][0]["text"]) == {"answers": [None]}
            for key, state in zip("ab", states, strict=True):
                assert "result" in await raw.answer(state, key=key)
            assert await raw.asked(key="d")


@pytest.mark.requirement("FR-EXT-002")
async def test_a_hundred_calls_wait_for_their_own_answers(address: Address, journal: Journal) -> None:
    async with httpx2.AsyncClient(timeout=30) as client:
        raw = Raw2026(client, address)
        states = {str(n): await raw.asked(key=str(n)) for n in range(100)}
        for key, state in reversed(states.items()):
            content = {"ok": int(key) % 2 == 0}
            answered = await raw.answer(state, key=key, answer={"action": "accept", "content": content})
            assert json.loads(answered["result"]["content"][0]["text"]) == {"answers": [content]}
    assert len([line for line in journal.lines if line.startswith("run")]) == 100


@pytest.mark.requirement("FR-EXT-002")
async def test_a_client_that_fails_to_ask_leaves_the_module_without_an_answer(address: Address) -> None:
    user = User(types.ErrorData(code=-32000, message="no screen"))
    async with Client(address.mcp, mode="legacy", elicitation_callback=user) as client:
        assert answers(await client.call_tool("ask.once", {"key": "k"})) == [None]
    async with Client(address.mcp, mode=MODERN, elicitation_callback=User(*user.answers)) as client:
        with pytest.raises(MCPError):
            await client.call_tool("ask.once", {"key": "k2"})
