"""What an error of PostgreSQL means to the writer: later, again, or never."""

from __future__ import annotations

import errno

import psycopg
from psycopg import errors

AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
"""The transaction lost a race that it need not lose next time."""
_LATER = (
    errors.LockNotAvailable,
    errors.QueryCanceled,
    errors.ReadOnlySqlTransaction,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.TooManyConnections,
    errors.IdleInTransactionSessionTimeout,
)


def passes(error: psycopg.Error, *, is_cut: bool) -> bool:
    """Whether it may be over soon: the server is down, busy or another one now."""
    return is_cut or isinstance(error, (*_LATER, psycopg.InterfaceError))


def refusal(error: psycopg.Error) -> OSError:
    """An error that another try will not mend by itself."""
    if isinstance(error, errors.DiskFull):
        return OSError(errno.ENOSPC, "no room for the store: free some space on the database's disk")
    lines = str(error).splitlines() or [type(error).__name__]
    return OSError(errno.EIO, f"the store cannot be written: {lines[0]}")
