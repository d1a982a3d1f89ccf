"""Audit records for other programs: JSON Lines with every seal, and CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from toolgrove.notation.unseen_text import one_line

_COLUMNS = (
    "number",
    "timestamp",
    "callId",
    "agent",
    "session",
    "operation",
    "outcome",
    "targets",
    "durationMs",
    "kind",
    "by",
)


def as_lines(lines: Iterable[str]) -> str:
    """One record per line, to the letter as the log holds them, so that they can be verified again."""
    return "".join(f"{line}\n" for line in lines)


def as_csv(records: Iterable[dict[str, Any]], *, heading: bool = True) -> str:
    """A table; a spreadsheet reads every cell as text, and nothing hides in one."""
    out = io.StringIO()
    writer = csv.writer(out)
    if heading:
        writer.writerow((*_COLUMNS, "errorCode", "hash"))
    writer.writerows(_row(record) for record in records)
    return out.getvalue()


def _row(record: dict[str, Any]) -> Iterator[str]:
    error = record.get("error") or {}
    values = [record.get(column, "") for column in _COLUMNS]
    for value in (*values, error.get("code", ""), record.get("hash", "")):
        text = one_line(" ".join(value) if isinstance(value, list) else str(value))
        # A spreadsheet must read it as text, whatever a caller wrote.
        yield f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text
