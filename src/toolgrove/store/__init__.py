"""What outlives a call: the workspace's journal, the audit records, and the project's state.

- ``journal``: effects, idempotency records and audit records, kept together or not at all
- ``audit``: audit records as such: sealing, reading and exporting them
- ``limits``: rate limits that replicas share
- ``state``: pins, approvals and tokens
- ``postgres``: the database that journal and state share, where a project has one
- ``backup``: all of it in one file, and back
- ``moving``: all of it from one store to another
- ``file_contents``: whether a database file holds what we left in it
- ``file_marks``: whether files are still the ones that were opened
- ``gc_pause``: Python's cycle collector, kept from searching a large workspace
- ``private_file``: makes a database file that is its owner's alone
- ``project``: the identity of a project, and what belongs to another
- ``read_only``: databases in a folder that nobody here may write
- ``restore_plan``: files that are put in place together, also where a crash comes between
- ``unusable``: the one error of a store that cannot be opened
"""
