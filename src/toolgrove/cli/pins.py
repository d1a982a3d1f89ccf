"""`toolgrove pins`: the definitions of foreign tools that were accepted, and those that changed since."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from toolgrove.cli.moment import moment
from toolgrove.cli.person import person
from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line, table, visible
from toolgrove.cli.shelf import shelf
from toolgrove.pool.suspicion import suspect
from toolgrove.store.pins import Pin, PinNotFound, Pins

_SHORT = 12


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser(
        "pins",
        parents=[shared],
        help="see, accept or forget definitions of foreign tools",
        description="A foreign tool is pinned at first use; one whose definition changes is quarantined until you "
        "accept the change.",
    )
    parser.set_defaults(run=_list)
    verbs = parser.add_subparsers(metavar="VERB")
    verbs.add_parser("list", parents=[shared], help="list every pin (what plain 'pins' does)").set_defaults(run=_list)
    diff = verbs.add_parser("diff", parents=[shared], help="show what changed since the pin")
    diff.add_argument("server", metavar="SERVER", nargs="?")
    diff.add_argument("tool", metavar="TOOL", nargs="?", help="by the server's own name")
    diff.set_defaults(run=_diff)
    accept = verbs.add_parser("accept", parents=[shared], help="take a changed definition")
    accept.add_argument("server", metavar="SERVER")
    accept.add_argument("tool", metavar="TOOL", help="by the server's own name")
    accept.add_argument("hash", metavar="HASH", nargs="?", help="the definition that you looked at; asks without it")
    accept.set_defaults(run=_accept)
    forget = verbs.add_parser("forget", parents=[shared], help="drop a pin; the next definition counts as first use")
    forget.add_argument("server", metavar="SERVER")
    forget.add_argument("tool", metavar="TOOL", help="by the server's own name")
    forget.set_defaults(run=_forget)


def _list(chosen: argparse.Namespace, screen: Screen) -> int:
    with shelf(load(chosen)) as kept:
        pins = kept.pins.list()
    shown = table("SERVER", "TOOL", "STATE", "HASH", "PINNED", "BY", whole="HASH")
    for pin in pins:
        state = Text("changed", style="red") if pin.changed else Text("as pinned", style="green")
        short = line(pin.hash[:_SHORT])
        shown.add_row(line(pin.server), line(pin.own_name), state, short, moment(pin.pinned_at), line(pin.pinned_by))
    screen.answer([pin.to_json() for pin in pins], shown if pins else line("Nothing is pinned yet."))
    return 0


def _diff(chosen: argparse.Namespace, screen: Screen) -> int:
    with shelf(load(chosen)) as kept:
        if chosen.tool is not None:
            pins = [_get(kept.pins, chosen.server, chosen.tool)]
        else:
            pins = [pin for pin in kept.pins.list() if chosen.server in (None, pin.server)]
    changed = [pin for pin in pins if pin.changed]
    shown: list[RenderableType] = []
    for pin in changed:
        shown += [_shown(pin), *_remarks(pin), _how_to_accept(pin)]
    screen.answer([pin.to_json() for pin in changed], *(shown or [line("Nothing changed since it was pinned.")]))
    return 0


def _accept(chosen: argparse.Namespace, screen: Screen) -> int:
    with shelf(load(chosen)) as kept:
        pin = _get(kept.pins, chosen.server, chosen.tool)
        given = chosen.hash
        if given is None and pin.changed:
            given = _confirmed(pin, screen)
        accepted = kept.pins.accept(chosen.server, chosen.tool, given or "", by=person())
    told = f"{accepted.server}/{accepted.own_name} is pinned to {accepted.hash[:_SHORT]}."
    screen.answer(accepted.to_json(), line(told, "green"))
    return 0


def _confirmed(pin: Pin, screen: Screen) -> str:
    """The hash of what the person has seen just now and agrees to."""
    if not sys.stdin.isatty():
        raise ValueError(f"name the definition that you looked at: {_how_to_accept(pin).plain}")
    screen.err.print(Group(_shown(pin), *_remarks(pin)))
    screen.err.print("Accept this definition? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError("nothing was accepted")
    return pin.seen_hash


def _forget(chosen: argparse.Namespace, screen: Screen) -> int:
    with shelf(load(chosen)) as kept:
        kept.pins.forget(chosen.server, chosen.tool)
    told = f"{chosen.server}/{chosen.tool} is forgotten; its next definition counts as first use."
    screen.answer({"server": chosen.server, "tool": chosen.tool, "forgotten": True}, line(told))
    return 0


def _get(pins: Pins, server: str, tool: str) -> Pin:
    pin = pins.of(server).get(tool)
    if pin is None:
        raise PinNotFound(server=server, own_name=tool, known=[f"{pin.server}/{pin.own_name}" for pin in pins.list()])
    return pin


def _shown(pin: Pin) -> Syntax:
    return Syntax(visible(pin.diff()), "diff", background_color="default", word_wrap=True)


def _remarks(pin: Pin) -> list[Text]:
    """What in the new definition is worth a second look."""
    return [line(f"! {flag}", "yellow") for flag in suspect(pin.seen_definition or {}).flags(())]


def _how_to_accept(pin: Pin) -> Text:
    return line(f"toolgrove pins accept {pin.server} {pin.own_name} {pin.seen_hash[:_SHORT]}", "bold")
