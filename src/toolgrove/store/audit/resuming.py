"""Going on with a log: what it has to say first about a missing end, another key, and calls that were cut off."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolgrove.store.audit.chain import Place
from toolgrove.store.audit.notary import Notary
from toolgrove.store.audit.notices import broken, newly_sealed
from toolgrove.store.audit.sinks import Tail

log = logging.getLogger("toolgrove.store")


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumption:
    """Where the chain goes on, its first records, and where it had ended if its end was cut off."""

    after: Place
    records: Sequence[Mapping[str, Any]]
    lost: Place | None = None


def resume(tail: Tail, missed: Sequence[Place], notary: Notary | None, timestamp: str) -> Resumption:
    """How a log goes on; `missed` are places that it must have passed and does not hold."""
    after, lost = tail.place, None
    records: list[Mapping[str, Any]] = []
    if missed:
        lost = max(*missed, after)
        log.error(
            "The audit log ends at record %d, and once had %d: an older copy was put back, or its end was cut off. "
            "It goes on with a marked break, of which 'toolgrove audit verify' tells.",
            after.number,
            lost.number,
        )
        after = Place(lost.number, after.hash)
        records.append(broken(timestamp, lost=lost))
    if notary is not None and notary.has_key and after.number and not tail.is_sealed:
        log.warning("From now on this machine's key seals the audit log; its records so far have another seal or none.")
        records.append(newly_sealed(timestamp))
    cut_off = tail.unfinished.close(timestamp)
    for record in cut_off:
        log.warning("The outcome of call %s of %s is unknown.", record["callId"], record["operation"])
    return Resumption(after=after, records=[*records, *cut_off], lost=lost)
