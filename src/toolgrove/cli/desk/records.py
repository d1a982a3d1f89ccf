"""Operations: the audit log, page by page, as it grows, and whether it is whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import anyio

from toolgrove.cli.audit_log import verified
from toolgrove.cli.desk.rest import Kept, log_for, public_key
from toolgrove.grove import Grove
from toolgrove.store.audit import AuditQuery, Place
from toolgrove.types import Client
from toolgrove.web.schemas import Verification

_LOOK = 0.5


async def page(project: Kept, client: Client, **query: Any) -> Any:
    """Some records, to the letter as the log holds them."""
    found = await (await log_for(project)).records(AuditQuery(**query))
    return {"lines": list(found.lines), "next": found.next}


async def follow(project: Kept, client: Client, *, after: int, **query: Any) -> AsyncIterator[Any]:
    """Every record behind a number, as it comes; a project that was never called may begin."""
    wanted = AuditQuery(**query)
    while True:
        found = await (await log_for(project)).records(replace(wanted, after=after))
        for record in found.records:
            after = record["number"]
            yield record
        if found.next is None:
            await anyio.sleep(_LOOK)


async def key(project: Kept, client: Client, *, needed: bool = True) -> str:
    """The public half of the key of the log; ValueError where the key is `needed` and not here."""
    public = public_key(project)
    if not public and needed:
        raise ValueError(
            "the key of the audit log is not here: the first start of a project that keeps its log makes one, unless "
            "workspace.auditKey names it"
        )
    return public


async def verify(project: Kept, client: Client, *, anchors: Sequence[str] = (), deep: bool = False) -> Any:
    """Whether no record was altered, removed or reordered; `deep`, whether the tree is what the journal says, too."""
    places = [Place.read(one) for one in anchors]
    if isinstance(project, Grove):
        return Verification.of(await project.verify(places, deep=deep)).to_json()
    return Verification.of(await verified(await log_for(project, places), places, deep=deep)).to_json()
