"""Drives an agent with Google's ADK: a pipeline in which only the agent's own tools are registered.

Importing this module needs google-adk, the extra `adk`; nothing else here imports it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import RunConfig
from google.adk.events import Event
from google.adk.models import BaseLlm, LLMRegistry
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner as Pipeline
from google.adk.sessions import InMemorySessionService
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from toolgrove.errors import GroveError, RunFailed, RunnerMissing
from toolgrove.runners.model_text import failed, is_of_mcp, model_text
from toolgrove.runners.runner import RunnableAgent, instructions, stopped
from toolgrove.types import Arguments, Result, ToolSpec

log = logging.getLogger("toolgrove.runners")
_APP = "toolgrove"
_WHOLE = (None, types.FinishReason.STOP)


class AdkRunner:
    """Builds a pipeline per run: one LlmAgent, one session in memory, the resolved tools and no other."""

    def __init__(self, model: str | BaseLlm, *, max_steps: int = 20, timeout: float = 120.0) -> None:
        self._model = model if isinstance(model, BaseLlm) else _named(model)
        self._max_steps = max_steps
        self._timeout = timeout

    async def run(self, agent: RunnableAgent, task: str) -> Result:
        """Run the agent until the model answers without asking for a tool."""
        settings = agent.settings
        inner = self._model if settings.model is None else _named(settings.model)
        model = _BoundedModel(model=inner.model, inner=inner, seconds=self._timeout)
        max_steps = settings.max_turns or self._max_steps
        try:
            output = await self._drive(agent, _pipeline(agent, model), task, max_steps)
        except GroveError:
            raise
        except LlmCallsLimitExceededError:
            raise stopped(agent, max_steps) from None
        except Exception:
            log.exception("the ADK pipeline of %s failed", agent.name)
            raise RunFailed(
                f"The model of {agent.name!r} cannot be reached, or failed; the operator's log has the detail.",
                reason="model_unavailable",
                retryable=True,
            ) from None
        if not output:
            raise RunFailed(
                f"The model of {agent.name!r} did not finish its answer; it said nothing. Try again, or describe the "
                "task differently.",
                reason="model_answer",
            )
        return {"output": output, "steps": model.answers}

    async def _drive(self, agent: RunnableAgent, pipeline: Pipeline, task: str, max_steps: int) -> str:
        last: Event | None = None
        async with pipeline:
            session = await pipeline.session_service.create_session(app_name=_APP, user_id=_APP)
            events = pipeline.run_async(
                user_id=_APP,
                session_id=session.id,
                new_message=types.Content(role="user", parts=[types.Part(text=task)]),
                run_config=RunConfig(max_llm_calls=max_steps),
            )
            async with aclosing(events):
                async for event in events:
                    _tell(agent, event)
                    if event.is_final_response():
                        last = event
        return "" if last is None else _text(last)  # only now: what ends a run is told as an event first


def _tell(agent: RunnableAgent, event: Event) -> None:
    """Tell whoever follows the run what an event says, and what it cost."""
    agent.said(_words(event))
    used = event.usage_metadata
    if used is not None:
        model = event.model_version or agent.settings.model or ""
        agent.used(model, input=used.prompt_token_count or 0, output=used.candidates_token_count or 0)


def _named(model: str) -> BaseLlm:
    try:
        return LLMRegistry.new_llm(model)
    except ValueError:
        raise RunnerMissing(
            problem=f"the ADK knows no model {model!r}, or the package for it is not installed",
            remedy="names one that it knows in runner.model, or installs anthropic (for Claude) or litellm",
        ) from None


def _pipeline(agent: RunnableAgent, model: BaseLlm) -> Pipeline:
    async def not_found(tool: BaseTool, args: Arguments, tool_context: ToolContext, error: Exception) -> Result | None:
        # A name that the pipeline does not know: the agent refuses it in its own words, and the audit has it.
        return None if isinstance(tool, _AgentTool) else await agent.call(tool.name, args)

    return Pipeline(
        app_name=_APP,
        session_service=InMemorySessionService(),
        agent=LlmAgent(
            name="agent_" + re.sub(r"\W", "_", agent.name),
            model=model,
            # A function, since the ADK fills in what stands in braces of a text.
            instruction=lambda context: instructions(agent),
            tools=[_AgentTool(agent, spec) for spec in agent.tools],
            generate_content_config=types.GenerateContentConfig(
                temperature=agent.settings.temperature, max_output_tokens=agent.settings.max_output_tokens
            ),
            on_tool_error_callback=not_found,
            disallow_transfer_to_parent=True,
            disallow_transfer_to_peers=True,
        ),
    )


class _AgentTool(BaseTool):
    """One of the agent's tools; to run it is to call it through the agent."""

    def __init__(self, agent: RunnableAgent, spec: ToolSpec) -> None:
        super().__init__(name=spec.name, description=spec.description)
        self._agent = agent
        self._spec = spec

    def _get_declaration(self) -> types.FunctionDeclaration:
        schema = dict(self._spec.input_schema)
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def run_async(self, *, args: Arguments, tool_context: ToolContext) -> Result:
        result = await self._agent.call(self.name, args)
        return {"error" if failed(result) else "output": model_text(result)} if is_of_mcp(result) else result


class _BoundedModel(BaseLlm):
    """A model that answers in time or not at all, and counts its answers."""

    inner: BaseLlm
    seconds: float
    answers: int = 0

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.answers += 1
        async with aclosing(self.inner.generate_content_async(llm_request, stream)) as parts:
            while (part := await self._next(parts)) is not None:
                yield part

    async def _next(self, parts: AsyncGenerator[LlmResponse, None]) -> LlmResponse | None:
        try:
            with anyio.fail_after(self.seconds):
                return await anext(parts, None)
        except TimeoutError:
            raise RunFailed(
                f"The model did not answer within {self.seconds:g} s. Try again later, or with a smaller task.",
                reason="timeout",
                retryable=True,
            ) from None


def _text(event: Event) -> str:
    """What the model says at the end; RunFailed if that is not a whole answer."""
    problem = event.error_code or (None if event.finish_reason in _WHOLE else event.finish_reason)
    if problem is not None:
        word = str(getattr(problem, "name", problem))
        known = f" ({word})" if re.fullmatch(r"[A-Z_]{1,64}", word) else ""
        raise RunFailed(
            f"The model did not finish its answer{known}. Give a smaller task, or describe it differently.",
            reason="model_answer",
        )
    return _words(event)


def _words(event: Event) -> str:
    parts = (event.content.parts if event.content is not None else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)
