"""Moving a project from one store to another: all of it, compared on both sides before it counts.

- ``moving``: the move itself
- ``journal_tables``: the tables of a journal, which are the same in every store, and the digest of one
- ``state_contents``: what people decided, as values, and its digest
- ``sqlite``: a store in a file, with its state file
- ``postgres``: a store in a database; imported where it is used
"""

from toolgrove.store.moving.moving import Moved, Place, move
from toolgrove.store.moving.sqlite import SqlitePlace

__all__ = ["Moved", "Place", "SqlitePlace", "move"]
