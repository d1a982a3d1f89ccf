"""What was opened with a token ends with it."""

from __future__ import annotations

import logging

import anyio

from toolgrove.web.agent_endpoints import AgentEndpoints
from toolgrove.web.identity import REREAD, Lookup
from toolgrove.web.streams import Streams

log = logging.getLogger("toolgrove.serve")


class Revocations:
    """Looks once a second whether the tokens of open streams and sessions are still good, whoever revokes them."""

    def __init__(self, lookup: Lookup, streams: Streams, endpoints: AgentEndpoints) -> None:
        self._lookup, self._streams, self._endpoints = lookup, streams, endpoints

    async def follow(self) -> None:
        """Keep looking, until cancelled."""
        told = False
        while True:
            await anyio.sleep(REREAD)
            try:
                await self._look()
                told = False
            except OSError as problem:
                if not told:
                    log.warning("Whether tokens were revoked cannot be seen: %s", problem)
                told = True
            except Exception:  # an endpoint may close meanwhile; that must not end the gateway, nor this watch
                log.exception("ending what a void token opened failed")

    async def _look(self) -> None:
        users = self._streams.users | self._endpoints.users
        if not users:
            return
        self._lookup.reread()
        for user in users:
            if not self._lookup.is_good(user):
                streams, sessions = self._streams.end(user), await self._endpoints.end_sessions(user)
                log.info("the token of %s is void; streams ended: %d, sessions ended: %d", user.name, streams, sessions)
