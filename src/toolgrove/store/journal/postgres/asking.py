"""Asking every replica which tree it serves, by a notice that each of them hears and answers with another.

Nothing is stored for that, and nothing is worked out before somebody asks. Who asks need not be a replica. A replica is
known by the names under which it says that it is alive: its journal has one, and what keeps the state may have another.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from contextlib import closing
from time import monotonic

from toolgrove.store.audit import Served
from toolgrove.store.journal.postgres.doorbell import QUESTION, channel
from toolgrove.store.journal.postgres.replicas import running
from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.postgres.address import DatabaseAddress
from toolgrove.store.postgres.connecting import connect

PATIENCE = 10.0
"""Seconds in which a replica answers: the digest of a large tree takes one or two."""


def ask_replicas(address: DatabaseAddress) -> tuple[list[Served], list[str]]:
    """What the replicas say that they serve, and those that do not say it."""
    nonce, found = secrets.token_hex(8), list[Served]()
    with closing(connect(address)) as connection:
        tables = PostgresTables(connection)
        tables.execute(f'LISTEN "{_answers(address)}"')
        silent = set(running(tables))
        if silent:
            tables.execute("SELECT pg_notify(?, ?)", (channel(address), f"{QUESTION}{nonce}"))
        ends = monotonic() + PATIENCE
        while silent and monotonic() < ends:
            for notice in connection.notifies(timeout=ends - monotonic(), stop_after=1):
                said = json.loads(notice.payload)
                if said["nonce"] == nonce:
                    silent -= set(said["names"])
                    found.append(Served(said["names"][0], said["version"], said["digest"]))
            silent &= set(running(tables))
    return found, sorted(silent)


def answer(tables: PostgresTables, address: DatabaseAddress, nonce: str, names: Sequence[str], served: Served) -> None:
    """Say which tree a replica serves, to whoever asked."""
    said = {"nonce": nonce, "names": list(names), "version": served.version, "digest": served.digest}
    tables.execute("SELECT pg_notify(?, ?)", (_answers(address), json.dumps(said)))


def _answers(address: DatabaseAddress) -> str:
    return f"{channel(address)[:50]}.served"
