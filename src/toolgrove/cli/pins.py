"""`toolgrove pins`: the definitions of foreign tools that were accepted, and those that wait for a person."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from toolgrove.cli.desk.opening import asked
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.text import local_time, signature
from toolgrove.notation.unseen_text import visible

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
    pins = asked(chosen, screen, "pins")
    shown = table("SERVER", "TOOL", "STATE", "HASH", "PINNED", "BY", whole="HASH")
    for pin in pins:
        accepted = (local_time(pin["pinnedAt"]), line(pin["pinnedBy"])) if pin["hash"] else (line("-"), line("-"))
        short = line((pin["hash"] or pin["seenHash"] or "")[:_SHORT])
        shown.add_row(line(pin["server"]), line(pin["tool"]), Text(*_STATES[pin["state"]]), short, *accepted)
    screen.answer(pins, shown if pins else line("Nothing is pinned yet."))
    return 0


def _diff(chosen: argparse.Namespace, screen: Screen) -> int:
    if chosen.tool is not None:
        pins = [asked(chosen, screen, "pin", server=chosen.server, tool=chosen.tool)]
    else:
        pins = [pin for pin in asked(chosen, screen, "pins") if chosen.server in (None, pin["server"])]
    changed = [pin for pin in pins if pin["diff"]]
    shown: list[RenderableType] = []
    for pin in changed:
        shown += [_shown(pin), *_remarks(pin), line(_how_to("accept", pin), "bold"), line(_how_to("refuse", pin))]
    screen.answer(changed, *(shown or [line("Nothing waits: every definition is the pinned one.")]))
    return 0


def _accept(chosen: argparse.Namespace, screen: Screen) -> int:
    accepted = _decided(chosen, screen, "accept")
    message = f"{accepted['server']}/{accepted['tool']} is pinned to {accepted['hash'][:_SHORT]}."
    screen.answer(accepted, line(message, "green"))
    return 0


def _refuse(chosen: argparse.Namespace, screen: Screen) -> int:
    refused = _decided(chosen, screen, "refuse")
    message = f"{refused['server']}/{refused['tool']} stays out with {refused['seenHash'][:_SHORT]}."
    screen.answer(refused, line(message))
    return 0


def _decided(chosen: argparse.Namespace, screen: Screen, verb: str) -> Any:
    meant = {"server": chosen.server, "tool": chosen.tool}
    pin = asked(chosen, screen, "pin", **meant)
    given = chosen.hash or (_confirmed(pin, screen, verb) if pin["diff"] else "")
    return asked(chosen, screen, f"pins.{verb}", **meant, hash=given, by=signature())


def _confirmed(pin: Mapping[str, Any], screen: Screen, verb: str) -> str:
    """The hash of what the person has seen just now and agrees to."""
    if not sys.stdin.isatty():
        raise ValueError(f"name the definition that you looked at: {_how_to(verb, pin)}")
    screen.err.print(Group(_shown(pin), *_remarks(pin)))
    screen.err.print(f"{verb.capitalize()} this definition? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError("nothing was decided")
    seen: str = pin["seenHash"]
    return seen


def _forget(chosen: argparse.Namespace, screen: Screen) -> int:
    forgotten = asked(chosen, screen, "pins.forget", server=chosen.server, tool=chosen.tool, by=signature())
    message = f"{chosen.server}/{chosen.tool} is forgotten; its next definition waits until you accept it."
    screen.answer(forgotten, line(message))
    return 0


def _shown(pin: Mapping[str, Any]) -> Syntax:
    return Syntax(visible(pin["diff"]), "diff", background_color="default", word_wrap=True)


def _remarks(pin: Mapping[str, Any]) -> list[Text]:
    """What in the new definition is worth a second look."""
    return [line(f"! {flag}", "yellow") for flag in pin["remarks"]]


def _how_to(verb: str, pin: Mapping[str, Any]) -> str:
    return f"toolgrove pins {verb} {pin['server']} {pin['tool']} {pin['seenHash'][:_SHORT]}"
