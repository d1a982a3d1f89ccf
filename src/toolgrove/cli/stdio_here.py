"""One agent over stdin and stdout, with the whole project in this process."""

from __future__ import annotations

import logging
from functools import partial
from importlib.metadata import version

import anyio

from mcp_serve.signals import LAST_WORDS, Stop
from mcp_serve.stdio import run_stdio
from toolgrove.agent import Agent
from toolgrove.cli.hang_up import hang_up
from toolgrove.cli.last_exit import CHILDREN, serve_and_exit
from toolgrove.cli.patience import all_asked, still_starting
from toolgrove.config import ConfigFile
from toolgrove.errors import AgentNotFound
from toolgrove.events import Event, PoolChanged
from toolgrove.grove import Grove
from toolgrove.mcp_face import McpFace
from toolgrove.reload import follow, record_start

log = logging.getLogger("toolgrove.stdio")
_ANSWERING = 0.6
"""Seconds of those that calls have in which the ones that were cut off are answered."""


def serve(project: ConfigFile, agent: str, wait: float) -> int:
    """Serve until the client leaves or a signal comes."""
    return serve_and_exit(partial(_run, project, agent, wait))


async def _run(project: ConfigFile, name: str, wait: float, stop: Stop) -> None:
    async with Grove(project.config, patience=wait) as grove:
        try:
            agent = await _ready(grove, name, stop)
            if agent is not None:
                await _serve_agent(project, grove, agent, stop)
        finally:
            grove.hurry(stop.left(CHILDREN))


async def _ready(grove: Grove, name: str, stop: Stop) -> Agent | None:
    """The agent with the tools of every server that starts; None if a signal comes first, or the client leaves."""
    if name not in grove.config.agents:
        raise AgentNotFound(name, list(grove.config.agents))
    agent: Agent | None = None
    async with anyio.create_task_group() as tasks:

        async def give_up() -> None:
            await stop.wait()
            tasks.cancel_scope.cancel()

        async def leave() -> None:
            if await hang_up():  # it asked first: whoever pipes requests in waits for the answers
                await anyio.sleep(grove.config.startup_budget)
            log.info("The client left while servers were still starting.")
            tasks.cancel_scope.cancel()

        tasks.start_soon(give_up)
        tasks.start_soon(leave)
        await all_asked(grove, lambda late: log.info("%s", still_starting(late)))
        agent = await grove.agent(name)
        tasks.cancel_scope.cancel()
    return agent


async def _serve_agent(project: ConfigFile, grove: Grove, agent: Agent, stop: Stop) -> None:
    name = agent.name
    face = McpFace(agent, version("toolgrove"))
    async with anyio.create_task_group() as tasks:

        async def renew() -> None:
            if name in grove.config.agents:
                face.use(await grove.agent(name))
            else:
                stop.set()

        def hear(event: Event) -> None:
            tasks.start_soon(renew)

        grove.listen(hear, PoolChanged)
        await record_start(project, grove)
        tasks.start_soon(follow, project, grove)
        tasks.start_soon(_cut_off, grove, stop)
        await run_stdio(face.endpoint, stop)
        if name not in grove.config.agents:
            raise AgentNotFound(name, list(grove.config.agents))
        tasks.cancel_scope.cancel()


async def _cut_off(grove: Grove, stop: Stop) -> None:
    """Tell who waits what is known of a call that does not end in time."""
    await stop.wait()
    await anyio.sleep(stop.left(LAST_WORDS + _ANSWERING))
    grove.cut_off()
