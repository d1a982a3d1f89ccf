"""Bearer tokens of agents and of the operator, any number of each, kept as hashes only."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Mapping
from typing import Protocol

from toolgrove.notation.times import to_seconds
from toolgrove.store.state.deeds import Deed

OPERATOR = "(operator)"
"""Whom the operator's token names; no agent can be called so."""
PREFIX = "tg_"
_ID = 12


class Tokens(Protocol):
    """Which token belongs to which agent, or to the operator."""

    def issue(self, holder: str, *, by: str = "", replace: bool = False, lifetime: float | None = None) -> str:
        """Make a token, shown this once; the holder's others stay good, unless it is to replace them.

        It is void when its lifetime in seconds is over; without one it is good until it is revoked.
        """

    def holders(self, *, also_expired: bool = False) -> Mapping[str, str]:
        """Whose each token is, by the hash under which it is kept; one whose time is over is nobody's."""

    def expiries(self) -> Mapping[str, float]:
        """When each token is void that is so by itself, by its hash."""

    def revoke(self, kept: str, *, by: str = "") -> None:
        """Make the token with this hash void."""

    def unused(self) -> Collection[str]:
        """The hashes of those that nobody came with yet."""

    def use(self, kept: str, *, source: str) -> None:
        """Note that somebody came with a token; only the first time counts."""


def token_deed(verb: str, holder: str, kept: str, *, by: str, at: float, **details: str) -> Deed:
    """What was done with a token, which is told by the beginning of its hash."""
    told = {"token": token_id(kept), **details}
    return Deed(kind="token", operation=f"token.{verb}", at=at, by=by, agent=holder, details=told)


def told_until(until: float | None) -> dict[str, str]:
    """When a token is void by itself, as its record says it."""
    return {} if until is None else {"until": to_seconds(until)}


def made() -> tuple[str, str]:
    """A new token, and how it is kept."""
    token = PREFIX + secrets.token_urlsafe(32)
    return token, hashed(token)


def token_id(kept: str) -> str:
    """What people call a token by, without knowing it: the beginning of its hash."""
    return kept[:_ID]


def hashed(token: str) -> str:
    """How a token is kept: it has 256 random bits, so a plain hash cannot be turned back."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
