"""Files that are their owner's alone from the first moment on, or appear whole under their name."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def create_private(path: Path) -> None:
    """Make an empty file that its owner alone may read, and its folder, unless they are there.

    A file that is there is not even opened: closing it would drop the locks that SQLite holds on it in this process.
    SQLite gives the files beside a database the same mode.
    """
    if not path.parent.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def take_name(whole: Path, path: Path) -> None:
    """Give a file that is whole the name that others know; raises FileExistsError if there is one of that name."""
    try:
        os.link(whole, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(f"{path} is there already") from None
        whole.rename(path)
