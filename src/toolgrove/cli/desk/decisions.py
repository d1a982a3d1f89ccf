"""Operations: approvals and pins, seen and decided."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import anyio

from toolgrove.cli.desk.rest import Kept
from toolgrove.errors import PinNotFound
from toolgrove.grove import Grove
from toolgrove.pool.definition_lint import ToolNames
from toolgrove.pool.naming import pool_name
from toolgrove.store.state import ApprovalState, Lasting, Pin
from toolgrove.tools import DECLARATIONS
from toolgrove.types import Client
from toolgrove.web import schemas

_LOOK = 0.5


async def approvals(project: Kept, client: Client, *, state: ApprovalState | None = None) -> Any:
    """Calls that wait for a person, or waited."""
    return [schemas.Approval.of(one).to_json() for one in await project.approvals.list(state)]


async def approval(project: Kept, client: Client, *, id: str) -> Any:
    """One of them."""
    return schemas.Approval.of(await project.approvals.get(id)).to_json()


async def watch(project: Kept, client: Client) -> AsyncIterator[Any]:
    """Those that wait now, then each one that is new, or is no longer as it was."""
    known: dict[str, str] = {}
    first = True
    while True:
        for one in await project.approvals.list(None):
            if known.get(one.id) != one.state:
                if not first or one.state == "pending":
                    yield schemas.Approval.of(one).to_json()
                known[one.id] = one.state
        first = False
        await anyio.sleep(_LOOK)


async def decide(
    project: Kept, client: Client, *, id: str, approve: bool, by: str, reason: str = "", lasts: Lasting | None = None
) -> Any:
    """Approve or reject a call that waits."""
    decided = await project.approvals.decide(id, approve=approve, by=by, reason=reason, lasts=lasts)
    return schemas.Approval.of(decided).to_json()


async def revoke(project: Kept, client: Client, *, id: str, by: str) -> Any:
    """Take back an approval that is not used up."""
    return schemas.Approval.of(await project.approvals.revoke(id, by=by)).to_json()


async def pins(project: Kept, client: Client) -> Any:
    """Every pin."""
    names = _names(project)
    return [schemas.Pin.of(pin, names).to_json() for pin in project.pins.list()]


async def pin(project: Kept, client: Client, *, server: str, tool: str) -> Any:
    """One of them."""
    found = project.pins.of(server).get(tool)
    if found is None:
        known = [f"{one.server}/{one.own_name}" for one in project.pins.list()]
        raise PinNotFound(server=server, own_name=tool, known=known)
    return schemas.Pin.of(found, _names(project)).to_json()


async def accept(project: Kept, client: Client, *, server: str, tool: str, hash: str, by: str) -> Any:
    """Take a definition that waits."""
    return _decided(project, project.pins.accept(server, tool, hash, by=by))


async def refuse(project: Kept, client: Client, *, server: str, tool: str, hash: str, by: str) -> Any:
    """Keep a definition that waits out."""
    return _decided(project, project.pins.refuse(server, tool, hash, by=by))


async def forget(project: Kept, client: Client, *, server: str, tool: str, by: str) -> Any:
    """Drop a pin."""
    project.pins.forget(server, tool, by=by)
    _tell(project, server)
    return {"server": server, "tool": tool, "forgotten": True}


def _decided(project: Kept, decided: Pin) -> Any:
    _tell(project, decided.server)
    return schemas.Pin.of(decided, _names(project)).to_json()


def _tell(project: Kept, server: str) -> None:
    """Have a server that runs listed anew with what was decided."""
    if isinstance(project, Grove):
        project.pool.invalidate(server)


def _names(project: Kept) -> ToolNames:
    """Whose each name is; of a project at rest, as far as the pins and the tree tools tell."""
    if isinstance(project, Grove):
        return ToolNames.of(project.pool.latest.offers.values())
    return _pinned_names(project.pins.list())


def _pinned_names(pins: Iterable[Pin]) -> ToolNames:
    names = ToolNames()
    for name in DECLARATIONS:
        names.add("workspace", name, name, is_ready=True)
    for one in pins:
        names.add(one.server, one.own_name, pool_name(one.server, one.own_name), is_ready=bool(one.hash))
    return names
