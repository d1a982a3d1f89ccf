"""`toolgrove serve`: the project over HTTP, every agent at its own address, the console for the operator."""

from __future__ import annotations

import argparse
import asyncio
import logging
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio

from apcore_mcp.server.transport import run_http, stop_on_signals
from toolgrove.cli.project import DEFAULT
from toolgrove.cli.screen import Screen, line, table
from toolgrove.config import ConfigFile
from toolgrove.grove import Grove
from toolgrove.store.tokens import OPERATOR, Tokens

log = logging.getLogger("toolgrove.serve")
LOOK = 1.0
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "serve",
        parents=[shared],
        help="serve every agent over MCP, with a console for you",
        description="Serve the project. Every agent and you get a token at the first start, shown this once.",
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="CONFIG", help=f"the project file ({DEFAULT})")
    parser.add_argument("--host", default="127.0.0.1", help="bind address (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port (8000)")
    parser.add_argument(
        "--allowed-host", action="append", default=[], metavar="NAME", help="another name of this host (repeatable)"
    )
    parser.add_argument(
        "--no-tokens-on-loopback", action="store_true", help="let everybody on this machine in without a token"
    )
    parser.set_defaults(run=_serve, verbose=True)


def _serve(chosen: argparse.Namespace, screen: Screen) -> int:
    anonymous: bool = chosen.no_tokens_on_loopback
    if anonymous and chosen.host not in LOOPBACK:
        raise ValueError(f"--no-tokens-on-loopback serves loopback only, not {chosen.host}; leave one of them out")
    file = ConfigFile(chosen.file or chosen.config or DEFAULT)
    family = socket.AF_INET6 if ":" in chosen.host else socket.AF_INET
    try:
        listening = socket.create_server((chosen.host, chosen.port), family=family, backlog=2048)
    except OSError as error:
        raise ValueError(
            f"cannot listen on {chosen.host}:{chosen.port}: {error.strerror or error}. "
            "Stop what uses the port, or name another with --port."
        ) from None
    with listening:
        anyio.run(_run, file, chosen, listening, screen)
    return 0


async def _run(file: ConfigFile, chosen: argparse.Namespace, listening: socket.socket, screen: Screen) -> None:
    stop = asyncio.Event()
    anonymous: bool = chosen.no_tokens_on_loopback
    with stop_on_signals(stop, asyncio.get_running_loop()):  # while it starts, too: its servers run already
        async with Grove(file.config) as grove:
            gateway = grove.gateway(host=chosen.host, allowed_hosts=chosen.allowed_host, anonymous=anonymous)
            app = gateway.app
            async with app.router.lifespan_context(app), anyio.create_task_group() as tasks:
                host, port = listening.getsockname()[:2]
                address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
                _greet(grove, address, anonymous, screen)
                tasks.start_soon(_follow, file, grove, screen)
                await run_http(app, gateway.endpoints, listening, stop)
                tasks.cancel_scope.cancel()


async def _follow(file: ConfigFile, grove: Grove, screen: Screen) -> None:
    """Take every good change of the project file; a bad one keeps the last good one running."""
    while True:
        await anyio.sleep(LOOK)
        if not file.touched():
            continue
        outcome = file.reload()
        if outcome.problem:
            log.error("%s", outcome.problem)
        elif outcome.changed:
            await grove.reload(outcome.config)
            log.info("the project file was read again")
            for holder, token in issue_missing(grove.tokens, grove.config.agents).items():
                screen.say(f"Token of {holder} (shown this once): {token}", "bold")


def _greet(grove: Grove, address: str, anonymous: bool, screen: Screen) -> None:
    made = {} if anonymous else issue_missing(grove.tokens, grove.config.agents)
    token = made.get(OPERATOR)
    console = f"{address}/console" + (f"#token={token}" if token else "")
    agents = {name: f"{address}/agents/{name}/mcp" for name in grove.config.agents}
    form = {"console": console, "agents": agents, "tokens": made}
    shown = table("AGENT", "ADDRESS", "TOKEN (shown this once)" if made else "")
    for name, url in agents.items():
        shown.add_row(line(name), line(url), line(made.get(name, "")))
    screen.answer(form, line(f"Console: {console}", "bold"), shown)
    screen.out.file.flush()


def issue_missing(tokens: Tokens, agents: Iterable[str]) -> dict[str, str]:
    """A token for the operator and every agent that has none."""
    have = tokens.holders()
    return {holder: tokens.issue(holder) for holder in (OPERATOR, *agents) if holder not in have}
