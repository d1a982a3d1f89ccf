"""The runner: can it be built, and does its model answer?"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio.to_thread

from toolgrove.cli.checks.finding import Finding, Level
from toolgrove.config import Config
from toolgrove.errors import GroveError
from toolgrove.grove import Grove
from toolgrove.types import Arguments, ModelSettings, Result, ToolSpec

_TASK = "Answer with the one word ok."


async def check(config: Config, grove: Grove, *, probe: bool) -> AsyncIterator[Finding]:
    """What keeps the runner from working; with `probe`, its model is asked for one answer."""
    if config.runner is None:
        return
    asked = _Asked()
    try:
        runner = await anyio.to_thread.run_sync(grove.runner)
        if probe:
            await runner.run(asked, _TASK)
    except GroveError as error:
        yield _finding("error", config.runner.model, str(error))
        return
    text = f"answered ({asked.cost})" if probe else "is named; doctor --probe asks it for one answer"
    yield _finding("ok" if probe else "note", config.runner.model, text)


class _Asked:
    """An agent without tools, whose model is asked whether it is there."""

    name = "doctor"
    description = ""
    depth = 0
    tools: tuple[ToolSpec, ...] = ()
    settings = ModelSettings()
    cost = "it did not say how many tokens that took"

    async def call(self, name: str, arguments: Arguments | None = None) -> Result:
        return {"error": {"code": "not_found", "message": f"There is no tool {name!r}."}}

    async def refuse(self, name: str, why: GroveError) -> Result:
        return why.to_json()

    def openai_tools(self) -> list[dict[str, Any]]:
        return []

    def said(self, text: str) -> None:
        """Whatever it says, it is there."""

    def used(self, model: str, *, input: int, output: int) -> None:
        self.cost = f"{input} tokens in, {output} out"


def _finding(level: Level, model: str, message: str) -> Finding:
    return Finding(area="runner", level=level, subject=model, message=message)
