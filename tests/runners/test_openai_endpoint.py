"""The plain runner against an endpoint that misbehaves: real HTTP on the loopback."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from grove_kit import Hand
from runners.endpoint import Answer, Endpoint, Reply, ask, choice, say, scripted, serving, tool_call
from toolgrove import Agent, Config, Grove
from toolgrove.config import RunnerConfig
from toolgrove.errors import RunFailed
from toolgrove.runners import from_config
from toolgrove.runners.openai import MAX_CALLS, MAX_RESULT, OpenAIRunner

pytestmark = pytest.mark.anyio
KEY = "sk-canary-8c2f"
DEADLINE = 30
LOOK = ("get_node", {"nodeId": "root"})


@asynccontextmanager
async def at_work(answer: Answer, **options: Any) -> AsyncIterator[tuple[OpenAIRunner, Agent, Endpoint]]:
    """A runner at an endpoint that answers so, an agent with two tools, and the endpoint."""
    config = Config.model_validate({"agents": {"researcher": {"tools": ["get_node", "search"]}}})
    with anyio.fail_after(DEADLINE):
        async with Grove(config) as grove, serving(answer) as endpoint:
            runner = OpenAIRunner(url=endpoint.url + "/", model="scripted", api_key=lambda: KEY, **options)
            yield runner, await grove.agent("researcher"), endpoint


async def failure(answer: Answer, **options: Any) -> tuple[RunFailed, Endpoint]:
    async with at_work(answer, **options) as (runner, agent, endpoint):
        with pytest.raises(RunFailed) as caught:
            await runner.run(agent, "Look.")
    return caught.value, endpoint


def results(endpoint: Endpoint) -> list[dict[str, Any]]:
    """What the model was told about its calls in the last request."""
    return [message for message in endpoint.requests[-1].body["messages"] if message["role"] == "tool"]


async def test_the_request_is_what_the_api_documents() -> None:
    async with at_work(scripted(say("done"))) as (runner, agent, endpoint):
        await runner.run(agent, "Look.")
        (request,) = endpoint.requests
        assert request.path == "/v1/chat/completions"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["content-type"] == "application/json"
        assert request.body["model"] == "scripted"
        assert request.body["tools"] == agent.openai_tools()
        assert [message["role"] for message in request.body["messages"]] == ["system", "user"]


async def test_without_tools_or_key_neither_is_sent() -> None:
    config = Config.model_validate({"agents": {"thinker": {}}})
    async with Grove(config) as grove, serving(scripted(say("done"))) as endpoint:
        runner = OpenAIRunner(url=endpoint.url, model="scripted")
        await runner.run(await grove.agent("thinker"), "Think.")
    assert "tools" not in endpoint.requests[0].body
    assert "authorization" not in endpoint.requests[0].headers


async def test_a_key_that_a_person_must_release_first_holds_nobody_up() -> None:
    """A keyring may ask for its password, and waits until somebody types it."""
    released = threading.Event()

    def key() -> str:
        return KEY if released.wait(DEADLINE / 2) else "nobody could release it"

    config = Config.model_validate({"agents": {"thinker": {}}})
    async with Grove(config) as grove, serving(scripted(say("done"))) as endpoint:
        runner = OpenAIRunner(url=endpoint.url, model="scripted", api_key=key)
        agent = await grove.agent("thinker")
        with anyio.fail_after(DEADLINE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(runner.run, agent, "Think.")
                await anyio.wait_all_tasks_blocked()
                released.set()
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_date_beyond_all_dates_is_no_date() -> None:
    headers = {"Retry-After": "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Date": "Mon, 01 Jan 2029 00:00:00 GMT"}
    error, _ = await failure(lambda request: Reply(status=500, headers=headers))
    assert error.facts["reason"] == "model_unavailable"


async def test_each_result_answers_its_call_by_id_and_the_model_sees_its_own_message_again() -> None:
    calls = [tool_call(*LOOK) | {"extra_content": {"signature": "abc"}}, tool_call("get_node", {"nodeId": "nowhere"})]
    script = scripted(choice({"content": "Let me see.", "tool_calls": calls}, "tool_calls"), say("done"))
    async with at_work(script) as (runner, agent, endpoint):
        await runner.run(agent, "Look.")
        echo, first, second = endpoint.requests[1].body["messages"][2:]
    assert echo == {"role": "assistant", "content": "Let me see.", "tool_calls": calls}
    assert [first["tool_call_id"], second["tool_call_id"]] == [call["id"] for call in calls]
    assert json.loads(first["content"])["nodeId"] == "root"
    assert json.loads(second["content"])["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"nodeId": "ro', "Unterminated string"),
        ("root", "Expecting value"),
        ('["root"]', "they are not an object"),
        ('{"nodeId": NaN}', "it holds NaN"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
async def test_arguments_that_cannot_be_read_are_explained_to_the_model(arguments: str, problem: str) -> None:
    async with at_work(scripted(ask(("get_node", arguments)), ask(LOOK), say("done"))) as (runner, agent, endpoint):
        assert (await runner.run(agent, "Look."))["output"] == "done"
        bad, good = (json.loads(message["content"]) for message in results(endpoint))
    assert bad["error"]["code"] == "invalid_argument"
    assert bad["error"]["reason"] == "not_json"
    assert problem in bad["error"]["message"]
    assert "Send one complete JSON object" in bad["error"]["message"]
    assert good["nodeId"] == "root"


async def test_absent_arguments_are_none_and_an_object_is_taken_as_it_is() -> None:
    calls = [tool_call("search", ""), tool_call(*LOOK)]
    calls[1]["function"]["arguments"] = {"nodeId": "root"}
    async with at_work(scripted(choice({"tool_calls": calls}), say("done"))) as (runner, agent, endpoint):
        await runner.run(agent, "Look.")
        empty, whole = (json.loads(message["content"]) for message in results(endpoint))
    assert empty.get("error", {}).get("reason") != "not_json"
    assert whole["nodeId"] == "root"


async def test_more_calls_at_once_than_the_limit_are_each_answered() -> None:
    script = scripted(ask(*[LOOK] * (MAX_CALLS + 2)), say("done"))
    async with at_work(script) as (runner, agent, endpoint):
        await runner.run(agent, "Look.")
        answers = [json.loads(message["content"]) for message in results(endpoint)]
    assert ["error" in answer for answer in answers] == [False] * MAX_CALLS + [True] * 2
    assert answers[-1]["error"]["reason"] == "batch_limit"


async def test_a_result_beyond_measure_is_cut_and_says_so() -> None:
    agents = {"editor": {"role": "editor", "tools": ["*"]}}
    answers = {"maxTokens": 1_000_000}
    config = Config.model_validate({"workspace": {"payloadTypes": {"Note": {}}}, "agents": agents, "answers": answers})
    long = {"parentNodeId": "root", "payloadType": "Note", "payloadProps": {"text": "x" * MAX_RESULT}}
    async with Grove(config) as grove:
        editor = Hand(await grove.agent("editor"))
        added = await editor.ok("add_child", **long)
        async with serving(scripted(ask(("get_node", {"nodeId": added["nodeId"]})), say("done"))) as endpoint:
            await OpenAIRunner(url=endpoint.url, model="scripted").run(editor.agent, "Look.")
    (result,) = results(endpoint)
    assert MAX_RESULT < len(result["content"]) < MAX_RESULT + 200
    assert result["content"].endswith("Ask for less at a time.")


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (choice({"content": "The begin"}, "length"), "cut off at the model's length limit"),
        (choice({"tool_calls": [tool_call("get_node", '{"nodeI')]}, "length"), "cut off at the model's length limit"),
        (choice({"content": ""}, "content_filter"), "content filter"),
        (choice({"content": None, "refusal": "I would rather not."}), "it declined: I would rather not."),
        (choice({"content": None}), "it said nothing"),
        (choice({"content": "", "tool_calls": []}), "it said nothing"),
    ],
)
async def test_an_answer_that_is_not_whole_ends_the_run(reply: Reply, words: str) -> None:
    error, _ = await failure(scripted(reply))
    assert words in error.message
    assert error.facts["reason"] == "model_answer"


@pytest.mark.parametrize("finish_reason", [None, "tool_calls", "eos"])
async def test_an_answer_counts_as_the_last_one_whatever_word_the_endpoint_has_for_it(
    finish_reason: str | None,
) -> None:
    script = scripted(
        choice({"content": None, "tool_calls": [tool_call(*LOOK)]}), choice({"content": "ok"}, finish_reason)
    )
    async with at_work(script) as (runner, agent, _):
        assert await runner.run(agent, "Look.") == {"output": "ok", "steps": 2}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>busy</html>",
        b"[]",
        b'{"choices": []}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": 7}}]}',
        b'{"choices": [{"message": {"tool_calls": [{"id": "1", "function": {}}]}}]}',
        b'{"choices": [{"message": {"content": "x"}, "score": NaN}]}',
        b'{"choices": [{"message": {"content": "\xff"}}]}',
        b"[" * 100_000,
    ],
)
async def test_something_that_is_no_completion_ends_the_run_with_a_hint(body: bytes) -> None:
    error, endpoint = await failure(scripted(Reply(body=body)))
    assert "not a chat completion" in error.message
    assert error.facts["reason"] == "model_answer"
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("headers", [{"Retry-After": "0"}, {"Retry-After": "Mon, 16 Nov 2026 10:00:00 GMT"}])
async def test_a_busy_endpoint_is_asked_again_when_it_says_so(status: int, headers: dict[str, str]) -> None:
    busy = Reply(status=status, headers={**headers, "Date": "Mon, 16 Nov 2026 10:00:00 GMT"})
    async with at_work(scripted(busy, busy, say("done"))) as (runner, agent, endpoint):
        assert await runner.run(agent, "Look.") == {"output": "done", "steps": 1}
    assert len(endpoint.requests) == 3


async def test_an_endpoint_that_stays_busy_is_given_up() -> None:
    error, endpoint = await failure(lambda request: Reply(status=429, headers={"Retry-After": "0"}))
    assert len(endpoint.requests) == 3
    assert error.retryable
    assert error.facts == {"reason": "model_busy", "status": 429, "retryAfter": 0.0}


@pytest.mark.parametrize("asked", ["3600", "Mon, 16 Nov 2026 11:00:00 GMT"])
async def test_a_long_wait_is_left_to_the_caller(asked: str) -> None:
    date = {"Date": "Mon, 16 Nov 2026 10:00:00 GMT"}
    error, endpoint = await failure(scripted(Reply(status=503, headers={"Retry-After": asked, **date})))
    assert len(endpoint.requests) == 1
    assert error.facts["retryAfter"] == 3600.0


@pytest.mark.parametrize(
    ("status", "reason", "hint", "retryable"),
    [
        (400, "model_refused", "check the runner section", False),
        (401, "model_refused", "check runner.apiKey", False),
        (404, "model_refused", "check runner.url and runner.model", False),
        (302, "model_refused", "check the runner section", False),
        (501, "model_unavailable", "Try again later", True),
    ],
)
async def test_a_refusal_is_not_repeated_and_says_where_to_look(
    status: int, reason: str, hint: str, retryable: bool
) -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}", "type": "invalid_request_error", "code": None}}).encode()
    headers = {"Location": "http://127.0.0.1:9/elsewhere"}
    error, endpoint = await failure(scripted(Reply(status=status, body=body, headers=headers)))
    assert len(endpoint.requests) == 1
    assert f"answered {status} (invalid_request_error)" in error.message
    assert hint in error.message
    assert (error.facts["reason"], error.retryable) == (reason, retryable)


@pytest.mark.parametrize("status", [200, 302, 400, 401, 429, 500])
@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"error": {"message": f"Incorrect API key {KEY}", "type": KEY, "code": KEY}}).encode(),
        json.dumps({"error": KEY}).encode(),
        f"no such key: {KEY}".encode(),
    ],
)
async def test_the_key_is_in_no_error_and_no_log(status: int, body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        error, _ = await failure(lambda request: Reply(status=status, body=body, headers={"Retry-After": "0"}))
    assert KEY not in json.dumps(error.to_json())
    assert KEY not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("toolgrove"))


@pytest.mark.parametrize("key", ["line\nbreak", "schlüssel", "two words"])
async def test_a_key_that_no_header_can_carry_is_reported_without_it(key: str) -> None:
    async with at_work(scripted()) as (_, agent, endpoint):
        runner = OpenAIRunner(url=endpoint.url, model="scripted", api_key=lambda: key)
        with pytest.raises(RunFailed, match=r"check runner\.apiKey") as caught:
            await runner.run(agent, "Look.")
    assert key not in caught.value.message
    assert endpoint.requests == []


async def test_an_answer_beyond_the_limit_is_not_read_to_its_end() -> None:
    error, _ = await failure(scripted(Reply(body=b"x" * 5_000, announced=10**12)), max_bytes=1_000)
    assert error.facts["reason"] == "too_large"
    assert "larger than 1000 bytes" in error.message


async def test_an_endpoint_that_never_answers_is_given_up_in_time() -> None:
    async with at_work(scripted(Reply(held=True)), timeout=0.2) as (runner, agent, endpoint):
        with pytest.raises(RunFailed, match=r"did not answer within 0\.2 s") as caught:
            await runner.run(agent, "Look.")
        await endpoint.abandoned.wait()
    assert caught.value.facts["reason"] == "timeout"
    assert caught.value.retryable


async def test_an_endpoint_that_drips_is_given_up_in_time() -> None:
    error, _ = await failure(scripted(Reply(dripping=True, announced=10**12)), timeout=0.2)
    assert error.facts["reason"] == "timeout"


async def test_an_endpoint_that_breaks_off_is_unavailable() -> None:
    error, endpoint = await failure(scripted(Reply(body=b'{"choices"', announced=1_000)))
    assert error.facts["reason"] == "model_unavailable"
    assert len(endpoint.requests) == 1


async def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    async with at_work(scripted()) as (_, agent, endpoint):
        gone = endpoint.url
        runner = OpenAIRunner(url=gone, model="scripted")
    with pytest.raises(RunFailed, match="cannot be reached"):
        await runner.run(agent, "Look.")


async def test_cancelling_a_run_hangs_up_on_the_endpoint() -> None:
    async with at_work(scripted(Reply(held=True))) as (runner, agent, endpoint):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runner.run, agent, "Look.")
            await endpoint.waiting.wait()
            tasks.cancel_scope.cancel()
        await endpoint.abandoned.wait()


async def test_the_file_names_the_endpoint_and_the_key_is_filled_in_for_each_run() -> None:
    filled: list[tuple[str, str]] = []

    def fill(template: str, field: str) -> str:
        filled.append((template, field))
        return f"key{len(filled)}"

    async with at_work(scripted(say("one"), say("two"))) as (_, agent, endpoint):
        section = RunnerConfig.model_validate(
            {"kind": "openai", "url": endpoint.url, "model": "m", "apiKey": "${env:MODEL_KEY}"}
        )
        runner = from_config(section, fill)
        assert filled == []
        assert [(await runner.run(agent, "Look."))["output"] for _ in range(2)] == ["one", "two"]
        assert [request.headers["authorization"] for request in endpoint.requests] == ["Bearer key1", "Bearer key2"]
    assert filled == [("${env:MODEL_KEY}", "runner.apiKey")] * 2
