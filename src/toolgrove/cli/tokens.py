"""`toolgrove tokens`: who may come in, and new tokens for them."""

from __future__ import annotations

import argparse
from typing import Any

from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.shelf import shelf
from toolgrove.errors import AgentNotFound, InvalidArgument
from toolgrove.store.tokens import OPERATOR

_OPERATOR = "operator"


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command and its verbs."""
    parser = commands.add_parser(
        "tokens",
        parents=[shared],
        help="see who has a token, make new ones, revoke them",
        description="Tokens are kept as hashes; a new one is shown once and makes the old one void.",
    )
    parser.set_defaults(run=_list)
    verbs = parser.add_subparsers(metavar="VERB")
    verbs.add_parser("list", parents=[shared], help="who has one (what plain 'tokens' does)").set_defaults(run=_list)
    new = verbs.add_parser("new", parents=[shared], help="make a token")
    new.add_argument("holder", metavar="AGENT", help=f"an agent, or {_OPERATOR!r} for yourself")
    new.set_defaults(run=_new)
    revoke = verbs.add_parser("revoke", parents=[shared], help="make a token void")
    revoke.add_argument("holder", metavar="AGENT", help=f"an agent, or {_OPERATOR!r} for yourself")
    revoke.set_defaults(run=_revoke)


def _list(chosen: argparse.Namespace, screen: Screen) -> int:
    config = load(chosen)
    with shelf(config) as kept:
        have = kept.tokens.holders()
    everyone = [OPERATOR, *config.agents, *(name for name in have if name != OPERATOR and name not in config.agents)]
    shown = table("HOLDER", "TOKEN")
    for name in everyone:
        state = "none" if name not in have else "void: no such agent" if _is_gone(name, config.agents) else "issued"
        shown.add_row(line(_shown(name)), line(state))
    screen.answer([{"holder": _shown(name), "issued": name in have} for name in everyone], shown)
    return 0


def _new(chosen: argparse.Namespace, screen: Screen) -> int:
    holder = _holder(chosen)
    with shelf(load(chosen), make=True) as kept:
        token = kept.tokens.issue(holder)
    told = line(f"Token of {_shown(holder)}, shown this once:")
    screen.answer({"holder": _shown(holder), "token": token}, told, line(token, "bold"), fold=False)
    return 0


def _revoke(chosen: argparse.Namespace, screen: Screen) -> int:
    holder = _holder(chosen)
    with shelf(load(chosen)) as kept:
        if holder not in kept.tokens.holders():
            raise InvalidArgument(f"{_shown(holder)} has no token; 'toolgrove tokens' lists who has one.")
        kept.tokens.revoke(holder)
    screen.answer({"holder": _shown(holder), "revoked": True}, line(f"The token of {_shown(holder)} is void."))
    return 0


def _holder(chosen: argparse.Namespace) -> str:
    agents = load(chosen).agents
    if chosen.holder in agents:
        return str(chosen.holder)
    if chosen.holder == _OPERATOR:
        return OPERATOR
    raise AgentNotFound(chosen.holder, [*agents, _OPERATOR])


def _is_gone(name: str, agents: Any) -> bool:
    return name != OPERATOR and name not in agents


def _shown(holder: str) -> str:
    return _OPERATOR if holder == OPERATOR else holder
