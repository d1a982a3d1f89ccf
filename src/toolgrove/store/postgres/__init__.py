"""The database of a project whose store is PostgreSQL: one schema, which journal and state share.

Only ``address`` and ``extra`` can be imported without psycopg.

- ``address``: what `postgresql://…` says, and what of it may be shown
- ``extra``: loads what needs psycopg, or says how to install it
- ``connecting``: connections with their time limits, and what failures of theirs mean
- ``migrating``: brings a schema to the newest version, and gives an application's role its rights
- ``presence``: which processes are there
- ``migrations``: the steps, one file of SQL each
"""

from toolgrove.store.postgres.address import POSTGRESQL, DatabaseAddress
from toolgrove.store.postgres.extra import needing_psycopg

__all__ = ["POSTGRESQL", "DatabaseAddress", "needing_psycopg"]
