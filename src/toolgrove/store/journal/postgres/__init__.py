"""The store in PostgreSQL: several processes write it, in turns that the row of the head decides.

Nothing here is imported before a project names such a store, since psycopg is an extra.

- ``journal``: the journal that calls append to
- ``ledger``: a group of entries in one transaction, and what became of one whose end nobody heard
- ``holders``: processes that hold the head and fell silent
- ``opening``: connecting, migrating and reading a store
- ``audit_log``: the audit records, asked for and proved
- ``replicas``: which processes have the store open, and calls of those that are gone
- ``settling``: approvals that a call used up, in the transaction of its record
- ``asking``: which tree each replica serves
- ``doorbell``: rings when another process has written
- ``following``: what others wrote since a revision
- ``measuring``: how much room the tables take
- ``reading``: a connection for short questions
- ``tables``: the statements of the tables, as PostgreSQL takes them
- ``failures``: what an error of PostgreSQL means to the writer
"""
