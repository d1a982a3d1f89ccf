"""Takes characters that no reader can see out of what foreign tools answer, where the operator wants that."""

from __future__ import annotations

from typing import Any

from toolgrove.notation.unseen_text import stripped

STRIPPED = "results.stripControl"


def without_unseen(value: Any) -> Any:
    """A JSON value without such characters, in its texts and keys."""
    if isinstance(value, str):
        return stripped(value)
    if isinstance(value, dict):
        return {stripped(key): without_unseen(item) for key, item in value.items()}
    return [without_unseen(item) for item in value] if isinstance(value, list) else value
