"""`toolgrove serve`: the project over HTTP, every agent at its own address, the console for the operator."""

from __future__ import annotations

import argparse
import asyncio
import errno
import gc
import logging
import shlex
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.to_thread
from starlette.types import ASGIApp

from mcp_serve import http_server, sdk
from mcp_serve.http_server import run_http
from mcp_serve.shortcut import Enter
from mcp_serve.signals import Stop
from toolgrove.cli.call_log import CallLog
from toolgrove.cli.carrier import Carrier
from toolgrove.cli.desk.table import begin
from toolgrove.cli.last_exit import CHILDREN, serve_and_exit
from toolgrove.cli.numbers import port
from toolgrove.cli.options import DEFAULT
from toolgrove.cli.project import OPENING
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.several import check_apart, prefix_of, project_files
from toolgrove.config import ConfigFile
from toolgrove.control.door import reached
from toolgrove.control.server import Control
from toolgrove.grove import Grove
from toolgrove.reload import follow, record_start
from toolgrove.store.gc_pause import settled_collector
from toolgrove.store.state import OPERATOR
from toolgrove.store.unusable import StoreInUse
from toolgrove.types import Clock

if TYPE_CHECKING:
    from rich.console import RenderableType

    from toolgrove.web.app import Gateway

    Shown = Callable[[], list[RenderableType]]
    """What a person is shown, made where one is: what makes it is imported for that."""
    Greeting = tuple[dict[str, Any], Shown]

log = logging.getLogger("toolgrove.serve")
_TRIES, _PAUSE = 50, 0.2
_SOON = 1.0
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "serve",
        parents=[shared],
        description="Serve the project until Ctrl+C. On first start, it prints one token per agent and one for you. "
        "They are shown only once, on standard output, and never in the log.",
    )
    parser.add_argument(
        "file",
        nargs="*",
        type=Path,
        metavar="CONFIG",
        help=f"the project file ({DEFAULT}); several of them, or a folder, are served under /p/PROJECT",
    )
    parser.add_argument("--host", default="127.0.0.1", help="bind address (127.0.0.1)")
    parser.add_argument("--port", type=port, default=8000, help="port (8000)")
    parser.add_argument(
        "--allowed-host", action="append", default=[], metavar="NAME", help="another name of this host (repeatable)"
    )
    parser.add_argument(
        "--no-tokens-on-loopback", action="store_true", help="let everybody on this machine in without a token"
    )
    parser.add_argument(
        "--wait", action="store_true", help="stand by while another process has the project, then take over"
    )
    parser.set_defaults(run=_serve, verbose=True)


def _serve(chosen: argparse.Namespace, screen: Screen) -> int:
    anonymous: bool = chosen.no_tokens_on_loopback
    if anonymous and chosen.host not in LOOPBACK:
        raise ValueError(f"--no-tokens-on-loopback serves loopback only, not {chosen.host}; leave one of them out")
    if chosen.file and chosen.config is not None:
        raise ValueError(f"name the project files once, not {chosen.file[0]} and --config {chosen.config}")
    files = [ConfigFile(path) for path in project_files(chosen.file or [chosen.config or DEFAULT])]
    check_apart(files)
    while True:
        try:
            if chosen.wait:
                import_module("toolgrove.cli.standing_by").stand_by(files, screen)
            with (
                listen_patiently(chosen.host, chosen.port)
                if chosen.wait
                else listen(chosen.host, chosen.port) as listening
            ):
                announce(screen, "Starting " + ", ".join(file.config.project for file in files))
                services = [
                    Service(
                        file=file,
                        listening=listening,
                        screen=screen,
                        host=chosen.host,
                        allowed_hosts=chosen.allowed_host,
                        anonymous=anonymous,
                        prefix="" if len(files) == 1 else prefix_of(file.config.project),
                    )
                    for file in files
                ]
                return serve_and_exit(services[0].run if len(files) == 1 else Services(services).run)
        except StoreInUse as taken:
            if not chosen.wait:
                raise ValueError(f"{taken} 'toolgrove serve --wait' stands by until it is free.") from None
            # Another one stood by as well, and was faster.


