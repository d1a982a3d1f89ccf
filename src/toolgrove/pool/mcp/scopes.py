"""Scopes: which a server wants, read from what it says with care, and several sets of them as one."""

from __future__ import annotations

import re

_FIELD = r'(?:^|[\s,]){name}\s*=\s*(?:"([^"]*)"|([^\s,"]+))'
_SCOPE = re.compile(r"[A-Za-z0-9@%+=:,./*~_-]{1,120}")
_MOST = 20


def field_of(challenge: str, name: str) -> str | None:
    """A field of a WWW-Authenticate header."""
    found = re.search(_FIELD.format(name=name), challenge)
    return (found[1] or found[2]) if found else None


def missing_scopes(challenge: str) -> tuple[str, ...] | None:
    """The scopes that a server wants besides, if that is why it refused; only names that can be shown and typed."""
    if field_of(challenge, "error") != "insufficient_scope":
        return None
    named = (field_of(challenge, "scope") or "").split()
    return tuple(dict.fromkeys(scope for scope in named if _SCOPE.fullmatch(scope)))[:_MOST]


def union(*sets: str | None) -> str | None:
    """All scopes of several sets, each once, in their order; None where there is none."""
    return " ".join(dict.fromkeys(scope for one in sets if one for scope in one.split())) or None
