"""What the tests of the stores share: making one, and entries to put into it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grove_kit import ManualClock, config
from toolgrove import Config, Grove
from toolgrove.store.audit import AuditRecord, Outcome
from toolgrove.store.journal import IdempotencyRecord, JournalEntry, MemoryJournal, SqliteJournal
from toolgrove.store.journal.postgres.journal import PostgresJournal
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.postgres.connecting import connect
from toolgrove.tree.saved import SavedWorkspace
from toolgrove.tree.workspace import Workspace
from toolgrove.types import Caller

DATABASE = "database"
"""A file in the folder of a test, with the address of its database."""
EDITORS = {name: {"role": "editor"} for name in ("ann", "bob")}
AnyJournal = MemoryJournal | SqliteJournal | PostgresJournal
Make = Callable[..., AnyJournal]
STORES: dict[str, Callable[..., AnyJournal]] = {
    "memory": lambda folder, clock, **options: MemoryJournal(clock, **options),
    "sqlite": lambda folder, clock, **options: SqliteJournal(folder / "grove.db", clock, **options),
    "postgresql": lambda folder, clock, **options: PostgresJournal(
        DatabaseAddress.of((folder / DATABASE).read_text()), clock, **options
    ),
}
CALLER = Caller(agent="ann", session="ann", role="editor")


class Scribe:
    """Makes entries as calls would: each new change rests on the one before."""

    def __init__(self, saved: SavedWorkspace | None = None) -> None:
        self.workspace = Workspace()
        self.count = 0
        self.go_on(saved)

    def go_on(self, saved: SavedWorkspace | None) -> None:
        """Go on with what a store holds; one in memory holds nothing."""
        if saved is not None:
            self.workspace.resume(saved)

    def audit(
        self, agent: str = "ann", tool: str = "get_node", outcome: Outcome = "success", at: int = 0
    ) -> JournalEntry:
        return JournalEntry(audit=self.record(agent, tool, outcome, at))

    def record(self, agent: str, tool: str, outcome: Outcome, at: int) -> AuditRecord:
        self.count += 1
        return AuditRecord(
            timestamp=f"2030-01-01T00:00:{at:02}.000+00:00",
            call_id=f"c{self.count}",
            agent=agent,
            session=agent,
            operation=tool,
            outcome=outcome,
        )

    def key(self, key: str, result: Any, agent: str = "ann") -> JournalEntry:
        kept = IdempotencyRecord(agent=agent, key=key, request="r", result=result)
        return JournalEntry(audit=self.record(agent, "slow", "success", 0), idempotency=kept)

    def change(self, payload: dict[str, Any] | None = None) -> JournalEntry:
        """A node added below the root."""
        self.workspace.tree.add(self.workspace.tree.root, "T", payload or {})
        commit = self.workspace.commit(CALLER, "add_child")
        assert commit is not None
        recorded = self.workspace.record(CALLER, [commit], [])
        assert recorded is not None
        return JournalEntry(audit=self.record("ann", "add_child", "success", 0), effects=recorded.effects)


def stored(place: Path | str, agents: dict[str, Any] | None = None, **workspace: Any) -> Config:
    """A configuration with a store in a file, or at the address of a database."""
    store = place if isinstance(place, str) else f"sqlite:{place}"
    return config(agents=agents or EDITORS, workspace={"store": store, **workspace})


def grown_older(address: str, seconds: float) -> None:
    """Have the idempotency keys in a database be older than they are: its own clock, by which they go, stays."""
    parsed = DatabaseAddress.of(address)
    with connect(parsed) as connection:
        connection.execute("UPDATE idempotency SET at = at - %s", (seconds,))


async def portrait(grove: Grove, agents: tuple[str, ...] = ("ann", "bob")) -> dict[str, str]:
    """Everything that agents can read, as text."""
    told: dict[str, str] = {}
    for name in agents:
        for session in (name, "other"):
            agent = await grove.agent(name, session=session)

            async def ask(tool: str, agent: Any = agent, key: str = f"{name}/{session}", **arguments: Any) -> Any:
                answer = await agent.call(tool, arguments)
                told[f"{key} {tool} {arguments}"] = json.dumps(answer)
                return answer

            await ask("get_view", rootNodeId="root", includeViewRoot=True, depthLimit=50)
            await ask("get_node", nodeId="root")
            await ask("get_subtree", nodeId="root", pageSize=3)
            await ask("export_subtree", nodeId="root")
            await ask("list_bookmarks")
            for tag in ("red", "old"):
                await ask("query_by_tag", tag=tag)
            known = [one["snapshotId"] for one in (await ask("snapshot_list"))["items"]]
            for one in known:
                await ask("snapshot_diff", a=one, b="current")
                await ask("snapshot_diff", a=known[0], b=one)
            version = (await agent.call("get_node", {"nodeId": "root"}))["version"]
            first = version.partition("-")[0] + "-0"
            await ask("changes_since", version=first, limit=200)
            for tool in ("undo", "redo"):
                await ask(tool, dryRun=True, versionToken=version)
    return told


__all__ = [
    "CALLER",
    "DATABASE",
    "STORES",
    "AnyJournal",
    "Make",
    "ManualClock",
    "Scribe",
    "grown_older",
    "portrait",
    "stored",
]
