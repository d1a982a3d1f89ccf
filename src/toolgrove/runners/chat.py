"""What a chat-completions endpoint answers, read strictly where we rely on it and kept whole where we hand it back."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from toolgrove.notation import strict_json


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
        value = strict_json.decode_utf8(self.arguments.encode())
        if not isinstance(value, dict):
            raise ValueError("they are not an object")
        return value


class ToolCall(_Part):
    """One call that the model asks for."""

    id: str
    type: str = "function"
    function: Function


class Message(_Part):
    """A message of the model: text, a refusal, or calls that it asks for."""

    content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None

    def echo(self) -> dict[str, Any]:
        """The message as the endpoint wants to see it again before the results."""
        calls = [call.model_dump() for call in self.tool_calls or ()]
        return {"role": "assistant", "content": self.content, "tool_calls": calls}


class ModelAnswer(_Part):
    """The choice that we asked for."""

    message: Message
    finish_reason: str | None = None


class _Completion(_Part):
    choices: list[ModelAnswer] = Field(min_length=1)


def read_answer(body: bytes) -> ModelAnswer:
    """The answer in a response body; ValueError if there is none."""
    return _Completion.model_validate(strict_json.decode_utf8(body)).choices[0]
