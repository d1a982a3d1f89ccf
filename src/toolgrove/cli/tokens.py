"""`toolgrove tokens`: who may come in, and new tokens for them."""

from __future__ import annotations

import argparse
import re
from typing import Any

from toolgrove.cli.desk.opening import asked
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.text import OPERATOR_NAME as _OPERATOR
from toolgrove.cli.text import local_time, signature

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86_400.0}
_TIME = re.compile(r"([1-9][0-9]{0,3})([mhd])")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "tokens",
        parents=[shared],
        description="Tokens are kept as hashes; a new one is shown once. Everybody may have several, each with an id.",
    )
    verbs = parser.add_subparsers(metavar="VERB")
    verbs.add_parser("list", parents=[shared], help="list who has a token (the same as plain 'tokens')").set_defaults(
        run=_list
    )
    new = verbs.add_parser("new", parents=[shared], help="make a token; the others stay good")
    new.add_argument("holder", metavar="AGENT", help=f"an agent, or {_OPERATOR!r} for yourself")
    new.add_argument(
        "--for", metavar="TIME", dest="lifetime", type=_lifetime, help="expire after this time, such as 12h or 30d"
    )
    new.add_argument("--replace", action="store_true", help="revoke the holder's other tokens")
    new.set_defaults(run=_new)
    revoke = verbs.add_parser("revoke", parents=[shared], help="revoke a token, or all tokens of an agent")
    revoke.add_argument("token", metavar="ID|AGENT", help=f"a token's id, an agent, or {_OPERATOR!r} for yourself")
    revoke.set_defaults(run=_revoke)


def _list(chosen: argparse.Namespace, screen: Screen) -> int:
    rows = asked(chosen, screen, "tokens")
    shown = table("HOLDER", "ID", "TOKEN")
    for row in rows:
        until = f" until {local_time(row['ends'])}" if row["standing"] == "issued" and row["ends"] is not None else ""
        shown.add_row(line(row["holder"]), line(row["id"] or ""), line(f"{row['standing']}{until}"))
    screen.answer([{key: row[key] for key in ("holder", "id", "issued", "expiresAt")} for row in rows], shown)
    return 0


def _new(chosen: argparse.Namespace, screen: Screen) -> int:
    wanted = {"holder": chosen.holder, "replace": chosen.replace, "lifetime": chosen.lifetime}
    made = asked(chosen, screen, "tokens.new", make=True, by=signature(), **wanted)
    message = line(f"Token {made['id']} of {made['holder']}. It is shown only once:")
    screen.answer(made, message, line(made["token"], "bold"), fold=False)
    return 0


def _revoke(chosen: argparse.Namespace, screen: Screen) -> int:
    gone = asked(chosen, screen, "tokens.revoke", token=chosen.token, by=signature())
    screen.answer(gone, line(f"Void now: {', '.join(gone['revoked'])}."))
    return 0


def _lifetime(text: str) -> float:
    """Seconds of a time such as 12h."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError("write a number and a unit: 30m, 12h or 90d")
    return int(found[1]) * _UNITS[found[2]]
