"""Going on with a log: what it has to say first about a missing end, another key, and calls that were cut off."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
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


def resume(
    tail: Tail,
    missed: Sequence[Place],
    notary: Notary | None,
    timestamp: str,
    lived: Callable[[str], str] | None = None,
    *,
    is_sealed: bool,
) -> Resumption:
    """How a log goes on; `missed` are places that it must have passed and does not hold.

    `is_sealed` where signatures of this project's key cover all of it. `lived` tells until when the process of a call
    is known to have lived; without it, the log's last record does.
    """
    after, lost = tail.place, None
    public = notary.public if notary is not None and after.number and not is_sealed else ""
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
        records.append(broken(timestamp, lost=lost, ends=sorted(set(missed)), public=public))
    if public:
        log.warning("From now on this project's key signs the audit log; its last records have another seal or none.")
        if lost is None:
            records.append(newly_sealed(timestamp, public))
    cut_off = tail.unfinished.close(timestamp, lived or (lambda call_id: tail.last))
    for record in cut_off:
        log.warning("The outcome of call %s of %s is unknown.", record["callId"], record["operation"])
    return Resumption(after=after, records=[*records, *cut_off], lost=lost)
