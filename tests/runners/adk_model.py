"""A model for Google's ADK that needs no network."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.models import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import Field

from runners.brain import Brain, Say, Turn


class BrainModel(BaseLlm):
    """Answers as the brain does, and keeps every request of the pipeline."""

    model: str = "scripted"
    brain: Any
    requests: list[Any] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.requests.append(llm_request)
        thought = self.brain(_turn(llm_request))
        if isinstance(thought, Say):
            parts = [types.Part(text=thought.text)] if thought.text else []
        else:
            parts = [types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in thought]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def thinking(brain: Brain) -> BrainModel:
    return BrainModel(brain=brain)


def declared(request: LlmRequest) -> dict[str, types.FunctionDeclaration]:
    """What the model is told that it can call."""
    tools = request.config.tools or []
    return {
        declaration.name or "": declaration
        for tool in tools
        if isinstance(tool, types.Tool)
        for declaration in tool.function_declarations or ()
    }


def _turn(request: LlmRequest) -> Turn:
    parts = [part for content in request.contents for part in content.parts or ()]
    return Turn(
        system=str(request.config.system_instruction),
        tools=tuple(declared(request)),
        task=next(part.text for part in parts if part.text),
        results=tuple(
            dict(part.function_response.response or {}) for part in parts if part.function_response is not None
        ),
    )
