"""What a JSON pointer leads to, in a document of any origin; never leaves the document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

NOWHERE = object()
_INDEX = re.compile(r"[0-9]{1,9}")


def at(document: Any, pointer: str) -> Any:
    """What stands at a pointer as a `$ref` writes it after its `#`; NOWHERE if nothing does."""
    place = document
    for token in unquote(pointer).split("/")[1:]:
        place = _step(place, token.replace("~1", "/").replace("~0", "~"))
    return place


def _step(place: Any, key: str) -> Any:
    if isinstance(place, Mapping):
        return place.get(key, NOWHERE)
    if isinstance(place, list) and _INDEX.fullmatch(key) and int(key) < len(place):
        return place[int(key)]
    return NOWHERE
