"""`toolgrove stdio`: one agent over stdin and stdout, for desktop clients."""

from __future__ import annotations

import argparse
import asyncio
from importlib.metadata import version
from typing import Any

import anyio

from mcp_serve.signals import stop_on_signals
from mcp_serve.stdio import run_stdio
from toolgrove.cli.project import file
from toolgrove.cli.screen import Screen
from toolgrove.config import ConfigFile
from toolgrove.errors import AgentNotFound
from toolgrove.events import Event, PoolChanged
from toolgrove.grove import Grove
from toolgrove.mcp_face import McpFace
from toolgrove.reload import follow


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "stdio",
        parents=[shared],
        help="serve one agent to a desktop client",
        description="Serve one agent over stdin and stdout. Whoever starts this command is that agent: no token.",
    )
    parser.add_argument("--agent", required=True, metavar="AGENT", help="the agent")
    parser.set_defaults(run=_serve, verbose=True)


def _serve(chosen: argparse.Namespace, screen: Screen) -> int:
    anyio.run(_run, ConfigFile(file(chosen)), chosen.agent)
    return 0


async def _run(project: ConfigFile, name: str) -> None:
    stop = asyncio.Event()
    async with Grove(project.config) as grove, anyio.create_task_group() as tasks:
        face = McpFace(await grove.agent(name), version("toolgrove"))

        async def renew() -> None:
            if name in grove.config.agents:
                face.use(await grove.agent(name))
            else:
                stop.set()

        def hear(event: Event) -> None:
            if isinstance(event, PoolChanged):
                tasks.start_soon(renew)

        grove.listen(hear)
        tasks.start_soon(follow, project, grove)
        with stop_on_signals(stop, asyncio.get_running_loop()):
            await run_stdio(face.endpoint, stop)
        if name not in grove.config.agents:
            raise AgentNotFound(name, list(grove.config.agents))
        tasks.cancel_scope.cancel()
