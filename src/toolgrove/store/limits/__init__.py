"""Rate limits that replicas share: counted in Redis or in the project's database, by that server's clock.

- ``windows``: what counts calls, and what it says
- ``redis``: counts in Redis or Valkey, with the library `limits`; imported where it is used
- ``postgres``: counts in the project's database; imported where it is used
"""

from toolgrove.store.limits.windows import LimitsAway, Mark, Quota, SharedWindows

__all__ = ["LimitsAway", "Mark", "Quota", "SharedWindows"]
