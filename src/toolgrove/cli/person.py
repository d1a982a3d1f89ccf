"""Who sits at the command line, as decisions are signed."""

from __future__ import annotations

import getpass


def person() -> str:
    """The operating system's name of the user; no agent can be called so, since names have no colon."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a container without a user entry
        return "cli:unknown"
