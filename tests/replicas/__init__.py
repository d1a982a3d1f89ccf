"""Two real gateways on one real PostgreSQL, with Redis for their limits, behind a real HAProxy.

- ``fleet``: the two, started, stopped and killed at will
- ``writers``: clients of both eras that write with idempotency keys
"""
