"""Why the state cannot be read or written now."""

from __future__ import annotations


class StateUnavailable(OSError):
    """The state cannot be read or written now."""


class StateBusy(StateUnavailable):
    """Another process holds the state; nothing was written, and to try again is safe."""

    def __init__(self, where: object) -> None:
        super().__init__(f"another process holds {where}; nothing was changed, and trying again is safe")


class StateAway(StateUnavailable):
    """The database cannot be reached; nothing was written, and all is well when it is back."""

    def __init__(self, where: object, problem: object) -> None:
        super().__init__(f"{where} cannot be reached, and nothing was changed: {problem}")
