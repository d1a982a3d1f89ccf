"""Where the calls of a project's agents are counted, if not in this process alone."""

from __future__ import annotations

from importlib import import_module

from toolgrove.config import Config
from toolgrove.pool.secrets import Secrets
from toolgrove.store.limits import SharedWindows
from toolgrove.store.postgres import DatabaseAddress, needing_psycopg


def shared_limits_of(config: Config, secrets: Secrets, database: DatabaseAddress | None) -> SharedWindows | None:
    """What the replicas count in together; None where each counts for itself."""
    store = config.rate_limits.store or ("process" if database is None else "database")
    if store == "process" or not any(agent.rate_limit for agent in config.agents.values()):
        return None
    windows: SharedWindows
    if store == "database" and database is not None:
        module = needing_psycopg("toolgrove.store.limits.postgres", where=database.told)
        windows = module.PostgresWindows(database)
        return windows
    try:
        module = import_module("toolgrove.store.limits.redis")
    except ImportError:
        raise ValueError(
            "rateLimits.store is in Redis, and the packages for it are missing: pip install 'toolgrove[redis]'"
        ) from None
    windows = module.RedisWindows(secrets.fill(store, field="rateLimits.store", user="store"), config.project)
    return windows
