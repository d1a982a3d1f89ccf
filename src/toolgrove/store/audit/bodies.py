"""What a call was given and what came back, kept beside its record, which holds their hashes.

A log may drop bodies and stay whole, but it cannot hold others than those that were written.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_END = re.compile(r',"previous":"[0-9a-f]{64}","hash":"[0-9a-f]{64}"(?:,"seal":"[0-9a-f]*")?')
_decode = json.JSONDecoder().raw_decode


class Bodies(NamedTuple):
    """Each as JSON text in ASCII; None where it is not kept."""

    arguments: str | None = None
    result: str | None = None

    @property
    def size(self) -> int:
        """How many bytes they fill."""
        arguments, result = self
        return (0 if arguments is None else len(arguments)) + (0 if result is None else len(result))

    def state_hashes(self, record: dict[str, Any]) -> None:
        """Put into a record what it says of them."""
        if self.arguments is not None:
            record["argumentsHash"] = _hash(self.arguments)
        if self.result is not None:
            record["resultHash"] = _hash(self.result)

    def beside(self, line: str) -> str:
        """The line of a record with its bodies in it, as files hold it."""
        return line[:-1] + "".join(f',"{name}":{text}' for name, text in self._texts()) + "}"

    def misfit(self, record: Mapping[str, Any]) -> str | None:
        """Which of them is not the one that the record was written with."""
        return next((name for name, text in self._texts() if record.get(f"{name}Hash") != _hash(text)), None)

    def _texts(self) -> list[tuple[str, str]]:
        return [(name, text) for name, text in zip(self._fields, self, strict=True) if text is not None]


NO_BODIES = Bodies()


def parted(line: str) -> tuple[str, Bodies]:
    """The line of a record without its bodies, and these; a text that is no record is left as it is.

    No text inside of a record can look like its end, since JSON escapes quotes.
    """
    line = line.rstrip("\n")
    end = _END.search(line)
    if end is None or line[end.end() :] == "}":
        return line, NO_BODIES
    texts: dict[str, str] = {}
    at = end.end()
    for name in Bodies._fields:
        key = f',"{name}":'
        if line.startswith(key, at):
            try:
                until = _decode(line, at + len(key))[1]
            except ValueError:
                return line, NO_BODIES
            texts[name], at = line[at + len(key) : until], until
    return (line[: end.end()] + "}", Bodies(**texts)) if line[at:] == "}" else (line, NO_BODIES)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
