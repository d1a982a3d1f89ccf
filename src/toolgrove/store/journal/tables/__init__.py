"""The journal as rows in tables, whichever database holds them.

- ``connection``: what a database has to offer
- ``encoding``: values as text with a checksum
- ``rows``: an entry as the rows that it becomes
- ``entries``: a group of entries, within a transaction
- ``sharing``: an entry as other processes take it over
- ``line``: the entries that wait for the writer
- ``writer``: the thread that commits what has come in meanwhile as one group
- ``stall``: a store that somebody else holds, and one wait for all who want to write
- ``loading``: the workspace, read back from its rows
- ``going_on``: what an audit log says first when it goes on
- ``head_row``: the one row that says where a store stands
- ``idempotency_keys``: idempotency records in their table
- ``unfinished_calls``: calls that began to change something outside, in their table
- ``replay``: the journal against the stored tree, and that against those that are served
- ``audit_queries``: the audit records in their table, asked for and proved
- ``audit_bodies``: the arguments and results beside the records
- ``audit_copies``: copies of the audit records outside the store
- ``audit_retention``: how long audit records are kept
"""
