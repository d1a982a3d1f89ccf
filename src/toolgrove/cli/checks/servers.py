"""Servers: what would be started, did it answer, and what of the entry is not acted on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolgrove.cli.checks.finding import Finding, Level
from toolgrove.cli.checks.launch import shown, unpinned
from toolgrove.cli.checks.literal import hidden
from toolgrove.cli.checks.surroundings import line_for, withheld
from toolgrove.cli.offered import counted
from toolgrove.config import Config, McpServerConfig
from toolgrove.config.mcp_server import RESTRICTING
from toolgrove.notation.unseen_text import one_line
from toolgrove.pool.globs import Globs
from toolgrove.pool.mcp.sandbox import obstacle
from toolgrove.pool.snapshot import PoolSnapshot, SourceState
from toolgrove.types import Offered

_SAID = 300
_WORDS = 5
"""How many of a server's last words are repeated."""
LastWords = Mapping[str, Sequence[str]]


def check(
    config: Config,
    snapshot: PoolSnapshot | None,
    beside: Mapping[str, Sequence[Offered]] | None = None,
    last_words: LastWords | None = None,
) -> Iterator[Finding]:
    """Every entry; without a snapshot nothing was started."""
    for name, server in config.mcp_servers.items():
        yield from _entry(name, server)
        if server.disabled:
            yield _finding("note", name, "is disabled and was not started")
        elif snapshot is not None:
            yield _answer(name, snapshot.sources[name], (beside or {}).get(name, ()))
            if snapshot.sources[name].problem:
                yield from _causes(name, server, (last_words or {}).get(name, ()))
            else:
                yield from _effects(name, server, snapshot)
                yield from _said(name, snapshot.sources[name].instructions)
    if snapshot is not None:
        for name, state in snapshot.sources.items():
            if name not in config.mcp_servers:
                yield _answer(name, state)
                if state.notice:
                    yield _finding("warning", name, state.notice)
    for key in config.ignored:
        yield _finding("note", key, "belongs to VS Code and is not acted on")


def to_json(config: Config, snapshot: PoolSnapshot | None, last_words: LastWords | None = None) -> dict[str, Any]:
    """Every entry for machines; `answered` is null for one that was not asked."""
    states = {} if snapshot is None else snapshot.sources
    words = last_words or {}
    return {name: _facts(server, states.get(name), words.get(name, ())) for name, server in config.mcp_servers.items()}


def _facts(server: McpServerConfig, state: SourceState | None, last_words: Sequence[str]) -> dict[str, Any]:
    return {
        "command": server.command and [server.command, *map(hidden, server.args)],
        "url": server.url and hidden(server.url),
        "env": list(server.env),
        "passEnv": list(server.pass_env),
        "cwd": str(server.cwd) if server.cwd is not None else None,
        "disabled": server.disabled,
        "answered": None if state is None else not state.problem,
        "tools": None if state is None else state.tools,
        "problem": state.problem if state is not None else "",
        "lastWords": list(last_words),
        "ignored": list(server.ignored),
        "instructions": state.instructions if state is not None else "",
    }


def _entry(name: str, server: McpServerConfig) -> Iterator[Finding]:
    yield _finding("note", name, f"{'starts' if server.command else 'asks'}: {shown(server)}")
    if server.command is not None:
        yield from _program(name, server)
    if server.type is not None and (server.type == "stdio") != (server.command is not None):
        yield _finding("warning", name, f"says type {server.type}, which does not fit its command or url")
    for key in server.ignored:
        if key in RESTRICTING:
            text = f"{key} is not acted on: name tools in include or exclude, or hide them from an agent with its mask"
            yield _finding("warning", name, text)
        elif key == "envFile":
            yield _finding("warning", name, "envFile is not read: write the variables into env, as ${env:NAME}")
        else:
            yield _finding("note", name, f"{key} belongs to another client and is not acted on")


def _program(name: str, server: McpServerConfig) -> Iterator[Finding]:
    command = server.command or ""
    loose = unpinned(command, server.args)
    if loose is not None:
        text = f"{loose.package} is not pinned to a version; add one, for example {loose.better}"
        yield _finding("warning", name, text)
    if server.sandbox is not None and (found := obstacle()) is not None:
        detail = f": {found.detail}" if found.detail else ""
        yield _finding("error", name, f"is not started, since it must run in a sandbox and {found.reason}{detail}")
    if not _is_there(server):
        yield _finding("error", name, f"there is no program {command!r} on the PATH")


def _is_there(server: McpServerConfig) -> bool:
    """Whether its program is found; one behind a reference may be."""
    command = server.command or ""
    place = command if os.sep not in command or server.cwd is None else str(server.cwd / command)
    return "${" in command or shutil.which(place) is not None


def _answer(name: str, state: SourceState, beside: Sequence[Offered] = ()) -> Finding:
    if state.problem:
        return _finding("error", name, f"is unavailable: {state.problem}")
    return _finding("ok", name, f"answered with {state.tools} tool{'s' * (state.tools != 1)}{counted(beside)}")


def _causes(name: str, server: McpServerConfig, last_words: Sequence[str]) -> Iterator[Finding]:
    """What a server that failed said last, and what it may have missed."""
    for said in last_words[-_WORDS:]:
        yield _finding("note", name, f"said: {hidden(said[:_SAID])}")
    missing = withheld(server, os.environ) if _is_there(server) else ()
    if missing:
        text = "did not get variables of a proxy, a CA or an index that are set here; if it needs them"
        yield _finding("warning", name, f"{text}, write {line_for(server, missing)} in mcpServers.{name}")


def _said(name: str, instructions: str) -> Iterator[Finding]:
    """What the server says of itself, as somebody else's text."""
    if instructions:
        text = one_line(instructions if len(instructions) <= _SAID else f"{instructions[:_SAID]}…")
        yield _finding("note", name, f"has instructions, which no agent is told: {text}")


def _effects(name: str, server: McpServerConfig, snapshot: PoolSnapshot) -> Iterator[Finding]:
    """Words of the operator that are about no tool."""
    own = [offer.own_name for offer in snapshot.offers.values() if offer.source == name]
    named = {"reads": server.reads, "changes": server.changes, "exclude": server.exclude}
    for key, patterns in {**named, "include": server.include or (), "rename": tuple(server.rename)}.items():
        for pattern in patterns:
            if not Globs([pattern]).matches(own):
                yield _finding("warning", name, f"{key}: {pattern!r} matches no tool of that server")


def _finding(level: Level, subject: str, message: str) -> Finding:
    return Finding(area="servers", level=level, subject=subject, message=message)
