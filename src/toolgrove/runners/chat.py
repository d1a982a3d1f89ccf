"""What a chat-completions endpoint answers, read strictly where we rely on it and kept whole where we hand it back."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from toolgrove.notation import strict_json

_GIVEN_BACK = ("reasoning_content", "reasoning_details")
"""What a model thought before it asked for calls: endpoints that tell it want to see it again with their results."""


class _Part(BaseModel):
    """Endpoints add fields of their own, and some want them back."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)


class Function(_Part):
    """Which tool the model asks for; the arguments are JSON text, though some endpoints send the object."""

    name: str
    arguments: str | dict[str, Any] = ""

    def read(self) -> dict[str, Any]:
        """The arguments; ValueError says what is wrong with them."""
        if isinstance(self.arguments, dict):
            return self.arguments
        if not self.arguments.strip():
            return {}
        value = strict_json.decode(self.arguments, unique=True)
        if not isinstance(value, dict):
            raise ValueError("they are not an object")
        return value


class ToolCall(_Part):
    """One call that the model asks for; the `id` is ours where the endpoint gave none."""

    id: str
    type: str = "function"
    function: Function


class Message(_Part):
    """A message of the model: text, a refusal, or calls that it asks for."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None

    @field_validator("content", mode="before")
    @classmethod
    def _in_one_piece(cls, content: Any) -> Any:
        return words(content) if isinstance(content, list) else content

    @field_validator("tool_calls", mode="before")
    @classmethod
    def _with_ids(cls, calls: Any) -> Any:
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            return calls
        return [{**call, "id": call.get("id") or f"call_{number}"} for number, call in enumerate(calls, 1)]

    def echo(self) -> dict[str, Any]:
        """The message as the endpoint wants to see it again before the results."""
        calls = [call.model_dump() for call in self.tool_calls or ()]
        extra = self.model_extra or {}
        thoughts = {name: extra[name] for name in _GIVEN_BACK if extra.get(name)}
        return {"role": "assistant", "content": self.content, **thoughts, "tool_calls": calls}


class Usage(_Part):
    """The tokens of one answer, as the endpoint counts them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


class ModelAnswer(_Part):
    """The choice that we asked for."""

    message: Message
    finish_reason: str | None = None
    usage: Usage | None = None


class _Completion(_Part):
    choices: list[ModelAnswer] = Field(min_length=1)
    usage: Usage | None = None


def read_answer(completion: Any) -> ModelAnswer:
    """The answer in a completion; ValueError if there is none."""
    read = _Completion.model_validate(completion)
    return read.choices[0].model_copy(update={"usage": read.usage})


def words(content: Any) -> str:
    """What a content says, which some endpoints send in parts; what a model thinks is not part of it."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type", "text") == "text"]
    return "".join(text for text in texts if isinstance(text, str))
