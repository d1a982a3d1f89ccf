"""What could come next on a command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import anyio

from toolgrove.cli.desk.opening import near
from toolgrove.cli.options import DEFAULT
from toolgrove.cli.project_names import agents_in, servers_in
from toolgrove.cli.text import OPERATOR_NAME
from toolgrove.control.client import Gateway
from toolgrove.errors import GroveError

_AGENTS = ("agent", "agent_flag", "holder", "within", "token")


def candidates(words: Sequence[str]) -> list[str]:
    """The words that fit in the place of the last one and begin like it."""
    *before, last = words or [""]
    program = import_module("toolgrove.cli.program")  # which knows this command, too
    command = next((word for word in before if word in program.COMMANDS), None)
    if command is None:
        return _fitting(program.COMMANDS, last)
    parser = _sub(program.parser([command]), command)
    return _fitting(_Line(parser, list(before[before.index(command) + 1 :]), before).next(last), last)


def _fitting(known: Iterable[str], last: str) -> list[str]:
    return [one for one in known if one.startswith(last)]


def _sub(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    verbs = _verbs(parser)
    return parser if verbs is None else verbs.choices.get(name, parser)


def _verbs(parser: argparse.ArgumentParser) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    return next((one for one in parser._actions if isinstance(one, argparse._SubParsersAction)), None)


@dataclass
class _Line:
    """A line as far as it is typed: what reads it, the words after the command, and all of them."""

    parser: argparse.ArgumentParser
    words: list[str]
    all: Sequence[str]

    def next(self, last: str) -> Iterable[str]:
        """What may come."""
        if (verbs := _verbs(self.parser)) is not None:
            if not self.words:
                if not last.startswith("-"):
                    return verbs.choices
                self.parser = verbs.choices.get("list", self.parser)
                return self._options()
            if self.words[0] not in verbs.choices and not self.words[0].startswith("-"):
                return ()
            verb = self.words.pop(0) if self.words[0] in verbs.choices else "list"
            self.parser = verbs.choices[verb]
        takers = {flag: one for one in self.parser._actions for flag in one.option_strings}
        if self.words and (taker := takers.get(self.words[-1])) is not None and taker.nargs != 0:
            return self._values(taker, [])
        if last.startswith("-"):
            return self._options()
        plain = [
            word
            for at, word in enumerate(self.words)
            if not word.startswith("-") and not (at and self._takes(takers.get(self.words[at - 1])))
        ]
        places = [one for one in self.parser._actions if not one.option_strings]
        return self._values(places[len(plain)], plain) if len(plain) < len(places) else ()

    def _options(self) -> list[str]:
        seen = [one for one in self.parser._actions if one.help != argparse.SUPPRESS]
        return [flag for one in seen for flag in one.option_strings if flag.startswith("--")]

    def _takes(self, action: argparse.Action | None) -> bool:
        return action is not None and action.nargs != 0

    def _values(self, action: argparse.Action, plain: Sequence[str]) -> Iterable[str]:
        if action.choices is not None:
            return map(str, action.choices)
        path = Path(self.all[self.all.index("--config") + 1]) if "--config" in self.all[:-1] else DEFAULT
        try:
            return _of_project(path, action.dest, plain)
        except (OSError, ValueError, GroveError):  # whoever only completes wants no complaint
            return ()


def _of_project(path: Path, what: str, plain: Sequence[str]) -> Iterable[str]:
    if what in _AGENTS:
        return [*agents_in(path), *([OPERATOR_NAME] if what in ("holder", "token") else [])]
    if what == "server":
        return servers_in(path)
    if what == "tool" and plain:
        gateway = near(path)
        return _at_rest(path, plain[-1]) if gateway is None else anyio.run(_served, gateway, path, plain[-1])
    return ()


async def _served(gateway: Gateway, path: Path, whose: str) -> list[str]:
    """Tools of a server by its own names, or of an agent, as the gateway knows them."""
    if whose in servers_in(path):
        return [pin["tool"] for pin in await gateway.ask("pins") if pin["server"] == whose]
    return [spec["name"] for spec in (await gateway.ask("tools", agent=whose))["tools"]]


def _at_rest(path: Path, whose: str) -> list[str]:
    """The same without a gateway: the built-in tools, and those that are pinned."""
    config = import_module("toolgrove.config").Config.load(path)
    with import_module("toolgrove.project_state").ProjectState.of(config) as kept:
        pins = kept.pins.list()
    if whose in config.mcp_servers:
        return [pin.own_name for pin in pins if pin.server == whose]
    pool_name = import_module("toolgrove.pool.naming").pool_name
    return [*import_module("toolgrove.tools").DECLARATIONS, *(pool_name(one.server, one.own_name) for one in pins)]
