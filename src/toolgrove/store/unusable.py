"""The one error of a store, or of its log, that cannot be opened."""

from __future__ import annotations


class StoreUnusable(OSError):
    """A store cannot be used, and what to do about it; always one line."""

    def __init__(self, *, where: object, problem: str, advice: str, kind: str = "store") -> None:
        super().__init__(" ".join(f"The {kind} {where} {problem}. {advice}".split()))


class StoreInUse(StoreUnusable):
    """Another process has it now, and may let go of it."""
