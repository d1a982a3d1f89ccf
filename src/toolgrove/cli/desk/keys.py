"""Operations: tokens, and a way into the console."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from toolgrove.cli.desk.rest import Kept
from toolgrove.cli.text import OPERATOR_NAME
from toolgrove.errors import AgentNotFound, InvalidArgument
from toolgrove.notation.times import to_seconds
from toolgrove.store.state import OPERATOR, hashed, token_id
from toolgrove.types import Client

SIGNED_IN = 12 * 3600.0
"""Seconds for which a sign-in by `toolgrove open` holds."""


async def tokens(project: Kept, client: Client) -> Any:
    """Who has a token; `expiresAt` is for machines, `ends` in seconds."""
    agents = project.config.agents
    have, ends = project.tokens.holders(also_expired=True), project.tokens.expiries()
    good = project.tokens.holders()
    rows = [
        _row(holder, kept, ends.get(kept), _standing(holder, kept in good, agents)) for kept, holder in have.items()
    ]
    rows += [_row(holder, None, None, "none") for holder in (OPERATOR, *agents) if holder not in have.values()]
    return sorted(rows, key=lambda row: str(row["holder"]))


def _row(holder: str, kept: str | None, ends: float | None, standing: str) -> dict[str, Any]:
    return {
        "holder": shown(holder),
        "id": None if kept is None else token_id(kept),
        "issued": kept is not None,
        "expiresAt": None if ends is None else to_seconds(ends),
        "ends": ends,
        "standing": standing,
    }


def _standing(holder: str, is_good: bool, agents: Container[str]) -> str:
    if holder != OPERATOR and holder not in agents:
        return "void: no such agent"
    return "issued" if is_good else "void: its time is over"


async def new(
    project: Kept, client: Client, *, holder: str, by: str, replace: bool = False, lifetime: float | None = None
) -> Any:
    """Make a token, which is shown this once."""
    whose = _holder(holder, project.config.agents)
    if whose is None:
        raise AgentNotFound(holder, [*project.config.agents, OPERATOR_NAME])
    token = project.tokens.issue(whose, by=by, replace=replace, lifetime=lifetime)
    return {"holder": shown(whose), "id": token_id(hashed(token)), "token": token}


async def revoke(project: Kept, client: Client, *, token: str, by: str) -> Any:
    """Make a token void, or all of a holder."""
    holder = _holder(token, project.config.agents)
    meant = [
        kept
        for kept, whose in project.tokens.holders(also_expired=True).items()
        if (whose == holder if holder is not None else token_id(kept) == token)
    ]
    if not meant:
        raise InvalidArgument(f"There is no token {token!r}, nor one of such an agent; see 'toolgrove tokens'.")
    for kept in meant:
        project.tokens.revoke(kept, by=by)
    return {"revoked": [token_id(kept) for kept in meant]}


async def sign_in(project: Kept, client: Client, *, by: str) -> Any:
    """A token of the operator that ends by itself; all others stay good."""
    return {"token": project.tokens.issue(OPERATOR, by=by, lifetime=SIGNED_IN)}


def _holder(named: str, agents: Container[str]) -> str | None:
    return named if named in agents else OPERATOR if named == OPERATOR_NAME else None


def shown(holder: str) -> str:
    """A holder as people call it."""
    return OPERATOR_NAME if holder == OPERATOR else holder
