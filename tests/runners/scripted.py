"""A runner without a model: the task is the list of calls to make, so that a test says who does what through whom."""

from __future__ import annotations

import json
from typing import Any

from toolgrove.runners import RunnableAgent
from toolgrove.tools import DECLARATIONS

Script = list[tuple[str, dict[str, Any]]]


class Scripted:
    """Makes the calls of its task one after the other; the output is the JSON list of their answers."""

    async def run(self, agent: RunnableAgent, task: str) -> dict[str, Any]:
        return {"output": json.dumps([await made(agent, name, arguments) for name, arguments in json.loads(task)])}


async def made(agent: RunnableAgent, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer to a call; a change comes with the version that is current for this agent."""
    if name in DECLARATIONS and DECLARATIONS[name].mutates and "versionToken" not in arguments:
        looked = await agent.call("get_node", {"nodeId": "root"})
        if "error" in looked:
            return looked
        arguments = {**arguments, "versionToken": looked["version"]}
    return await agent.call(name, arguments)


def through(path: list[str], *calls: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The one call by which the last agent of a path makes these calls, each agent sent by the one before."""
    agent, *onward = path
    script = [through(onward, *calls)] if onward else list(calls)
    return "spawn_agents", {"agents": [{"agent": agent, "input": json.dumps(script)}]}


def answers(result: dict[str, Any], path: list[str]) -> list[dict[str, Any]]:
    """What the calls at the end of a path were answered; the first failure on the way there instead."""
    for _ in path:
        if "error" in result:
            return [result]
        (one,) = result["results"]
        if "error" in one:
            return [one]
        found: list[dict[str, Any]] = json.loads(one["output"])
        result = found[0]
    return found
