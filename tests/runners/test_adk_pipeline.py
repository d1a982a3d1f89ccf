"""Google's ADK as a runner: what its pipeline is built with, and how it ends when it does not end well."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest
from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from runners.adk_model import declared, thinking
from runners.brain import Ask, Say, in_turn
from toolgrove import Agent, Config, Grove
from toolgrove.config import RunnerConfig
from toolgrove.errors import RunFailed, RunnerMissing
from toolgrove.runners import from_config
from toolgrove.runners.adk import AdkRunner

pytestmark = pytest.mark.anyio
DEADLINE = 30


async def an_agent(**definition: Any) -> Agent:
    settings = {"tools": ["get_node", "search"], **definition}
    return await Grove(Config.model_validate({"agents": {"data-collector": settings}})).agent("data-collector")


class Answering(BaseLlm):
    """Gives one answer, whatever it is asked."""

    model: str = "scripted"
    answer: LlmResponse

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield self.answer


class Broken(BaseLlm):
    """Fails inside."""

    model: str = "broken"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        raise ConnectionError("/srv/keys/gemini: refused")
        yield


class Silent(BaseLlm):
    """Never answers; tells when it is asked and when it is let go."""

    model: str = "silent"
    asked: Any
    let_go: Any

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.let_go.set()
        yield LlmResponse()


@pytest.mark.requirement("POOL-002-03", "POOL-002-10")
async def test_the_pipeline_has_the_resolved_tools_and_no_other_in_every_turn() -> None:
    brain, _ = in_turn(Ask(("remove_node", {"nodeId": "root"})), Ask(("get_node", {"nodeId": "root"})), Say("done"))
    model = thinking(brain)
    agent = await an_agent(role="editor")
    await AdkRunner(model).run(agent, "Look.")
    assert len(model.requests) == 3
    schemas = {spec.name: dict(spec.input_schema) for spec in agent.tools}
    for request in model.requests:
        assert set(request.tools_dict) == set(schemas) == {"get_node", "search"}
        assert {name: one.parameters_json_schema for name, one in declared(request).items()} == schemas
        assert {name: one.description for name, one in declared(request).items()} == {
            spec.name: spec.description for spec in agent.tools
        }


@pytest.mark.parametrize(
    "answer",
    [
        LlmResponse(error_code="SAFETY", error_message="held back"),
        LlmResponse(
            content=types.Content(role="model", parts=[types.Part(text="The begin")]),
            finish_reason=types.FinishReason.MAX_TOKENS,
        ),
    ],
)
async def test_an_answer_that_is_not_whole_ends_the_run(answer: LlmResponse) -> None:
    agent = await an_agent()
    with pytest.raises(RunFailed, match=r"did not finish its answer \((SAFETY|MAX_TOKENS)\)") as failure:
        await AdkRunner(Answering(answer=answer)).run(agent, "Look.")
    assert failure.value.facts["reason"] == "model_answer"


async def test_thoughts_are_no_part_of_the_answer() -> None:
    parts = [types.Part(text="Hm. ", thought=True), types.Part(text="It is "), types.Part(text="done.")]
    answer = LlmResponse(content=types.Content(role="model", parts=parts))
    assert await AdkRunner(Answering(answer=answer)).run(await an_agent(), "Look.") == {
        "output": "It is done.",
        "steps": 1,
    }


async def test_a_model_that_breaks_is_reported_without_its_words() -> None:
    agent = await an_agent()
    with pytest.raises(RunFailed, match="cannot be reached, or failed") as failure:
        await AdkRunner(Broken()).run(agent, "Look.")
    assert failure.value.retryable
    assert "/srv" not in str(failure.value.to_json())


async def test_a_model_that_never_answers_is_given_up_in_time() -> None:
    model = Silent(asked=anyio.Event(), let_go=anyio.Event())
    agent = await an_agent()
    with anyio.fail_after(DEADLINE), pytest.raises(RunFailed, match=r"within 0\.05 s") as failure:
        await AdkRunner(model, timeout=0.05).run(agent, "Look.")
    assert failure.value.facts["reason"] == "timeout"
    assert model.let_go.is_set()


async def test_cancelling_a_run_lets_the_model_go() -> None:
    model = Silent(asked=anyio.Event(), let_go=anyio.Event())
    agent = await an_agent()
    with anyio.fail_after(DEADLINE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(AdkRunner(model).run, agent, "Look.")
            await model.asked.wait()
            tasks.cancel_scope.cancel()
        await model.let_go.wait()


def test_a_model_can_be_named_in_the_file() -> None:
    section = RunnerConfig(kind="adk", model="gemini-2.5-flash")
    assert isinstance(from_config(section, lambda template, field: template), AdkRunner)


def test_a_model_that_the_adk_does_not_know_is_an_error_that_names_it() -> None:
    with pytest.raises(RunnerMissing, match="knows no model 'abacus'") as failure:
        from_config(RunnerConfig(kind="adk", model="abacus"), lambda template, field: template)
    assert failure.value.facts["reason"] == "no_runner"


def test_without_google_adk_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("google.adk", "toolgrove.runners.adk"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google.adk", None)
    with pytest.raises(RunnerMissing, match=r"installs toolgrove\[adk\]"):
        from_config(RunnerConfig(kind="adk", model="gemini-2.5-flash"), lambda template, field: template)
