"""Every endpoint that the docs name, as it speaks: the calls are made, the words are told, the tokens are counted."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from runners.dialects import DIALECTS, USAGE, Dialect
from runners.endpoint import Reply, scripted, serving, streamed
from toolgrove import Config, Grove
from waiting import DEADLINE

pytestmark = pytest.mark.anyio
KEY = "sk-canary-51d0"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)


def config(url: str, **runner: Any) -> Config:
    return Config.model_validate(
        {
            "agents": {"researcher": {"tools": ["get_node"]}},
            "runner": {"kind": "openai", "url": url, "model": "m", **runner},
        }
    )


async def events(config: Config) -> list[dict[str, Any]]:
    with anyio.fail_after(DEADLINE):
        async with Grove(config) as grove:
            return [event async for event in grove.run("researcher", "Look.")]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
async def test_an_endpoint_is_understood(dialect: Dialect) -> None:
    async with serving(scripted(dialect.calls, dialect.words)) as endpoint:
        told = await events(config(endpoint.url, **dialect.runner))
    kinds = [event["type"] for event in told]
    assert kinds.count("tool_succeeded") == 2
    said = "".join(event["text"] for event in told if event["type"] == "text")
    assert said.removeprefix("Let me look.") == "All well."
    ended = told[-1]
    assert (ended["type"], ended["outcome"], ended["output"]) == ("run_finished", "success", "All well.")
    twice = {"m": {"input": 2 * USAGE["prompt_tokens"], "output": 2 * USAGE["completion_tokens"]}}
    assert ended["usage"] == (twice if dialect.counts else {})
    echoed, *results = endpoint.requests[1].body["messages"][2:]
    ids = [call["id"] for call in echoed["tool_calls"]]
    assert len(set(ids)) == 2
    assert [result["tool_call_id"] for result in results] == ids


async def test_what_a_model_thought_and_signed_comes_back_with_the_results() -> None:
    async with serving(scripted(DIALECTS["vllm"].calls, DIALECTS["vllm"].words)) as endpoint:
        await events(config(endpoint.url))
    assert endpoint.requests[1].body["messages"][2]["reasoning_content"] == "First I look."
    async with serving(scripted(DIALECTS["gemini"].calls, DIALECTS["gemini"].words)) as endpoint:
        await events(config(endpoint.url))
    first, _ = endpoint.requests[1].body["messages"][2]["tool_calls"]
    assert first["extra_content"] == {"google": {"thought_signature": "c2ln"}}


async def test_headers_and_query_of_azure_are_sent_and_no_other_key() -> None:
    dialect = DIALECTS["azure"]
    async with serving(scripted(dialect.words)) as endpoint:
        await events(config(endpoint.url, **dialect.runner))
    (request,) = endpoint.requests
    assert request.path == "/v1/chat/completions?api-version=2024-10-21"
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    ("url", "field"),
    [("https://api.openai.com/v1", "max_completion_tokens"), ("http://localhost:11434/v1", "max_tokens")],
)
def test_the_longest_answer_has_the_name_that_the_endpoint_knows(url: str, field: str) -> None:
    from toolgrove.runners.openai import OpenAIRunner

    assert OpenAIRunner(url=url, model="m")._length == field


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(lambda whole: Reply(body=whole.body[:-60], headers=whole.headers), id="cut off"),
        pytest.param(lambda whole: streamed("data: {nonsense\n\n"), id="not JSON"),
        pytest.param(lambda whole: streamed(), id="empty"),
        pytest.param(lambda whole: streamed({"choices": [{"delta": {"tool_calls": [7]}}]}), id="no call"),
    ],
)
async def test_a_stream_that_breaks_off_or_makes_no_sense_ends_the_run(broken: Any) -> None:
    async with serving(scripted(broken(DIALECTS["anthropic"].words))) as endpoint:
        ended = (await events(config(endpoint.url)))[-1]
    assert (ended["outcome"], ended["error"]["code"]) == ("failure", "internal")
    assert ended["error"]["reason"] in ("model_answer", "model_unavailable")


async def test_an_error_in_the_middle_of_a_stream_is_told_without_its_prose() -> None:
    failing = streamed({"choices": [{"delta": {"content": "Wel"}}]}, {"error": {"code": 502, "message": f"no {KEY}"}})
    async with serving(lambda request: failing) as endpoint:
        told = await events(config(endpoint.url))
    assert told[-1]["error"]["reason"] == "model_unavailable"
    assert KEY not in str(told)


@pytest.mark.parametrize("status", [500, 502, 504, 529])
async def test_an_endpoint_that_failed_is_asked_again(status: int) -> None:
    soon = {"Retry-After": "0"}
    async with serving(scripted(Reply(status=status, headers=soon), DIALECTS["gemini"].words)) as endpoint:
        assert (await events(config(endpoint.url)))[-1]["outcome"] == "success"
    assert len(endpoint.requests) == 2
