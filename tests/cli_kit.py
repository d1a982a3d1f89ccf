"""What the tests of the command line share: a command as a shell runs it, and a project file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Said(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Toolgrove = Callable[..., Said]
Project = Callable[..., Path]
