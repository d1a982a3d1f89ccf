"""The state file: pins, approvals, tokens and logins in one SQLite file that several processes share.

- ``file``: the file, its tables and its transactions
- ``shared_contents``: whether the file was overwritten
- ``pins``: pins in it
- ``approvals``: approvals in it
- ``tokens``: tokens in it
- ``logins``: logins to servers in it
- ``deeds``: what people did, until it is on record
"""

from toolgrove.store.state.sqlite.approvals import SqliteApprovals
from toolgrove.store.state.sqlite.deeds import SqliteDeeds
from toolgrove.store.state.sqlite.file import STATE_FILE, StateFile, StateTooNew, project_of
from toolgrove.store.state.sqlite.file import VERSION as STATE_VERSION
from toolgrove.store.state.sqlite.logins import SqliteLogins
from toolgrove.store.state.sqlite.pins import SqlitePins
from toolgrove.store.state.sqlite.tokens import SqliteTokens

__all__ = [
    "STATE_FILE",
    "STATE_VERSION",
    "SqliteApprovals",
    "SqliteDeeds",
    "SqliteLogins",
    "SqlitePins",
    "SqliteTokens",
    "StateFile",
    "StateTooNew",
    "project_of",
]
