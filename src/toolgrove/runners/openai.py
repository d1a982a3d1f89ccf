"""Drives an agent with any OpenAI-compatible endpoint: ask the model, make the calls it asks for, ask again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from anyio import to_thread

from toolgrove.errors import BatchTooLarge, RunFailed, UnreadableArguments
from toolgrove.runners.chat import ModelAnswer, ToolCall
from toolgrove.runners.completions import Completions
from toolgrove.runners.model_text import failed, is_of_mcp, model_text
from toolgrove.runners.runner import RunnableAgent, instructions, stopped
from toolgrove.types import Arguments, Result

MAX_CALLS = 16
MAX_RESULT = 100_000
_OPENAI = ("openai.com", "openai.azure.com")
_CUT_SHORT = {
    "length": "its answer was cut off at the model's length limit. Give a smaller task, or a model that can say more",
    "content_filter": "the endpoint's content filter blocked its answer. Describe the task differently",
}
Message = dict[str, Any]


class OpenAIRunner:
    """A plain tool-calling loop; the model can do nothing but call the agent's tools and answer."""

    def __init__(
        self,
        *,
        url: str,
        model: str,
        api_key: Callable[[], str] = lambda: "",
        max_steps: int = 20,
        timeout: float = 120.0,
        max_bytes: int = 4_000_000,
        headers: Callable[[], Mapping[str, str]] = dict,
        query: Mapping[str, str] | None = None,
        stream: bool = True,
    ) -> None:
        self._url = str(httpx2.URL(url.rstrip("/") + "/chat/completions", params=query or None))
        self._length = _length_field(url)
        self._model = model
        self._api_key = api_key
        self._more_headers = headers
        self._stream = stream
        self._max_steps = max_steps
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._trust = httpx2.create_ssl_context()  # reading the certificates takes longer than a short run

    async def run(self, agent: RunnableAgent, task: str) -> Result:
        """Run the agent until the model answers without asking for a tool."""
        request = self._request(agent)
        messages: list[Message] = [
            {"role": "system", "content": instructions(agent)},
            {"role": "user", "content": task},
        ]
        max_steps = agent.settings.max_turns or self._max_steps
        async with self._completions() as completions:
            for step in range(1, max_steps + 1):
                answer = await completions.ask({**request, "messages": messages}, agent.said)
                if answer.usage is not None:
                    counted = answer.usage
                    agent.used(request["model"], input=counted.prompt_tokens, output=counted.completion_tokens)
                _check(agent, answer)
                if not answer.message.tool_calls:
                    return {"output": answer.message.content or "", "steps": step}
                messages += [answer.message.echo(), *await _carry_out(agent, answer.message.tool_calls)]
        raise stopped(agent, max_steps)

    def _request(self, agent: RunnableAgent) -> dict[str, Any]:
        """All that is asked for but the messages; endpoints refuse an empty list of tools."""
        settings, tools = agent.settings, agent.openai_tools()
        return {
            "model": settings.model or self._model,
            **({"tools": tools} if tools else {}),
            **({"temperature": settings.temperature} if settings.temperature is not None else {}),
            **({self._length: settings.max_output_tokens} if settings.max_output_tokens is not None else {}),
            **({"stream": True, "stream_options": {"include_usage": True}} if self._stream else {}),
        }

    @asynccontextmanager
    async def _completions(self) -> AsyncIterator[Completions]:
        key, headers = await to_thread.run_sync(self._secrets, abandon_on_cancel=True)  # a keyring may ask a person
        async with httpx2.AsyncClient(timeout=self._timeout, verify=self._trust) as http:
            yield Completions(http, self._url, key, headers=headers, timeout=self._timeout, max_bytes=self._max_bytes)

    def _secrets(self) -> tuple[str, Mapping[str, str]]:
        return self._api_key(), self._more_headers()


def _length_field(url: str) -> str:
    """How an endpoint calls the longest answer; OpenAI's newer models refuse the name that all others know."""
    return "max_completion_tokens" if httpx2.URL(url).host.endswith(_OPENAI) else "max_tokens"


def _check(agent: RunnableAgent, answer: ModelAnswer) -> None:
    """Fail where the model's answer cannot be used."""
    message = answer.message
    problem = _CUT_SHORT.get(answer.finish_reason or "")
    if problem is None and message.refusal:
        problem = f"it declined: {message.refusal}"
    if problem is None and not (message.tool_calls or message.content):
        problem = "it said nothing. Try again, or describe the task differently"
    if problem is not None:
        raise RunFailed(f"The model of {agent.name!r} did not finish its answer; {problem}.", reason="model_answer")


async def _carry_out(agent: RunnableAgent, calls: list[ToolCall]) -> list[Message]:
    """Make the calls side by side; the answers stand in the order asked."""
    results: list[Result] = [{}] * len(calls)

    async def carry_out(index: int, call: ToolCall) -> None:
        results[index] = await _result(agent, call)

    async with anyio.create_task_group() as tasks:
        for index, call in enumerate(calls):
            if index < MAX_CALLS:
                tasks.start_soon(carry_out, index, call)
            else:
                why = BatchTooLarge(argument="tool_calls", count=len(calls), limit=MAX_CALLS)
                results[index] = await agent.refuse(call.function.name, why)
    return [
        {"role": "tool", "tool_call_id": call.id, "content": _text(result)}
        for call, result in zip(calls, results, strict=True)
    ]


async def _result(agent: RunnableAgent, call: ToolCall) -> Result:
    name = call.function.name
    try:
        arguments: Arguments = call.function.read()
    except ValueError as problem:
        return await agent.refuse(name, UnreadableArguments(tool=name, problem=str(problem)))
    return await agent.call(name, arguments)


def _text(result: Result) -> str:
    text = model_text(result)
    if failed(result) and is_of_mcp(result):
        text = f"The tool failed: {text}"
    if len(text) <= MAX_RESULT:
        return text
    return f"{text[:MAX_RESULT]} … cut here: the result has {len(text)} characters. Ask for less at a time."
