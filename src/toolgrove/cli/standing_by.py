"""Standing by while another process has a project."""

from __future__ import annotations

import time
from collections.abc import Sequence

from toolgrove.cli.screen import Screen
from toolgrove.config import ConfigFile
from toolgrove.control.door import reached
from toolgrove.store.journal.sqlite.owner import Owner
from toolgrove.store.unusable import StoreInUse

_LOOK = 0.2


def stand_by(files: Sequence[ConfigFile], screen: Screen) -> None:
    """Return when nobody else has any of the projects; a person is told once who is waited for."""
    told = ""
    while reasons := [reason for file in files if (reason := _taken(file))]:
        if reasons[0] != told:
            told = reasons[0]
            screen.say(f"Standing by: {told}. Ctrl+C stops.", "yellow")
        time.sleep(_LOOK)


def _taken(file: ConfigFile) -> str:
    """Who has the project; empty if nobody does."""
    config = file.config
    store = config.workspace.store_path
    if config.workspace.is_database:  # replicas share it
        return ""
    if store is not None:
        try:
            Owner(store).release()
        except StoreInUse:
            return f"another process has the store {store}"
        return ""
    note = None if config.state is None else reached(config.state, file.path)
    return "" if note is None else f"the gateway at {note.address} serves {file.path}"
