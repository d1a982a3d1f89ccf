"""Approvals in the state file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import anyio

from toolgrove.store.state.approvals import Approval, ApprovalKey, ApprovalRequest, ApprovalState, ApprovalTable
from toolgrove.store.state.deeds import Deed
from toolgrove.store.state.sqlite.deeds import note
from toolgrove.store.state.sqlite.file import StateFile
from toolgrove.types import EarlierCall

T = TypeVar("T")
_REQUEST = tuple(field.name for field in fields(ApprovalRequest))
_OUTCOME = tuple(field.name for field in fields(Approval) if field.name != "request")
_COLUMNS = ", ".join((*_REQUEST, *_OUTCOME))
_MARKS = ", ".join("?" * (len(_REQUEST) + len(_OUTCOME)))
_JSON = frozenset(("arguments", "definition", "sends", "chain", "earlier"))


class SqliteApprovals:
    """Approvals that every process with the same state file shares."""

    def __init__(self, state: StateFile) -> None:
        self._state = state
        self._turn: anyio.CapacityLimiter | None = None

    async def transact(self, work: Callable[[ApprovalTable], T]) -> T:
        """Run work in one transaction; it ends whole even if the caller is cancelled."""
        if self._turn is None:
            self._turn = anyio.CapacityLimiter(1)  # one file, one writer: no second thread could do more than wait
        return await anyio.to_thread.run_sync(self._transact, work, limiter=self._turn)

    async def look(self, work: Callable[[ApprovalTable], T]) -> T:
        """Run work that changes nothing; it waits for nobody who writes."""
        return await anyio.to_thread.run_sync(self._look, work)

    def _look(self, work: Callable[[ApprovalTable], T]) -> T:
        with self._state.reading() as connection:
            return work(ApprovalRows(connection))

    def _transact(self, work: Callable[[ApprovalTable], T]) -> T:
        with self._state.writing() as connection:
            return work(ApprovalRows(connection))


class ApprovalRows:
    """The approvals inside one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, approval_id: str) -> Approval | None:
        found = self._select("WHERE id = ?", approval_id)
        return found[0] if found else None

    def of(self, key: ApprovalKey) -> Sequence[Approval]:
        agent, tool, arguments, definition, chain = key
        call = "agent = ? AND tool = ? AND arguments_hash = ? AND definition_hash = ? AND chain = ?"
        return self._select(f"WHERE {call}", agent, tool, arguments, definition, json.dumps(chain))

    def of_agent(self, agent: str, state: ApprovalState) -> Sequence[Approval]:
        return self._select("WHERE agent = ? AND state = ?", agent, state)

    def all(self) -> Sequence[Approval]:
        return self._select("")

    def put(self, approval: Approval) -> None:
        values = [getattr(approval.request, name) for name in _REQUEST]
        values = [json.dumps(value) if name in _JSON else value for name, value in zip(_REQUEST, values, strict=True)]
        values += [getattr(approval, name) for name in _OUTCOME]
        self._connection.execute(f"INSERT OR REPLACE INTO approvals ({_COLUMNS}) VALUES ({_MARKS})", values)  # noqa: S608

    def purge(self, before: float) -> None:
        self._connection.execute("DELETE FROM approvals WHERE expires_at < ?", (before,))

    def note(self, deed: Deed) -> None:
        note(self._connection, deed)

    def _select(self, where: str, *values: Any) -> list[Approval]:
        text = f"SELECT {_COLUMNS} FROM approvals {where} ORDER BY requested_at, id"  # noqa: S608
        return [_approval(row) for row in self._connection.execute(text, values)]


def _approval(row: Sequence[Any]) -> Approval:
    asked = {
        name: json.loads(value) if name in _JSON and value is not None else value
        for name, value in zip(_REQUEST, row[: len(_REQUEST)], strict=True)
    }
    outcome = dict(zip(_OUTCOME, row[len(_REQUEST) :], strict=True))
    earlier = asked["earlier"]
    asked |= {"chain": tuple(asked["chain"]), "earlier": None if earlier is None else EarlierCall(*earlier)}
    return Approval(request=ApprovalRequest(**asked), **outcome)
