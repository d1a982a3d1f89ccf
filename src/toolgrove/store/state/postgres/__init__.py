"""The state in the project's database: pins, approvals, tokens and logins that every replica shares.

- ``database``: the connections and the transactions, one writer at a time
- ``time``: the database's clock, which all replicas go by
- ``copies``: what is asked for often, kept in memory and renewed when somebody changes it
- ``members``: which processes share it
- ``project_files``: the files by which they run
- ``handoffs``: answers that came to another replica than the one that asked
- ``following``: hearing what other replicas changed
- ``pins``: pins in it
- ``approvals``: approvals in it
- ``tokens``: tokens in it
- ``logins``: logins to servers in it
- ``deeds``: what people did, until it is on record
"""

from toolgrove.store.state.postgres.approvals import PostgresApprovals
from toolgrove.store.state.postgres.database import StateDatabase
from toolgrove.store.state.postgres.deeds import PostgresDeeds
from toolgrove.store.state.postgres.following import Following
from toolgrove.store.state.postgres.handoffs import PostgresHandoffs
from toolgrove.store.state.postgres.logins import PostgresLogins
from toolgrove.store.state.postgres.members import Member
from toolgrove.store.state.postgres.pins import PostgresPins
from toolgrove.store.state.postgres.project_files import ProjectFiles
from toolgrove.store.state.postgres.tokens import PostgresTokens

__all__ = [
    "Following",
    "Member",
    "PostgresApprovals",
    "PostgresDeeds",
    "PostgresHandoffs",
    "PostgresLogins",
    "PostgresPins",
    "PostgresTokens",
    "ProjectFiles",
    "StateDatabase",
]
