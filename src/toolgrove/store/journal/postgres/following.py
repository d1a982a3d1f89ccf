"""What others wrote since a revision; where that is no longer kept as entries, the workspace as it stands."""

from __future__ import annotations

from toolgrove.store.journal.news import News
from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.journal.tables.encoding import Damaged, decode_all
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.loading import load
from toolgrove.store.journal.tables.sharing import READ, read_entry
from toolgrove.tree.saved import SavedWorkspace

_AT_ONCE = 500
# One statement sees one moment: the head, and the entries that lead to it.
_SINCE = (
    f"SELECT head.body, head.crc, {READ} FROM head "  # noqa: S608  our own words
    "LEFT JOIN (journal JOIN entry ON entry.revision = journal.revision) ON journal.revision > ? "
    "ORDER BY journal.revision LIMIT ?"
)
_ONE_MOMENT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_UNHURRIED = (
    "SELECT set_config(name, '10min', true) "
    "FROM unnest(ARRAY['statement_timeout', 'idle_in_transaction_session_timeout']) AS name"
)
"""A large tree takes longer to read than a writer may be silent; nobody waits for one who only reads."""


def news_since(tables: PostgresTables, revision: int) -> News:
    """All that is new, or as much as fits at once."""
    rows = tables.execute(_SINCE, (revision, _AT_ONCE)).fetchall()
    if not rows:
        raise Damaged("the row of the head is missing")
    (head,) = decode_all("head", [rows[0][:2]])
    found = [row[2:] for row in rows if row[2] is not None]
    if head["revision"] <= revision:
        return News()
    if not found or found[0][1] != revision:
        return News(anew=read_all(tables)[1])
    return News(entries=[read_entry(row) for row in found], is_part=len(found) == _AT_ONCE)


def read_all(tables: PostgresTables) -> tuple[Head, SavedWorkspace]:
    """The workspace as it stands at one moment, while others go on writing."""
    tables.execute(f"{_ONE_MOMENT}; {_UNHURRIED}")
    try:
        head = Head.read(tables)
        if head is None:
            raise Damaged("the row of the head is missing")
        return head, load(tables, head)
    finally:
        tables.execute("COMMIT")
