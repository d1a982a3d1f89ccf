"""A process that restores a backup and is killed before its nth change of a file: `python … STORE STATE BACKUP N`.

It says how many changes there were if it comes to its end.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from toolgrove.store.backup import Places, restore_backup

_CHANGES = frozenset(("os.rename", "os.link", "os.remove", "os.truncate"))


def main(store: Path, state: Path, backup: Path, last: int) -> None:
    count = 0
    folders = (str(store.parent), str(state.parent))

    def heard(event: str, details: tuple[Any, ...]) -> None:
        nonlocal count
        opens = event == "open" and isinstance(details[2], int) and details[2] & (os.O_WRONLY | os.O_RDWR)
        if (event in _CHANGES or opens) and str(details[0]).startswith(folders):
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(heard)
    restore_backup(Places(store=store, state=state), backup, notary=None, by="test", now=time.time())
    print(count, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
