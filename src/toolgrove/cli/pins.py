"""`toolgrove pins`: the definitions of foreign tools that were accepted, and those that wait for a person."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.text import local_time, signature
from toolgrove.errors import PinNotFound
from toolgrove.notation.unseen_text import visible
from toolgrove.pool.definition_lint import ToolNames, flags
from toolgrove.pool.naming import pool_name
from toolgrove.project_state import ProjectState
from toolgrove.store.state import Pin, Pins
from toolgrove.tools import DECLARATIONS
from toolgrove.web import schemas

_SHORT = 12
_STATES = {
    "pinned": ("as pinned", "green"),
    "changed": ("changed", "red"),
    "pending": ("pending", "yellow"),
    "refused": ("refused", "dim"),
}


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "pins",
        parents=[shared],
        description="What a server has at first contact is pinned, unless the project says 'pins: ask'. A definition "
        "that changes, comes later or looks suspicious waits until you accept it.",
    )
    parser.set_defaults(run=_list)
    verbs = parser.add_subparsers(metavar="VERB")
    verbs.add_parser("list", parents=[shared], help="list every pin (what plain 'pins' does)").set_defaults(run=_list)
    diff = verbs.add_parser("diff", parents=[shared], help="show what waits: new definitions, and what changed")
    diff.add_argument("server", metavar="SERVER", nargs="?")
    diff.add_argument("tool", metavar="TOOL", nargs="?", help="by the server's own name")
    diff.set_defaults(run=_diff)
    accept = verbs.add_parser("accept", parents=[shared], help="take a definition that waits")
    accept.add_argument("server", metavar="SERVER")
    accept.add_argument("tool", metavar="TOOL", help="by the server's own name")
    accept.add_argument("hash", metavar="HASH", nargs="?", help="the definition that you looked at; asks without it")
    accept.set_defaults(run=_accept)
    refuse = verbs.add_parser("refuse", parents=[shared], help="keep a definition that waits out")
    refuse.add_argument("server", metavar="SERVER")
    refuse.add_argument("tool", metavar="TOOL", help="by the server's own name")
    refuse.add_argument("hash", metavar="HASH", nargs="?", help="the definition that you looked at; asks without it")
    refuse.set_defaults(run=_refuse)
    forget = verbs.add_parser("forget", parents=[shared], help="drop a pin; the next definition waits for you")
    forget.add_argument("server", metavar="SERVER")
    forget.add_argument("tool", metavar="TOOL", help="by the server's own name")
    forget.set_defaults(run=_forget)


def _list(chosen: argparse.Namespace, screen: Screen) -> int:
    with ProjectState.of(load(chosen)) as kept:
        pins = kept.pins.list()
    names = _names(pins)
    shown = table("SERVER", "TOOL", "STATE", "HASH", "PINNED", "BY", whole="HASH")
    for pin in pins:
        accepted = (local_time(pin.pinned_at), line(pin.pinned_by)) if pin.hash else (line("-"), line("-"))
        short = line((pin.hash or pin.seen_hash)[:_SHORT])
        shown.add_row(line(pin.server), line(pin.own_name), Text(*_STATES[pin.state]), short, *accepted)
    answer = [schemas.Pin.of(pin, names).to_json() for pin in pins]
    screen.answer(answer, shown if pins else line("Nothing is pinned yet."))
    return 0


def _diff(chosen: argparse.Namespace, screen: Screen) -> int:
    with ProjectState.of(load(chosen)) as kept:
        names = _names(kept.pins.list())
        if chosen.tool is not None:
            pins = [_get(kept.pins, chosen.server, chosen.tool)]
        else:
            pins = [pin for pin in kept.pins.list() if chosen.server in (None, pin.server)]
    changed = [pin for pin in pins if pin.changed]
    shown: list[RenderableType] = []
    for pin in changed:
        shown += [
            _shown(pin),
            *_remarks(pin, names),
            line(_how_to("accept", pin), "bold"),
            line(_how_to("refuse", pin)),
        ]
    screen.answer(
        [schemas.Pin.of(pin, names).to_json() for pin in changed],
        *(shown or [line("Nothing waits: every definition is the pinned one.")]),
    )
    return 0


def _accept(chosen: argparse.Namespace, screen: Screen) -> int:
    with ProjectState.of(load(chosen)) as kept:
        pin, names = _get(kept.pins, chosen.server, chosen.tool), _names(kept.pins.list())
        given = chosen.hash or (_confirmed(pin, names, screen, "Accept") if pin.changed else "")
        accepted = kept.pins.accept(chosen.server, chosen.tool, given, by=signature())
    message = f"{accepted.server}/{accepted.own_name} is pinned to {accepted.hash[:_SHORT]}."
    screen.answer(schemas.Pin.of(accepted, names).to_json(), line(message, "green"))
    return 0


def _refuse(chosen: argparse.Namespace, screen: Screen) -> int:
    with ProjectState.of(load(chosen)) as kept:
        pin, names = _get(kept.pins, chosen.server, chosen.tool), _names(kept.pins.list())
        given = chosen.hash or (_confirmed(pin, names, screen, "Refuse") if pin.changed else "")
        refused = kept.pins.refuse(chosen.server, chosen.tool, given, by=signature())
    message = f"{refused.server}/{refused.own_name} stays out with {refused.seen_hash[:_SHORT]}."
    screen.answer(schemas.Pin.of(refused, names).to_json(), line(message))
    return 0


def _confirmed(pin: Pin, names: ToolNames, screen: Screen, verb: str) -> str:
    """The hash of what the person has seen just now and agrees to."""
    if not sys.stdin.isatty():
        command = _how_to(verb.lower(), pin)
        raise ValueError(f"name the definition that you looked at: {command}")
    screen.err.print(Group(_shown(pin), *_remarks(pin, names)))
    screen.err.print(f"{verb} this definition? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError("nothing was decided")
    return pin.seen_hash


def _forget(chosen: argparse.Namespace, screen: Screen) -> int:
    with ProjectState.of(load(chosen)) as kept:
        kept.pins.forget(chosen.server, chosen.tool, by=signature())
    message = f"{chosen.server}/{chosen.tool} is forgotten; its next definition waits until you accept it."
    screen.answer({"server": chosen.server, "tool": chosen.tool, "forgotten": True}, line(message))
    return 0


def _get(pins: Pins, server: str, tool: str) -> Pin:
    pin = pins.of(server).get(tool)
    if pin is None:
        raise PinNotFound(server=server, own_name=tool, known=[f"{pin.server}/{pin.own_name}" for pin in pins.list()])
    return pin


def _shown(pin: Pin) -> Syntax:
    return Syntax(visible(pin.diff()), "diff", background_color="default", word_wrap=True)


def _remarks(pin: Pin, names: ToolNames) -> list[Text]:
    """What in the new definition is worth a second look."""
    return [line(f"! {flag}", "yellow") for flag in flags(pin.server, pin.seen_definition or {}, names)]


def _names(pins: Iterable[Pin]) -> ToolNames:
    """Whose each name is, as far as that can be told without starting a server: by the pins, and the tree tools."""
    names = ToolNames()
    for name in DECLARATIONS:
        names.add("workspace", name, name, is_ready=True)
    for pin in pins:
        names.add(pin.server, pin.own_name, pool_name(pin.server, pin.own_name), is_ready=bool(pin.hash))
    return names


def _how_to(verb: str, pin: Pin) -> str:
    return f"toolgrove pins {verb} {pin.server} {pin.own_name} {pin.seen_hash[:_SHORT]}"
