"""Real services for tests, from the machine's own packages: each starts once per test process, in a folder of its own.

- ``programs``: where a program is; missing ones skip a test loudly, and fail it in CI
- ``postgres``: a private PostgreSQL that can be killed and started again
- ``redis``: a private Redis
- ``haproxy``: a private HAProxy before two servers, with the configuration of the examples
- ``proxy``: a network that can break
- ``state``: the state in each of its places
- ``fixtures``: `postgres`, and `database`, an address with a schema that nobody else uses
"""
