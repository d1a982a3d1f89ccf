"""`toolgrove stdio`: one agent over stdin and stdout, for desktop clients."""

from __future__ import annotations

import argparse
import asyncio
from importlib.metadata import version
from typing import Any

import anyio

from apcore_mcp.server.transport import run_stdio, stop_on_signals
from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen
from toolgrove.config import Config
from toolgrove.events import Event, PoolChanged
from toolgrove.faces import McpFace
from toolgrove.grove import Grove


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "stdio",
        parents=[shared],
        help="serve one agent to a desktop client",
        description="Serve one agent over stdin and stdout. Whoever starts this command is that agent: no token.",
    )
    parser.add_argument("--agent", required=True, metavar="AGENT", help="the agent")
    parser.set_defaults(run=_serve, verbose=True)


def _serve(chosen: argparse.Namespace, screen: Screen) -> int:
    anyio.run(_run, load(chosen), chosen.agent)
    return 0


async def _run(config: Config, name: str) -> None:
    stop = asyncio.Event()
    async with Grove(config) as grove, anyio.create_task_group() as tasks:
        face = McpFace(await grove.agent(name), version("toolgrove"))
        face.endpoint.loop = asyncio.get_running_loop()

        async def renew() -> None:
            face.use(await grove.agent(name))

        def follow(event: Event) -> None:
            if isinstance(event, PoolChanged):
                tasks.start_soon(renew)

        grove.listen(follow)
        with stop_on_signals(stop, asyncio.get_running_loop()):
            await run_stdio(face.endpoint, stop)
        tasks.cancel_scope.cancel()
