"""Tools of the pool: those that no agent can have, and those whose definition waits for a person."""

from __future__ import annotations

from collections.abc import Iterator

from toolgrove.cli.checks.finding import Finding
from toolgrove.pool.snapshot import PoolSnapshot


def check(snapshot: PoolSnapshot) -> Iterator[Finding]:
    """Quarantined and pending ones, refused ones, and names that are taken."""
    for offer in snapshot.offers.values():
        if offer.standing == "quarantined":
            name = f"{offer.source} {offer.own_name}"
            text = f"{offer.reason}; see 'toolgrove pins diff {name}', then 'toolgrove pins accept {name}'"
            yield Finding(area="tools", level="error", subject=offer.name, message=text)
        elif offer.standing == "pending":
            name = f"{offer.source} {offer.own_name}"
            text = f"{offer.reason}; see 'toolgrove pins diff {name}', then 'toolgrove pins accept {name}'"
            yield Finding(area="tools", level="warning", subject=offer.name, message=text)
        elif offer.standing == "unvalidated":
            yield Finding(area="tools", level="warning", subject=offer.name, message=offer.reason)
    for offer in snapshot.rejected:
        yield Finding(area="tools", level="warning", subject=offer.name, message=f"{offer.source}: {offer.reason}")
    ready = sum(offer.standing == "ready" for offer in snapshot.offers.values())
    sources = len({offer.source for offer in snapshot.offers.values()})
    text = f"{ready} of {len(snapshot.offers)} tools are ready, from {sources} source{'s' * (sources != 1)}"
    yield Finding(area="tools", level="ok", subject="pool", message=text)
