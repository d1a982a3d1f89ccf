"""Backups: a project's store, state and audit logs in one file, made while it runs, and put back while it does not.

- ``contents``: what is in such a file, and where each part belongs
- ``checking``: is a store, or a state, whole
- ``making``: copying everything at one moment
- ``restoring``: putting it back, with what was there kept beside it
"""

from toolgrove.store.backup.checking import project_at
from toolgrove.store.backup.contents import Places
from toolgrove.store.backup.making import Backup, make_backup
from toolgrove.store.backup.restoring import Restored, restore_backup

__all__ = ["Backup", "Places", "Restored", "make_backup", "project_at", "restore_backup"]
