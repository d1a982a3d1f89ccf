"""Fair shares of each host that HTTP tools call, whatever entry of the project leads there."""

from __future__ import annotations

from toolgrove.pool.fair_shares import FairShares
from toolgrove.pool.http.url import Origin
from toolgrove.types import Clock

AT_ONCE = 16
"""Requests to one host at a time."""


class HostShares:
    """Knows the hosts of one project; its file names them, so there are only so many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shares: dict[Origin, FairShares] = {}

    def of(self, origin: Origin) -> FairShares:
        """The shares of one host; those who share it need not know of each other."""
        shares = self._shares.get(origin)
        if shares is None:
            shares = self._shares[origin] = FairShares(AT_ONCE, self._clock, of=f"The host {origin.authority!r}")
        return shares
