"""The checks of `toolgrove doctor`: is everything in order, and if not, what to do.

- ``agents``: does each have tools, and do its patterns match any
- ``audit``: the audit log: its key, its end, and what waits for a person
- ``files``: files that others could read or change, and the state
- ``finding``: what a check found
- ``launch``: the exact command of a server, and whether it names a version
- ``literal``: values that look like secrets and stand in the file
- ``modes``: who but the owner may read a file
- ``references``: the texts of a configuration that may hold a secret
- ``room``: is there enough on the disk, and how far has the audit log grown
- ``runner``: can it be built, and does its model answer
- ``secrets``: is each one set, scoped and private
- ``servers``: what would be started, and did it answer
- ``surroundings``: proxy, CA and index variables that a server did not get
- ``text``: text in the tree that no client could read
- ``tools``: tools that no agent can have, or that a person should read
"""
