"""The command: print a client's configuration for an agent, or write it."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolgrove.cli.install.app import app_entry, is_served_alone
from toolgrove.cli.install.client import CLIENTS, McpClient, ServerEntry
from toolgrove.cli.install.settings import merge, room_for
from toolgrove.cli.options import file
from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line
from toolgrove.cli.text import signature
from toolgrove.config import Config
from toolgrove.errors import AgentNotFound
from toolgrove.project_state import ProjectState


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "install",
        parents=[shared],
        description="Print the configuration with which an MCP client works as an agent, or write it. Without --url "
        "the client starts the agent itself (toolgrove stdio); with it, it calls a gateway that runs. With a Python "
        "file or a folder of them, the client starts those functions alone (apcore-mcp), without a project.",
    )
    parser.add_argument("client", choices=CLIENTS, metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("who", nargs="?", metavar="AGENT", help="the agent this client connects as, or app.py")
    parser.add_argument("--agent", metavar="AGENT", help="the same")
    parser.add_argument("--url", metavar="URL", help="the gateway's address, such as http://127.0.0.1:8000")
    token = parser.add_mutually_exclusive_group()
    token.add_argument("--token", metavar="TOKEN", help="the agent's token, for --url")
    token.add_argument(
        "--new-token", action="store_true", help="make a new token for --url; the agent's others stay good"
    )
    parser.add_argument("--name", metavar="NAME", help="what the client calls it (PROJECT-AGENT)")
    parser.add_argument("--project", action="store_true", help="the client's file in this folder, not the person's")
    parser.add_argument("--write", action="store_true", help="write it into the client's file; a backup is kept")
    parser.set_defaults(run=_install)


def _install(chosen: argparse.Namespace, screen: Screen) -> int:
    client = CLIENTS[chosen.client]
    if chosen.who is not None and is_served_alone(chosen.who):
        if chosen.url or chosen.token or chosen.new_token or chosen.agent:
            raise ValueError(f"{chosen.who} is started by the client: leave --agent, --url and tokens out")
        name, entry = app_entry(client, chosen.who)
        return _offer(client, chosen, screen, chosen.name or name, lambda: entry)
    chosen.agent = _agent(chosen)
    config = load(chosen)
    if chosen.agent not in config.agents:
        raise AgentNotFound(chosen.agent, list(config.agents))
    if chosen.url is None and (chosen.token or chosen.new_token):
        raise ValueError("a token is for a gateway that runs: name it with --url")
    name = chosen.name or _name(config, chosen.agent)
    return _offer(client, chosen, screen, name, lambda: _agent_entry(client, chosen, config, screen))


def _agent(chosen: argparse.Namespace) -> str:
    named = {name for name in (chosen.who, chosen.agent) if name is not None}
    if len(named) != 1:
        raise ValueError("name the agent this client connects as, once: toolgrove install CLIENT AGENT")
    [agent] = named
    return str(agent)


def _offer(
    client: McpClient, chosen: argparse.Namespace, screen: Screen, name: str, make: Callable[[], ServerEntry]
) -> int:
    """Print the entry, or write it where that can be done without harm."""
    target = client.file(project=chosen.project)
    if chosen.write:
        room_for(target, client.section, name)  # before a token is made that could then not be written down
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
    backup = None if merged.backup is None else str(merged.backup)
    facts = {"file": str(merged.path), "name": name, "changed": merged.changed, "backup": backup}
    screen.answer(facts, *shown)
    return 0


def _agent_entry(client: McpClient, chosen: argparse.Namespace, config: Config, screen: Screen) -> ServerEntry:
    if chosen.url is None and config.workspace.store_path is not None:
        screen.say(
            "While a gateway serves this project, use --url: one process at a time may have its store.", "yellow"
        )
    return _entry(client, chosen, config)


def _entry(client: McpClient, chosen: argparse.Namespace, config: Config) -> ServerEntry:
    if chosen.url is None:
        command, first = _program()
        where = str(file(chosen).absolute())
        return client.started(command, [*first, "stdio", "--agent", chosen.agent, "--config", where])
    url = _address(chosen.url, chosen.agent)
    client.called(url, None)  # before a token is made for a client that cannot use it
    return client.called(url, _token(chosen, config))


def _token(chosen: argparse.Namespace, config: Config) -> str | None:
    if not chosen.new_token:
        token: str | None = chosen.token
        return token
    with ProjectState.of(config, make=True) as kept:
        return kept.tokens.issue(chosen.agent, by=signature())


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
