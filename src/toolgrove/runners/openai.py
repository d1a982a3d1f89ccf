"""Drives an agent with any OpenAI-compatible endpoint: ask the model, make the calls it asks for, ask again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import httpx2
from anyio import to_thread

from toolgrove.errors import BatchTooLarge, RunFailed, UnreadableArguments
from toolgrove.runners.chat import ModelAnswer, ToolCall
from toolgrove.runners.completions import Completions
from toolgrove.runners.model_text import failed, is_of_mcp, model_text
from toolgrove.runners.runner import RunnableAgent, instructions
from toolgrove.types import Arguments, Result

MAX_CALLS = 16
MAX_RESULT = 100_000
_CUT_SHORT = {
    "length": "its answer was cut off at the model's length limit: give a smaller task, or a model that can say more",
    "content_filter": "the endpoint's content filter held its answer back: word the task differently",
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
    ) -> None:
        self._url = url.rstrip("/") + "/chat/completions"
        self._model = model
        self._api_key = api_key
        self._max_steps = max_steps
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._trust = httpx2.create_ssl_context()  # reading the certificates takes longer than a short run

    async def run(self, agent: RunnableAgent, task: str) -> Result:
        """Run the agent until the model answers without asking for a tool."""
        request: dict[str, Any] = {"model": self._model}
        tools = agent.openai_tools()
        if tools:  # endpoints refuse an empty list
            request["tools"] = tools
        messages: list[Message] = [
            {"role": "system", "content": instructions(agent)},
            {"role": "user", "content": task},
        ]
        key = await to_thread.run_sync(self._api_key, abandon_on_cancel=True)  # a keyring may ask a person first
        async with httpx2.AsyncClient(timeout=self._timeout, verify=self._trust) as http:
            completions = Completions(http, self._url, key, timeout=self._timeout, max_bytes=self._max_bytes)
            for step in range(1, self._max_steps + 1):
                answer = await completions.ask({**request, "messages": messages})
                _check(agent, answer)
                if not answer.message.tool_calls:
                    return {"output": answer.message.content or "", "steps": step}
                messages += [answer.message.echo(), *await _carry_out(agent, answer.message.tool_calls)]
        raise RunFailed(
            f"{agent.name!r} was stopped after {self._max_steps} answers of its model without a final one. "
            "Give it a smaller task; the operator can raise runner.maxSteps.",
            reason="max_steps",
            steps=self._max_steps,
        )


def _check(agent: RunnableAgent, answer: ModelAnswer) -> None:
    """Fail where the model's answer cannot be used."""
    message = answer.message
    problem = _CUT_SHORT.get(answer.finish_reason or "")
    if problem is None and message.refusal:
        problem = f"it declined: {message.refusal[:500]}"
    if problem is None and not (message.tool_calls or message.content):
        problem = "it said nothing: try again, or word the task differently"
    if problem is not None:
        raise RunFailed(f"The model of {agent.name!r} gave no whole answer; {problem}.", reason="model_answer")


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
                results[index] = BatchTooLarge(argument="tool_calls", count=len(calls), limit=MAX_CALLS).to_json()
    return [
        {"role": "tool", "tool_call_id": call.id, "content": _text(result)}
        for call, result in zip(calls, results, strict=True)
    ]


async def _result(agent: RunnableAgent, call: ToolCall) -> Result:
    name = call.function.name
    try:
        arguments: Arguments = call.function.read()
    except ValueError as problem:
        return UnreadableArguments(tool=name, problem=str(problem)).to_json()
    return await agent.call(name, arguments)


def _text(result: Result) -> str:
    text = model_text(result)
    if failed(result) and is_of_mcp(result):
        text = f"The tool failed: {text}"
    if len(text) <= MAX_RESULT:
        return text
    return f"{text[:MAX_RESULT]} … cut here: the result has {len(text)} characters. Ask for less at a time."
