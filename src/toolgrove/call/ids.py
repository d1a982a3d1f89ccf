"""What calls and runs are called, in the audit log and everywhere else."""

from __future__ import annotations

import secrets
from itertools import count


class Ids:
    """Gives out ids that no other process gives out, nor this project after a restart."""

    def __init__(self) -> None:
        self._instance = secrets.token_hex(5)
        self._numbers = count(1)

    def call(self) -> str:
        """The id of the next call."""
        return f"c{self._instance}-{next(self._numbers)}"

    def run(self) -> str:
        """The id of the next run."""
        return f"r{self._instance}-{next(self._numbers)}"
