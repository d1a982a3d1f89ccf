"""The identity of a project: a random text, made once, that goes wherever the project goes.

A store carries it in its head, a state file in a table, a state folder beside a database in a small file, a backup in
its store. So what belongs to two projects is never used together: not the store of one with the approvals and tokens of
another, and not a database that an address leads to by mistake.

Whoever opens a store says by `Known` what this machine knows already. A store of before has no identity of its own yet.
It gets one that is made from its first facts, so that an old backup of it is known again.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from toolgrove.store.private_file import create_private
from toolgrove.store.unusable import StoreUnusable


class Known(NamedTuple):
    """The project of this machine, and what says so."""

    project: str
    place: object


AsKnown = Callable[[], Known | None]


class OtherProject(StoreUnusable):
    """A store is not of the project of this machine."""

    def __init__(self, *, where: object, project: str, known: Known) -> None:
        super().__init__(
            where=where,
            problem=f"is of project {project}, and {known.place} is of project {known.project}",
            advice="Name the store of this project in workspace.store, or the folder of that one in `state`. If both "
            "are meant to be one project from now on, move the second away; what it holds goes with it.",
        )


@dataclass(slots=True)
class Expected:
    """Which project an address has to lead to: none in particular, the one that this machine knows, or the one that was
    opened; then nothing else will do, not even a store that says nothing of any."""

    known: Known | None = None
    is_open: bool = False

    def refuses(self, found: str | None) -> Known | None:
        """What speaks against a store that was found there."""
        if self.known is None or found == self.known.project or (found is None and not self.is_open):
            return None
        return self.known


def new_identity() -> str:
    """That of a new project."""
    return secrets.token_hex(8)


def earlier_identity(epoch: str, secret: str) -> str:
    """That of a project from before there were any; the same for whoever has this store or a backup of it."""
    return hashlib.sha256(f"project {epoch} {secret}".encode()).hexdigest()[:16]


def agree(where: object, project: str, known: Known | None) -> None:
    """Raise OtherProject where a store is not of the project that is known here."""
    if known is not None and known.project != project:
        raise OtherProject(where=where, project=project, known=known)


def read_mark(path: Path) -> Known | None:
    """What a folder says by its file."""
    try:
        text = path.read_text("ascii").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise StoreUnusable(
            kind="file", where=path, problem=f"cannot be read: {problem}", advice="See to its rights."
        ) from None
    return Known(text, path) if text else None


def write_mark(path: Path, project: str) -> None:
    """Have a folder say of which project it is; one that says so already is left alone."""
    if read_mark(path) is None:
        create_private(path)
        path.write_text(f"{project}\n", "ascii")
