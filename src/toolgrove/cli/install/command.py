"""The command: print a client's configuration for an agent, or write it."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgrove.cli.desk.opening import asked, config_of, found
from toolgrove.cli.install.app import app_entry, is_served_alone
from toolgrove.cli.install.client import CLIENTS, McpClient, ServerEntry
from toolgrove.cli.install.settings import merge, room_for
from toolgrove.cli.options import add_agent, file
from toolgrove.cli.screen import Screen, line
from toolgrove.cli.text import signature
from toolgrove.control.client import Gateway
from toolgrove.errors import AgentNotFound

if TYPE_CHECKING:
    from toolgrove.config import Config


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "install",
        parents=[shared],
        description="Print the configuration with which an MCP client works as an agent, or write it. If a gateway "
        "serves the project, or gatewayUrl names one, the client calls it, with a token of its own. Otherwise the "
        "client starts the agent itself (toolgrove stdio). With a Python file or a folder of them, the client starts "
        "those functions alone (apcore-mcp), without a project.",
    )
    parser.add_argument("client", choices=CLIENTS, metavar="CLIENT", help=", ".join(CLIENTS))
    add_agent(parser, "the agent this client connects as, or app.py", takes_app=False)
    parser.add_argument("--url", metavar="URL", help="another gateway's address, such as http://127.0.0.1:8000")
    parser.add_argument("--stdio", action="store_true", help="have the client start the agent itself in any case")
    token = parser.add_mutually_exclusive_group()
    token.add_argument("--token", metavar="TOKEN", help="the agent's token, instead of a new one")
    token.add_argument(
        "--new-token", action="store_true", help="make a token for --url; without --url that goes without saying"
    )
    parser.add_argument("--name", metavar="NAME", help="what the client calls it (PROJECT-AGENT)")
    parser.add_argument("--project", action="store_true", help="the client's file in this folder, not the person's")
    parser.add_argument("--write", action="store_true", help="write it into the client's file; a backup is kept")
    parser.set_defaults(run=_install)


def _install(chosen: argparse.Namespace, screen: Screen) -> int:
    client = CLIENTS[chosen.client]
    if is_served_alone(chosen.agent):
        if chosen.url or chosen.token or chosen.new_token or chosen.stdio:
            raise ValueError(f"{chosen.agent} is started by the client: leave --url, --stdio and tokens out")
        name, entry = app_entry(client, chosen.agent)
        return _offer(client, chosen, screen, chosen.name or name, lambda: entry)
    config = config_of(chosen)
    if chosen.agent not in config.agents:
        raise AgentNotFound(chosen.agent, list(config.agents))
    if chosen.stdio and (chosen.url or chosen.token or chosen.new_token):
        raise ValueError("--stdio needs no address and no token: the client starts the agent itself")
    name = chosen.name or _name(config, chosen.agent)
    return _offer(client, chosen, screen, name, lambda: _entry(client, chosen, config, screen))


def _offer(
    client: McpClient, chosen: argparse.Namespace, screen: Screen, name: str, make: Callable[[], ServerEntry]
) -> int:
    """Print the entry, or write it where that can be done without harm."""
    target = client.file(project=chosen.project)
    before = None
    if chosen.write:  # before a token is made that could then not be written down
        before = room_for(target, client.section, name)[1][client.section].get(name)
    entry = make()
    if not chosen.write:
        screen.say(f"For {target}; --write puts it there:")
        screen.data({client.section: {name: entry}})
        return 0
    merged = merge(target, client.section, name, entry)
    kept = f" What was there is in {merged.backup}." if merged.backup else ""
    message = f"Wrote {name} into {merged.path}.{kept}" if merged.changed else f"{merged.path} has {name} already."
    shown = [line(message, "green"), line(client.after)]
    if "headers" in entry:
        advice = "; keep it out of version control" if chosen.project else ""
        shown.append(line(f"The file holds a token, so only you can read it now{advice}.", "yellow"))
    old = _token_id(before)
    if old is not None and old != _token_id(entry):
        shown.append(line(f"The token of the entry before is still good. To void it: toolgrove tokens revoke {old}"))
    backup = None if merged.backup is None else str(merged.backup)
    facts = {"file": str(merged.path), "name": name, "changed": merged.changed, "backup": backup}
    screen.answer(facts, *shown)
    return 0


def _token_id(entry: ServerEntry | None) -> str | None:
    """What the token of an entry is called; None if it has none."""
    kind, _, token = str(((entry or {}).get("headers") or {}).get("Authorization")).partition(" ")
    state = import_module("toolgrove.store.state")
    return str(state.token_id(state.hashed(token))) if kind == "Bearer" and token else None


def _entry(client: McpClient, chosen: argparse.Namespace, config: Config, screen: Screen) -> ServerEntry:
    """The gateway's address where one is named, runs or is configured; else the client starts the agent itself."""
    gateway = None if chosen.stdio or chosen.url else found(chosen)
    base = chosen.url or (config.gateway_url if gateway is None else gateway.note.address)
    if chosen.stdio or base is None or (client.address is None and not chosen.url):
        return _started(client, chosen, screen, gateway)
    url = _address(base, chosen.agent)
    client.called(url, None)  # before a token is made for a client that cannot use it
    where = "you named" if chosen.url else "in gatewayUrl" if gateway is None else "that runs now"
    screen.say(f"{client.title} calls the gateway {where}: {url}", "dim")
    return client.called(url, _token(chosen, screen))


def _started(client: McpClient, chosen: argparse.Namespace, screen: Screen, gateway: Gateway | None) -> ServerEntry:
    if chosen.token or chosen.new_token:
        raise ValueError("a token is for a gateway: name its address with --url, or start it first")
    passed = (
        f"passes everything on to the gateway at {gateway.note.address} while it runs"
        if gateway
        else ("runs the project itself, or passes everything on to a gateway that serves it")
    )
    screen.say(f"{client.title} starts 'toolgrove stdio {chosen.agent}', which {passed}.", "dim")
    command, first = _program()
    return client.started(command, [*first, "stdio", chosen.agent, "--config", str(file(chosen).absolute())])


def _token(chosen: argparse.Namespace, screen: Screen) -> str | None:
    """The token that was given, or one made for this client; a gateway elsewhere may not know what is made here."""
    given: str | None = chosen.token
    if given is not None or (chosen.url and not chosen.new_token):
        if given is None:
            screen.say("The entry has no token, so the gateway will refuse it: add --new-token or --token.", "yellow")
        return given
    made = asked(chosen, screen, "tokens.new", make=True, holder=chosen.agent, by=signature())
    screen.say(f"The entry has its own token. To revoke it: toolgrove tokens revoke {made['id']}", "dim")
    token: str = made["token"]
    return token


def _address(url: str, agent: str) -> str:
    if not re.match(r"https?://[^/\s]+", url):
        raise ValueError(f"{url!r} is not the address of a gateway, such as http://127.0.0.1:8000")
    place = f"/agents/{agent}/mcp"
    base = url.partition("#")[0].rstrip("/")  # the console's address, as it is printed, has a token behind it
    return base if base.endswith(place) else base.removesuffix("/console") + place


def _program() -> tuple[str, list[str]]:
    """This very toolgrove: a client's own PATH may have another, or none."""
    script = Path(sys.executable).with_name("toolgrove")
    return (str(script), []) if script.exists() else (sys.executable, ["-m", "toolgrove"])


def _name(config: Config, agent: str) -> str:
    text = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{config.project}-{agent}").strip("-")
    return text or "toolgrove"
