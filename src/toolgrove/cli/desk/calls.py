"""Operations: a tool called as an agent, a task given to an agent's model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from toolgrove.cli.arguments import read_words
from toolgrove.grove import Grove
from toolgrove.types import Client


async def call(
    project: Grove,
    client: Client,
    *,
    agent: str,
    tool: str,
    words: Sequence[str] = (),
    arguments: dict[str, Any] | None = None,
) -> Any:
    """Call a tool through the whole gate, with the arguments as they are, or as somebody typed them."""
    resolved = await project.agent(agent)
    spec = next((one for one in resolved.granted if one.name == tool), None)
    given = arguments
    if given is None:
        given = read_words(words, None if spec is None else spec.input_schema.get("properties"))
    result = await resolved.call(tool, given, client=client)
    return {"result": result, "source": "" if spec is None else spec.source}


async def run(project: Grove, client: Client, *, agent: str, task: str) -> AsyncIterator[Any]:
    """Have an agent's model work on a task."""
    async for event in project.run(agent, task):
        yield event
