"""`toolgrove tokens`: who may come in, and new tokens for them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Container
from typing import Any, NamedTuple

from toolgrove.cli.project import load
from toolgrove.cli.screen import Screen, line, table
from toolgrove.cli.text import local_time, signature
from toolgrove.errors import AgentNotFound, InvalidArgument
from toolgrove.notation.times import to_seconds
from toolgrove.project_state import ProjectState
from toolgrove.store.state import OPERATOR, hashed, token_id

_OPERATOR = "operator"
_UNITS = {"m": 60.0, "h": 3600.0, "d": 86_400.0}
_TIME = re.compile(r"([1-9][0-9]{0,3})([mhd])")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "tokens",
        parents=[shared],
        description="Tokens are kept as hashes; a new one is shown once. Everybody may have several, each with an id.",
    )
    parser.set_defaults(run=_list)
    verbs = parser.add_subparsers(metavar="VERB")
    verbs.add_parser("list", parents=[shared], help="who has one (what plain 'tokens' does)").set_defaults(run=_list)
    new = verbs.add_parser("new", parents=[shared], help="make a token; the others stay good")
    new.add_argument("holder", metavar="AGENT", help=f"an agent, or {_OPERATOR!r} for yourself")
    new.add_argument(
        "--for", metavar="TIME", dest="lifetime", type=_lifetime, help="void after this time, such as 12h or 30d"
    )
    new.add_argument("--replace", action="store_true", help="make the holder's other tokens void")
    new.set_defaults(run=_new)
    revoke = verbs.add_parser("revoke", parents=[shared], help="make a token void, or all tokens of an agent")
    revoke.add_argument("token", metavar="ID|AGENT", help=f"a token's id, an agent, or {_OPERATOR!r} for yourself")
    revoke.set_defaults(run=_revoke)


def _list(chosen: argparse.Namespace, screen: Screen) -> int:
    config = load(chosen)
    with ProjectState.of(config) as state:
        have, ends = state.tokens.holders(also_expired=True), state.tokens.expiries()
        good = state.tokens.holders()
    rows = [
        _Row(holder, token_id(kept), _standing(holder, kept in good, ends.get(kept), config.agents), ends.get(kept))
        for kept, holder in have.items()
    ]
    rows += [_Row(holder, None, "none") for holder in (OPERATOR, *config.agents) if holder not in have.values()]
    rows.sort(key=lambda row: row.holder)
    shown = table("HOLDER", "ID", "TOKEN")
    for row in rows:
        shown.add_row(line(_shown(row.holder)), line(row.id or ""), line(row.standing))
    screen.answer([row.to_json() for row in rows], shown)
    return 0


class _Row(NamedTuple):
    holder: str
    id: str | None
    standing: str
    expires_at: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The row for machines."""
        return {
            "holder": _shown(self.holder),
            "id": self.id,
            "issued": self.id is not None,
            "expiresAt": None if self.expires_at is None else to_seconds(self.expires_at),
        }


def _standing(holder: str, is_good: bool, ends: float | None, agents: Container[str]) -> str:
    if _is_gone(holder, agents):
        return "void: no such agent"
    if not is_good:
        return "void: its time is over"
    return "issued" if ends is None else f"issued until {local_time(ends)}"


def _new(chosen: argparse.Namespace, screen: Screen) -> int:
    holder = _holder(chosen.holder, load(chosen).agents)
    if holder is None:
        raise AgentNotFound(chosen.holder, [*load(chosen).agents, _OPERATOR])
    with ProjectState.of(load(chosen), make=True) as state:
        token = state.tokens.issue(holder, by=signature(), replace=chosen.replace, lifetime=chosen.lifetime)
    known_as = token_id(hashed(token))
    message = line(f"Token {known_as} of {_shown(holder)}, shown this once:")
    facts = {"holder": _shown(holder), "id": known_as, "token": token}
    screen.answer(facts, message, line(token, "bold"), fold=False)
    return 0


def _revoke(chosen: argparse.Namespace, screen: Screen) -> int:
    holder = _holder(chosen.token, load(chosen).agents)
    with ProjectState.of(load(chosen)) as state:
        meant = [
            kept
            for kept, whose in state.tokens.holders(also_expired=True).items()
            if (whose == holder if holder is not None else token_id(kept) == chosen.token)
        ]
        if not meant:
            raise InvalidArgument(
                f"There is no token {chosen.token!r}, nor one of such an agent; see 'toolgrove tokens'."
            )
        for kept in meant:
            state.tokens.revoke(kept, by=signature())
    ids = [token_id(kept) for kept in meant]
    screen.answer({"revoked": ids}, line(f"Void now: {', '.join(ids)}."))
    return 0


def _lifetime(text: str) -> float:
    """Seconds of a time such as 12h."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError("write a number and a unit: 30m, 12h or 90d")
    return int(found[1]) * _UNITS[found[2]]


def _holder(named: str, agents: Container[str]) -> str | None:
    return named if named in agents else OPERATOR if named == _OPERATOR else None


def _is_gone(name: str, agents: Container[str]) -> bool:
    return name != OPERATOR and name not in agents


def _shown(holder: str) -> str:
    return _OPERATOR if holder == OPERATOR else holder
