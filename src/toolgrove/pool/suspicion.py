"""Definitions that are legal but worth a look by a person: a hint, never a gate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolgrove.pool.lettering import texts

_INSTRUCTING = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|earlier|above|other|all|system)\b.{0,20}"
    r"\b(?:instructions?|prompts?|rules?|messages?|context)\b"
    r"|\b(?:do not|don't|never|without)\b.{0,20}\b(?:tell|mention|inform|reveal|show)(?:ing)?\b.{0,20}\buser\b"
    r"|<\s*/?\s*(?:important|system|instructions?|secret)\s*>"
    r"|\b(?:before|instead of)\b.{0,20}\b(?:using|calling)\b.{0,20}\b(?:any|other|another|all)\b.{0,20}\btools?\b"
    r"|\bsystem prompt\b|~/\.ssh|\bid_rsa\b",
    re.IGNORECASE | re.DOTALL,
)
_MIN_REFERRED = 5


def flags(raw: Mapping[str, Any], other_names: Iterable[str] = ()) -> list[str]:
    """What is legal but worth a look: texts that instruct the model, or speak of tools of other servers.

    A hint for people, never a gate: whoever means harm can say it otherwise.
    """
    names = [name for name in other_names if len(name) >= _MIN_REFERRED and name != raw.get("name")]
    referring = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])") if names else None
    found: list[str] = []
    for path, text in texts(raw):
        instructing = _INSTRUCTING.search(text)
        if instructing is not None:
            found.append(f"{path} reads like an instruction to the model: {instructing.group()[:160]!r}")
        if referring is not None:
            found += [
                f"{path} speaks of {name!r}, another server's tool" for name in sorted(set(referring.findall(text)))
            ]
    return found