def listen(host: str, port: int) -> socket.socket:
    """The socket to serve on; ValueError says what to do where it cannot be had."""
    try:
        return http_server.listen(host, port)
    except OSError as error:
        problem, _, _ = (error.strerror or str(error)).partition(" (")
        raise ValueError(f"cannot listen on {host}:{port}: {problem}. {_advice(error)}") from None


def listen_patiently(host: str, port: int) -> socket.socket:
    """The same where the one that served before may still be letting go of the port."""
    for _ in range(_TRIES):
        try:
            return http_server.listen(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                break
            time.sleep(_PAUSE)
    return listen(host, port)


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


async def _load_the_rest(gateway: Gateway) -> None:
    """Have the console and the SDK ready for whoever will need them, once those who come at once were answered."""
    await anyio.sleep(_SOON)
    for load in (gateway.load, sdk.load):
        await anyio.to_thread.run_sync(load, abandon_on_cancel=True)
    gc.freeze()  # it stays, and need not be searched


async def _leave(gateway: Gateway, stop: Stop) -> None:
    await stop.leaving.wait()
    log.info("unready from now on, and stopping in %g seconds", stop.drain)
    gateway.leave()


def announce(screen: Screen, what: str) -> None:
    """Say at once what goes on, where no spinner does: the rest may take seconds."""
    if not screen.is_watched:
        log.info("%s …", what)


def greet(screen: Screen, answer: Any, shown: Shown, address: str) -> None:
    """Tell where everything is, and that it is ready."""
    screen.answer(answer, *([] if screen.as_json else shown()), fold=False)
    screen.flush()
    if screen.is_watched and not screen.as_json:
        screen.say(f"Ready at {address}. Ctrl+C stops.", "green")
    else:
        log.info("ready at %s", address)


Drain = Callable[[float], Awaitable[None]]


class Ready(NamedTuple):
    """A project's app, who need not pass through it, and how it is told to finish its calls."""

    app: ASGIApp
    enter: Enter
    drain: Drain


@dataclass(kw_only=True, slots=True)
class Service:
    """A project that is served until a signal comes; `beside` is what else goes on in its grove meanwhile."""

    file: ConfigFile
    listening: socket.socket
    screen: Screen
    host: str = "127.0.0.1"
    allowed_hosts: Sequence[str] = ()
    anonymous: bool = False
    prefix: str = ""
    beside: Callable[[Grove], AbstractAsyncContextManager[None]] = _alone
    tokens: Callable[[Grove], Mapping[str, str]] = issue_missing
    greeted: Callable[[str], None] = lambda console: None
    clock: Clock | None = None
    greeting: Greeting = field(init=False)

    async def run(self, stop: Stop) -> None:
        """Serve until told to stop, be it while the project starts."""
        async with self.ready(stop) as (app, enter, drain):
            self._show(*self.greeting)
            self.greeted(str(self.greeting[0]["console"]))
            with settled_collector():
                await run_http(app, drain, self.listening, stop, enter=enter)

    @asynccontextmanager
    async def ready(self, stop: Stop) -> AsyncIterator[Ready]:
        """The project, which answers as soon as somebody listens."""
        async with AsyncExitStack() as stack:
            with self.screen.waiting(OPENING):
                grove = await stack.enter_async_context(Grove(self.file.config, clock=self.clock))
            grove.file = self.file
            stack.callback(lambda: grove.hurry(stop.left(CHILDREN)))
            gateway = grove.gateway(host=self.host, allowed_hosts=self.allowed_hosts, anonymous=self.anonymous)
            control = Control(partial(begin, grove), Carrier(grove), cut_off=grove.cut_off)

            async def drain(seconds: float) -> None:
                await asyncio.gather(gateway.drain(seconds), control.drain(seconds))

            await stack.enter_async_context(gateway.app.router.lifespan_context(gateway.app))
            await stack.enter_async_context(self.beside(grove))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stop.drain = max(stop.drain, grove.config.drain)
            tasks.start_soon(_leave, gateway, stop)
            tasks.start_soon(_load_the_rest, gateway)
            await record_start(self.file, grove)
            await self._be_found(control, stack)
            self.greeting = self._greeting(grove)
            if self.screen.is_watched and not self.screen.as_json:
                grove.listen(CallLog(self.screen).hear)
            tasks.start_soon(partial(follow, self.file, grove, taken=partial(self._taken, grove, stop)))
            yield Ready(gateway.app, gateway.enter, drain)
            tasks.cancel_scope.cancel()

    async def _be_found(self, control: Control, stack: AsyncExitStack) -> None:
        """Let commands on this machine find the gateway; it serves all the same where they cannot."""
        folder = self.file.config.state
        other = None if folder is None else await anyio.to_thread.run_sync(reached, folder, self.file.path)
        if other is not None:
            log.warning("The gateway at %s serves this project too; commands use this one from now on.", other.address)
        try:
            if folder is not None and (folder.is_dir() or not folder.exists()):  # else the state itself tells
                await stack.enter_async_context(control.listening(folder, self.file.path.absolute(), self.address))
        except OSError as problem:
            log.warning("Commands cannot reach this gateway: %s", problem)

    @property
    def name(self) -> str:
        """What the project is called."""
        return self.file.config.project

    @property
    def address(self) -> str:
        """Where clients find it."""
        host, port = self.listening.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{self.prefix}"

    def _greeting(self, grove: Grove) -> Greeting:
        address = self.address
        made = self._issue(grove, self.tokens)
        token = made.get(OPERATOR)
        console = f"{address}/console" + (f"#token={token}" if token else "")
        agents = {name: f"{address}/agents/{name}/mcp" for name in grove.config.agents}
        answer = {"console": console, "agents": agents, "tokens": made}
        return answer, partial(self._shown, console, agents, made)

    def _shown(self, console: str, agents: Mapping[str, str], made: Mapping[str, str]) -> list[RenderableType]:
        shown = table("AGENT", "ADDRESS", "TOKEN (shown only once)" if made.keys() - {OPERATOR} else "")
        for name, url in agents.items():
            shown.add_row(line(name), line(url), line(made.get(name, "")))
        way_in = [] if OPERATOR in made or self.anonymous else [line(f"Sign in: toolgrove open{self._there}")]
        return [line(f"Console: {console}", "bold"), *way_in, shown]

    @property
    def _there(self) -> str:
        """How commands are told which project is meant."""
        return "" if self.file.path == DEFAULT else f" --config {shlex.quote(str(self.file.path))}"

    def _show(self, answer: Any, shown: Shown) -> None:
        greet(self.screen, answer, shown, self.address)

    def _issue(self, grove: Grove, tokens: Callable[[Grove], Mapping[str, str]]) -> Mapping[str, str]:
        """The tokens that are new; none where all on this machine are let in."""
        return {} if self.anonymous else tokens(grove)

    def _taken(self, grove: Grove, stop: Stop) -> None:
        """Drain as a changed file says, and make tokens for agents that it brought; only a person is shown them."""
        stop.drain = grove.config.drain
        seen = self.screen.is_watched
        for holder, token in self._issue(grove, issue_missing if seen else issue_none).items():
            self.screen.say(f"Token of {holder}. It is shown only once:", "bold")
            self.screen.say(token, "bold")


@dataclass(frozen=True, slots=True)
class Services:
    """Several projects at one address, each under its own path; all else of them is apart."""

    parts: Sequence[Service]

    async def run(self, stop: Stop) -> None:
        """Serve all of them until told to stop."""
        first = self.parts[0]
        async with AsyncExitStack() as stack:
            ready = {part.name: await stack.enter_async_context(part.ready(stop)) for part in self.parts}

            async def drain_all(seconds: float) -> None:
                await asyncio.gather(*(one.drain(seconds) for one in ready.values()))

            answers = {part.name: part.greeting[0] for part in self.parts}
            address = first.address.removesuffix(first.prefix)
            greet(first.screen, {"projects": answers}, self._shown, address)
            web = import_module("toolgrove.web.projects")
            app = web.index_of({name: one.app for name, one in ready.items()}, first.host, first.allowed_hosts)
            enter = web.entrance_of({name: one.enter for name, one in ready.items()})
            with settled_collector():
                await run_http(app, drain_all, first.listening, stop, enter=enter)

    def _shown(self) -> list[RenderableType]:
        return [one for part in self.parts for one in (line(part.name, "bold underline"), *part.greeting[1]())]
