"""Bearer tokens: one per agent and one for the operator, kept as hashes only."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import Protocol

from toolgrove.store.state import StateFile

OPERATOR = "(operator)"
"""Whom the operator's token names; no agent can be called so."""
PREFIX = "tg_"


class Tokens(Protocol):
    """Whose token is whose."""

    def issue(self, holder: str) -> str:
        """Make a token, shown this once; an older one of the same holder is void."""

    def holders(self) -> Mapping[str, str]:
        """Who has a token, and the hash under which it is kept."""

    def revoke(self, holder: str) -> None: ...


def _made() -> tuple[str, str]:
    token = PREFIX + secrets.token_urlsafe(32)
    return token, hashed(token)


def hashed(token: str) -> str:
    """How a token is kept: it has 256 random bits, so a plain hash cannot be turned back."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class MemoryTokens:
    """Tokens of a process that may forget."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}

    def issue(self, holder: str) -> str:
        """Make a token, shown this once; an older one of the same holder is void."""
        self.revoke(holder)
        token, kept = _made()
        self._holders[kept] = holder
        return token

    def holders(self) -> Mapping[str, str]:
        """Who has a token, and the hash under which it is kept."""
        return {holder: kept for kept, holder in self._holders.items()}

    def revoke(self, holder: str) -> None:
        """Make a holder's token void."""
        self._holders = {kept: other for kept, other in self._holders.items() if other != holder}


class SqliteTokens:
    """Tokens in the state file; one that another process issues or revokes counts at once."""

    def __init__(self, state: StateFile) -> None:
        self._state = state

    def issue(self, holder: str) -> str:
        """Make a token, shown this once; an older one of the same holder is void."""
        token, kept = _made()
        with self._state.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO tokens (holder, hash) VALUES (?, ?)", (holder, kept))
        return token

    def holders(self) -> Mapping[str, str]:
        """Who has a token, and the hash under which it is kept."""
        with self._state.reading() as connection:
            return dict(connection.execute("SELECT holder, hash FROM tokens ORDER BY holder").fetchall())

    def revoke(self, holder: str) -> None:
        """Make a holder's token void."""
        with self._state.writing() as connection:
            connection.execute("DELETE FROM tokens WHERE holder = ?", (holder,))
