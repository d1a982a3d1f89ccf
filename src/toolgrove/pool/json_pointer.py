"""One step of a JSON pointer, through a document that anybody may have written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NOWHERE = object()
_INDEX = re.compile(r"[0-9]{1,9}")


def step(place: Any, token: str) -> Any:
    """What a token of a pointer leads to from a place; NOWHERE if there is nothing."""
    key = token.replace("~1", "/").replace("~0", "~")
    if isinstance(place, Mapping):
        return place.get(key, NOWHERE)
    if isinstance(place, list) and _INDEX.fullmatch(key) and int(key) < len(place):
        return place[int(key)]
    return NOWHERE
