"""Approvals in the project's database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import anyio

from toolgrove.store.postgres.connecting import Connection
from toolgrove.store.state.approvals import Approval, ApprovalKey, ApprovalRequest, ApprovalState, ApprovalTable
from toolgrove.store.state.deeds import Deed
from toolgrove.store.state.postgres.database import StateDatabase
from toolgrove.store.state.postgres.deeds import note
from toolgrove.types import EarlierCall

T = TypeVar("T")
_REQUEST = tuple(field.name for field in fields(ApprovalRequest))
_BODY = tuple(one.name for one in fields(Approval) if one.name not in ("request", "id", "state", "call_id"))
_COLUMNS = "id, state, call_id, body"
_PUT = (
    "INSERT INTO approvals (id, state, call_id, body, agent, call_key, requested_at, expires_at) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET state = excluded.state, "
    "call_id = excluded.call_id, body = excluded.body, expires_at = excluded.expires_at"
)


class PostgresApprovals:
    """Approvals that every replica shares."""

    def __init__(self, state: StateDatabase) -> None:
        self._state = state
        self._turn: anyio.CapacityLimiter | None = None

    async def transact(self, work: Callable[[ApprovalTable], T]) -> T:
        """Run work in one transaction; it ends whole even if the caller is cancelled."""
        if self._turn is None:
            self._turn = anyio.CapacityLimiter(1)  # one connection writes: no second thread could do more than wait
        return await anyio.to_thread.run_sync(self._transact, work, limiter=self._turn)

    async def look(self, work: Callable[[ApprovalTable], T]) -> T:
        """Run work that changes nothing; it waits for nobody who writes."""
        return await anyio.to_thread.run_sync(self._look, work, abandon_on_cancel=True)

    def _look(self, work: Callable[[ApprovalTable], T]) -> T:
        with self._state.reading() as connection:
            return work(ApprovalRows(connection))

    def _transact(self, work: Callable[[ApprovalTable], T]) -> T:
        with self._state.writing("approvals") as connection:
            return work(ApprovalRows(connection, locks=True))


class ApprovalRows:
    """The approvals inside one transaction."""

    def __init__(self, connection: Connection, *, locks: bool = False) -> None:
        """`locks` where what is read may be changed then: a journal settles claims without waiting for its turn."""
        self._connection = connection
        self._lock = " FOR UPDATE" if locks else ""

    def get(self, approval_id: str) -> Approval | None:
        found = self._select("WHERE id = %s", _plain(approval_id), lock=self._lock)
        return found[0] if found else None

    def of(self, key: ApprovalKey) -> Sequence[Approval]:
        return self._select("WHERE call_key = %s", _digest(key))

    def of_agent(self, agent: str, state: ApprovalState) -> Sequence[Approval]:
        return self._select("WHERE agent = %s AND state = %s", agent, state)

    def all(self) -> Sequence[Approval]:
        return self._select("")

    def put(self, approval: Approval) -> None:
        asked = approval.request
        body = {name: getattr(approval, name) for name in _BODY}
        body["request"] = {name: getattr(asked, name) for name in _REQUEST}
        columns = (approval.id, approval.state, approval.call_id, json.dumps(body), asked.agent, _digest(asked.key))
        self._connection.execute(_PUT, (*columns, approval.requested_at, approval.expires_at))

    def purge(self, before: float) -> None:
        self._connection.execute("DELETE FROM approvals WHERE expires_at < %s", (before,))

    def note(self, deed: Deed) -> None:
        note(self._connection, deed)

    def _select(self, where: str, *values: Any, lock: str = "") -> list[Approval]:
        text = f'SELECT {_COLUMNS} FROM approvals {where} ORDER BY requested_at, id COLLATE "C"{lock}'  # noqa: S608
        return [_approval(*row) for row in self._connection.execute(text.encode(), values).fetchall()]


def _approval(id: str, state: ApprovalState, call_id: str, body: str) -> Approval:
    kept = json.loads(body)
    asked = kept.pop("request")
    earlier = asked["earlier"]
    asked |= {"chain": tuple(asked["chain"]), "earlier": None if earlier is None else EarlierCall(*earlier)}
    return Approval(id=id, state=state, call_id=call_id, request=ApprovalRequest(**asked), **kept)


def _digest(key: ApprovalKey) -> str:
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()


def _plain(approval_id: str) -> str:
    """An id that somebody typed, without what PostgreSQL refuses; such a one is nobody's."""
    return approval_id if approval_id.isascii() and "\0" not in approval_id else ""
