"""The section `rateLimits`: where the calls of agents are counted."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from toolgrove.config.section import Section

_REDIS = re.compile(r"rediss?://\S+")


class RateLimitsConfig(Section):
    """Where calls are counted; several replicas must count together."""

    store: str | None = Field(
        default=None,
        description="`redis://…` or `rediss://…` (Redis or Valkey; a password is a reference such as "
        "`${env:GROVE_REDIS_PASSWORD}`), `database` for the one in `workspace.store`, or `process`, each replica by "
        "itself. Without it the database where there is one.",
    )

    @field_validator("store")
    @classmethod
    def _is_known(cls, store: str | None) -> str | None:
        if store is not None and store not in ("process", "database") and not _REDIS.fullmatch(store):
            raise ValueError("this is neither 'process' nor 'database' nor an address that begins with redis://")
        return store
