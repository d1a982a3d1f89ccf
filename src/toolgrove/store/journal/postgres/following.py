"""What others wrote since a change; where that is no longer kept as entries, the workspace as it stands."""

from __future__ import annotations

from collections.abc import Sequence

from toolgrove.store.journal.journal import Diverged, Outdated
from toolgrove.store.journal.news import News
from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.journal.tables.encoding import Damaged
from toolgrove.store.journal.tables.head_row import Head
from toolgrove.store.journal.tables.loading import load
from toolgrove.store.journal.tables.sharing import READ, read_entry, read_parent
from toolgrove.store.postgres.migrations import version
from toolgrove.tree.history import read_id
from toolgrove.tree.saved import SavedWorkspace

_AT_ONCE = 500
# One statement sees one moment: the head, and the entries that lead to it.
_SINCE = (
    f"SELECT head.body, head.crc, head.oldest, {READ} FROM head "  # noqa: S608  our own words
    "LEFT JOIN (journal JOIN entry ON entry.revision = journal.revision) ON journal.revision > ? "
    "ORDER BY journal.revision LIMIT ?"
)
_HELD = "SELECT id FROM journal WHERE id = ANY(?)"
_ONE_MOMENT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_UNHURRIED = (
    "SELECT set_config(name, '10min', true) "
    "FROM unnest(ARRAY['statement_timeout', 'idle_in_transaction_session_timeout']) AS name"
)
"""A large tree takes longer to read than a writer may be silent; nobody waits for one who only reads."""


def news_since(tables: PostgresTables, newest: str) -> News:
    """All that came after a change, or as much as fits at once; raises Diverged if the store does not have that one."""
    named = read_id(newest)
    if named is None:
        raise ValueError(f"{newest!r} does not name a change")
    revision = named[1]
    rows = tables.execute(_SINCE, (revision, _AT_ONCE)).fetchall()
    if not rows:
        raise Damaged("the row of the head is missing")
    if rows[0][2] > version():  # what is new there may be written in a way that this version cannot read
        raise Outdated
    head = Head.of(rows[0][:2])
    found = [row[3:] for row in rows if row[3] is not None]
    if head.newest == newest:
        return News(newest=head.newest)
    if found and read_parent(found[0]) == newest:
        entries = [read_entry(row) for row in found]
        return News(newest=head.newest, entries=entries, is_part=len(found) == _AT_ONCE)
    # What leads from there to the head is no longer kept entry by entry, or the store never was there.
    if head.revision <= revision or (revision > head.mark.floor and missing(tables, [newest])):
        raise Diverged
    return News(newest=head.newest, anew=read_all(tables)[1])


def missing(tables: PostgresTables, changes: Sequence[str]) -> Sequence[str]:
    """Those of some changes that the store does not have, as far as its history reaches."""
    found = {row[0] for row in tables.execute(_HELD, (list(changes),)).fetchall()}
    return [one for one in changes if one not in found]


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
