"""PostgreSQL is an extra: whoever needs psycopg and does not have it hears how to get it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from toolgrove.store.unusable import StoreUnusable


def needing_psycopg(module: str, *, where: str) -> Any:
    """A module that needs psycopg, imported only now; StoreUnusable where that is missing."""
    try:
        import_module("psycopg")
    except ImportError:
        raise StoreUnusable(
            where=where,
            problem="needs the package psycopg",
            advice="Install it with: pip install 'toolgrove[postgres]'.",
        ) from None
    return import_module(module)
