"""Inserting many rows with few statements: each one hands the interpreter over and waits to get it back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain
from typing import Any

_ROWS = 256


def insert(connection: sqlite3.Connection, opening: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run `INSERT INTO table (columns)` for all rows."""
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        place = f"({','.join('?' * len(part[0]))})"
        values = ",".join([place] * len(part))
        connection.execute(f"{opening} VALUES {values}", list(chain.from_iterable(part)))
