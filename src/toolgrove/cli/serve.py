"""`toolgrove serve`: the project over HTTP, every agent at its own address, the console for the operator."""

from __future__ import annotations

import argparse
import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from mcp_serve import http_server
from mcp_serve.http_server import run_http
from mcp_serve.signals import Stop
from toolgrove.cli.carrier import Carrier
from toolgrove.cli.desk.table import begin
from toolgrove.cli.last_exit import CHILDREN, serve_and_exit
from toolgrove.cli.numbers import port
from toolgrove.cli.options import DEFAULT
from toolgrove.cli.project import OPENING
from toolgrove.cli.screen import Screen, line, table
from toolgrove.config import ConfigFile
from toolgrove.control.server import Control
from toolgrove.grove import Grove
from toolgrove.reload import follow, record_start
from toolgrove.store.gc_pause import settled_collector
from toolgrove.store.state import OPERATOR

if TYPE_CHECKING:
    from toolgrove.web.app import Gateway

log = logging.getLogger("toolgrove.serve")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "serve",
        parents=[shared],
        description="Serve the project. Every agent and you get a token at the first start, shown this once on "
        "standard output, and never in the log.",
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="CONFIG", help=f"the project file ({DEFAULT})")
    parser.add_argument("--host", default="127.0.0.1", help="bind address (127.0.0.1)")
    parser.add_argument("--port", type=port, default=8000, help="port (8000)")
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
    if chosen.file is not None and chosen.config is not None:
        raise ValueError(f"serve takes one project file, not {chosen.file} and {chosen.config}; leave one of them out")
    file = ConfigFile(chosen.file or chosen.config or DEFAULT)
    with listen(chosen.host, chosen.port) as listening:
        service = Service(
            file=file,
            listening=listening,
            screen=screen,
            host=chosen.host,
            allowed_hosts=chosen.allowed_host,
            anonymous=anonymous,
        )
        return serve_and_exit(service.run)


def listen(host: str, port: int) -> socket.socket:
    """The socket to serve on; ValueError says what to do where it cannot be had."""
    try:
        return http_server.listen(host, port)
    except OSError as error:
        problem, _, _ = (error.strerror or str(error)).partition(" (")
        raise ValueError(f"cannot listen on {host}:{port}: {problem}. {_advice(error)}") from None


def _advice(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "Stop what uses the port, or name another with --port."
    if error.errno == errno.EACCES:
        return "Name a port from 1024 on with --port."
    return "Name an address of this machine with --host."


@asynccontextmanager
async def _alone(grove: Grove) -> AsyncIterator[None]:
    yield


def issue_missing(grove: Grove) -> dict[str, str]:
    """A token for the operator and every agent that never had one, or whose were revoked.

    Who gave a token a time to end makes the next one as well.
    """
    have = set(grove.tokens.holders(also_expired=True).values())
    return {
        who: grove.tokens.issue(who, by="toolgrove serve")
        for who in (OPERATOR, *grove.config.agents)
        if who not in have
    }


def issue_none(grove: Grove) -> dict[str, str]:
    """No token, since what is printed may be kept, and a token must not be; tells how to make one."""
    have = set(grove.tokens.holders().values())
    missing = [name for name in (OPERATOR, *grove.config.agents) if name not in have]
    if missing:
        who = ", ".join("operator" if name == OPERATOR else name for name in missing)
        log.warning("Without a token: %s. 'toolgrove tokens new NAME' makes one and shows it at your terminal.", who)
    return {}


async def _leave(gateway: Gateway, stop: Stop) -> None:
    await stop.leaving.wait()
    log.info("unready from now on, and stopping in %g seconds", stop.drain)
    gateway.leave()


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """A project that is served until a signal comes; `beside` is what else goes on in its grove meanwhile."""

    file: ConfigFile
    listening: socket.socket
    screen: Screen
    host: str = "127.0.0.1"
    allowed_hosts: Sequence[str] = ()
    anonymous: bool = False
    beside: Callable[[Grove], AbstractAsyncContextManager[None]] = _alone
    tokens: Callable[[Grove], Mapping[str, str]] = issue_missing
    greeted: Callable[[str], None] = lambda console: None

    async def run(self, stop: Stop) -> None:
        """Serve until told to stop, be it while the project starts."""
        async with AsyncExitStack() as stack:
            with self.screen.waiting(OPENING):
                grove = await stack.enter_async_context(Grove(self.file.config))
            grove.file = self.file
            stack.callback(lambda: grove.hurry(stop.left(CHILDREN)))
            await self._serve(grove, stop)

    async def _serve(self, grove: Grove, stop: Stop) -> None:
        gateway = grove.gateway(host=self.host, allowed_hosts=self.allowed_hosts, anonymous=self.anonymous)
        app = gateway.app
        control = Control(partial(begin, grove), Carrier(grove), cut_off=grove.cut_off)

        async def drain(seconds: float) -> None:
            await asyncio.gather(gateway.drain(seconds), control.drain(seconds))

        async with AsyncExitStack() as stack:
            await stack.enter_async_context(app.router.lifespan_context(app))
            await stack.enter_async_context(self.beside(grove))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stop.drain = grove.config.drain
            tasks.start_soon(_leave, gateway, stop)
            await record_start(self.file, grove)
            await self._be_found(control, stack)
            self._greet(grove)
            tasks.start_soon(partial(follow, self.file, grove, taken=partial(self._taken, grove, stop)))
            with settled_collector():
                await run_http(app, drain, self.listening, stop)
            tasks.cancel_scope.cancel()

    async def _be_found(self, control: Control, stack: AsyncExitStack) -> None:
        """Let commands on this machine find the gateway; it serves all the same where they cannot."""
        folder = self.file.config.state
        try:
            if folder is not None and (folder.is_dir() or not folder.exists()):  # else the state itself tells
                await stack.enter_async_context(control.listening(folder, self.file.path.absolute(), self.address))
        except OSError as problem:
            log.warning("Commands cannot reach this gateway: %s", problem)

    @property
    def address(self) -> str:
        """Where clients find it."""
        host, port = self.listening.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def _greet(self, grove: Grove) -> None:
        address = self.address
        made = self._issue(grove, self.tokens)
        token = made.get(OPERATOR)
        console = f"{address}/console" + (f"#token={token}" if token else "")
        agents = {name: f"{address}/agents/{name}/mcp" for name in grove.config.agents}
        answer = {"console": console, "agents": agents, "tokens": made}
        shown = table("AGENT", "ADDRESS", "TOKEN (shown this once)" if made.keys() - {OPERATOR} else "")
        for name, url in agents.items():
            shown.add_row(line(name), line(url), line(made.get(name, "")))
        self.screen.answer(answer, line(f"Console: {console}", "bold"), shown, fold=False)
        self.screen.out.file.flush()
        self.greeted(console)

    def _issue(self, grove: Grove, tokens: Callable[[Grove], Mapping[str, str]]) -> Mapping[str, str]:
        """The tokens that are new; none where all on this machine are let in."""
        return {} if self.anonymous else tokens(grove)

    def _taken(self, grove: Grove, stop: Stop) -> None:
        """Drain as a changed file says, and make tokens for agents that it brought; only a person is shown them."""
        stop.drain = grove.config.drain
        seen = self.screen.err.is_terminal
        for holder, token in self._issue(grove, issue_missing if seen else issue_none).items():
            self.screen.say(f"Token of {holder}, shown this once:", "bold")
            self.screen.say(token, "bold")
