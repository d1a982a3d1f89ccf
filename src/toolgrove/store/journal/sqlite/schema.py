"""The tables, their version, and opening a file that may hold them."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

from toolgrove.store.journal.sqlite import compaction
from toolgrove.store.journal.tables.audit_queries import SPAN_OF, UNUSUAL_OUTCOME
from toolgrove.store.read_only import is_read_only, reading_address
from toolgrove.store.unusable import StoreUnusable

log = logging.getLogger("toolgrove.store")
APPLICATION = 0x47524F56  # "GROV"
VERSION = 6
STATE_TABLES = (
    *("head", "node", "journal", "fold", "view", "expanded", "bookmark", "snapshot", "idempotency"),
    "unfinished",
)

_NAMES_CHANGES = 6
"""The first version whose journal names each change."""
KIND = "json_extract(line, '$.kind')"
"""What kind a record is of; NULL for a call."""

# Every body carries its whole content; the columns beside it are there to find it.
_TABLES = """
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), body TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE node (id TEXT PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE journal (
    revision INTEGER PRIMARY KEY, base INTEGER NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL
);
CREATE TABLE fold (moment INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE view (
    agent TEXT, session TEXT, body TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (agent, session)
) WITHOUT ROWID;
CREATE TABLE expanded (
    place INTEGER PRIMARY KEY, agent TEXT NOT NULL, session TEXT NOT NULL, node TEXT NOT NULL,
    body TEXT NOT NULL, crc INTEGER NOT NULL, UNIQUE (agent, session, node)
);
CREATE TABLE bookmark (
    agent TEXT, label TEXT, body TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (agent, label)
) WITHOUT ROWID;
CREATE TABLE snapshot (number INTEGER PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE idempotency (
    number INTEGER PRIMARY KEY, agent TEXT NOT NULL, key TEXT NOT NULL, at REAL NOT NULL,
    body TEXT NOT NULL, crc INTEGER NOT NULL, UNIQUE (agent, key)
);
CREATE TABLE audit (
    number INTEGER PRIMARY KEY, timestamp TEXT NOT NULL, agent TEXT NOT NULL, operation TEXT NOT NULL,
    outcome TEXT NOT NULL, line TEXT NOT NULL
);
"""
_NAMED = "SELECT revision, base, epoch || '-' || revision AS id, epoch || '-' || base AS parent, body, crc FROM"
_EPOCH = "(SELECT json_extract(body, '$.epoch') AS epoch FROM main.head)"
_SINCE = {
    2: "CREATE TABLE audit_body (number INTEGER PRIMARY KEY, arguments TEXT, result TEXT, size INTEGER NOT NULL)",
    3: "CREATE TABLE unfinished (call TEXT PRIMARY KEY, body TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID",
    # What is usual needs no index: it is found at once from either end.
    4: f"""
    CREATE INDEX audit_agent ON audit (agent);
    CREATE INDEX audit_operation ON audit (operation);
    CREATE INDEX audit_timestamp ON audit (timestamp);
    CREATE INDEX audit_outcome ON audit (outcome) WHERE {UNUSUAL_OUTCOME};
    CREATE INDEX audit_kind ON audit ({KIND}) WHERE {KIND} IS NOT NULL
    """,
    # What is written together stands together in them; else each agent that writes changes a page of its own.
    5: f"""
    DROP INDEX audit_agent;
    DROP INDEX audit_operation;
    CREATE INDEX audit_agent ON audit ({SPAN_OF}, agent);
    CREATE INDEX audit_operation ON audit ({SPAN_OF}, operation)
    """,
    # Changes of before are named by the epoch of the store, as their version tokens were.
    6: f"""
    ALTER TABLE journal RENAME TO journal_5;
    CREATE TABLE journal (
        revision INTEGER PRIMARY KEY, base INTEGER NOT NULL, id TEXT NOT NULL, parent TEXT NOT NULL,
        body TEXT NOT NULL, crc INTEGER NOT NULL
    );
    INSERT INTO journal {_NAMED} journal_5, {_EPOCH};
    DROP TABLE journal_5
    """,
}
"""What each later version added."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection that commits when told, and then for good."""
    connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    return _set_up(connection, "PRAGMA synchronous=FULL")


def read_as_now(connection: sqlite3.Connection) -> None:
    """Have a reader find in a store of an older format what the present one has; the file stays as it is."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version < _NAMES_CHANGES:
        connection.execute("PRAGMA query_only=OFF")
        connection.execute(f"CREATE TEMP VIEW journal AS {_NAMED} main.journal, {_EPOCH}")
        connection.execute("PRAGMA query_only=ON")


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing, and makes no file where there is none."""
    address = reading_address(path) if is_read_only(path) else f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(address, timeout=10, isolation_level=None, check_same_thread=False, uri=True)
    return _set_up(connection, "PRAGMA query_only=ON")


def _set_up(connection: sqlite3.Connection, statement: str) -> sqlite3.Connection:
    try:
        connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


def recognize(path: Path, connection: sqlite3.Connection) -> tuple[int, bool]:
    """The version of a store, and whether it is an empty file; raises StoreUnusable if it is none, or too new."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    is_empty = connection.execute("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)").fetchone()[0]
    if application != APPLICATION and not (is_empty and application == version == 0):
        raise StoreUnusable(
            where=path, problem="is another program's database", advice="Choose another path in workspace.store."
        )
    if version > VERSION:
        raise StoreUnusable(
            where=path,
            problem=f"has format {version}, and this Toolgrove reads up to {VERSION}",
            advice="Upgrade Toolgrove, or restore a backup made before the upgrade.",
        )
    return version, bool(is_empty)


def establish(path: Path, connection: sqlite3.Connection) -> None:
    """Make sure that the file is a store of this version; an empty file becomes one."""
    version, is_empty = recognize(path, connection)
    if is_empty:
        compaction.prepare(connection)
    connection.execute("PRAGMA journal_mode=WAL")
    if version < VERSION:
        if not is_empty:
            log.info("The store %s is brought to format %d; a large one takes a while.", path, VERSION)
        connection.execute("BEGIN EXCLUSIVE")
        for statement in _TABLES.split(";\n") if is_empty else ():
            connection.execute(statement)
        for added in range(max(version, 1) + 1, VERSION + 1):
            for statement in _SINCE[added].split(";\n"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")


def flaw(connection: sqlite3.Connection) -> str | None:
    """What is wrong with the structure of the tables that hold the state; the audit chain proves itself, and
    only its end must be within reach."""
    connection.execute("SELECT line FROM audit ORDER BY number DESC LIMIT 1").fetchone()
    for table in STATE_TABLES:
        with closing(connection.execute(f"PRAGMA quick_check({table})")) as found:
            verdict = found.fetchone()[0]
        if verdict != "ok":
            return str(verdict)
    return None
