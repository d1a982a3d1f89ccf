"""Which processes are there: each holds a lock that ends with its connection, and says every second that it is alive.

A process that dies loses the lock at once, and counts as gone when its last word is a few seconds old: it might only
have lost its connection. One that hangs, or is cut off, keeps the lock, and counts as gone much later.
"""

from __future__ import annotations

BEAT = 1.0
"""Seconds between two words."""
GRACE = 3.0
"""After how many seconds of silence a process without a lock counts as gone; who just came judges nobody."""
LEASE = 15.0
"""After how many seconds of silence a process counts as gone, whatever it holds."""
HOLD = "SELECT pg_advisory_lock_shared(hashtextextended(%s, 0))"
STAY = "INSERT INTO replica (id) VALUES (%s) ON CONFLICT (id) DO UPDATE SET seen = clock_timestamp()"
LEAVE = "DELETE FROM replica WHERE id = %s"
FORGET = f"DELETE FROM replica WHERE seen < clock_timestamp() - interval '{20 * LEASE} seconds'"  # noqa: S608  our own words
_LOCKS = "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
ALIVE = (
    f"SELECT id FROM replica WHERE seen > clock_timestamp() - interval '{GRACE} seconds' "  # noqa: S608  our own words
    f"OR (seen > clock_timestamp() - interval '{LEASE} seconds' AND hashtextextended(id, 0) IN ({_LOCKS}))"
)
