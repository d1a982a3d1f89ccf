"""Keep a stored project as this version writes it, for all later versions to open.

    PYTHONPATH=tests python -m store.formats.make FOLDER

One day of work is done twice, in a file and in a database, and both are kept as they stand while the last call is still
under way, as a crash would leave them:

- ``grove.db.sql``, ``state/state.db.sql``: the store and the state, as SQL
- ``audit.jsonl``, ``grove.db-archive.jsonl``, ``state/``: the copy of the audit log, its archive, its key and its mark
- ``backup.zip``: what `toolgrove backup` made of all that
- ``database/``: ``dump.sql`` as pg_dump wrote it, and the same files beside it
- ``facts.json``: what agents and people were told that day, in each of the two

What is long is packed (``.gz``).
"""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
from apcore import Registry
from pydantic import BaseModel

from grove_kit import ManualClock, hand
from services.postgres import OWNER, Postgres
from services.programs import program
from toolgrove import Config, Grove
from toolgrove.cli import main as toolgrove
from toolgrove.store.audit import AuditQuery
from toolgrove.store.state import OPERATOR, Pins

DAY = 86_400.0
SCHEMA = "released"
AGENTS: dict[str, dict[str, Any]] = {
    "ann": {"role": "editor", "tools": ["*"]},
    "bob": {"role": "editor", "tools": ["*"]},
    "carl": {"role": "editor", "tools": ["*"], "approve": ["remove_node", "add_child"]},
}
HOUSE = {
    "nodeId": "estate",
    "payloadType": "Estate",
    "payload": {"name": "Estate"},
    "children": [
        {
            "nodeId": "house",
            "payloadType": "House",
            "payload": {"name": "Haus \u2013 Gr\u00fcn", "rooms": 3},
            "tags": ["red"],
            "children": [
                {"nodeId": "kitchen", "payloadType": "Room", "payload": {"name": "Kitchen", "size": 150}},
                {"nodeId": "bath", "payloadType": "Room", "payload": {"name": "Bath", "size": 60, "open": None}},
                {"nodeId": "attic", "payloadType": "Room", "payload": {"name": "Attic", "deep": {"a": [1, 2.5, "x"]}}},
            ],
        },
        {"nodeId": "garden", "payloadType": "Garden", "payload": {}},
    ],
}


def project(folder: Path, store: str = "sqlite:grove.db", **workspace: Any) -> Config:
    """The project file of such a project."""
    kept = {"store": store, "auditLog": "audit.jsonl", "auditDays": 1, "auditArchive": "grove.db-archive.jsonl"}
    form = {"agents": AGENTS, "workspace": kept | workspace, "state": "state"}
    (folder / "toolgrove.yaml").write_text(json.dumps(form, indent=1) + "\n")
    return Config.load(folder / "toolgrove.yaml")


class _Nothing(BaseModel):
    """Neither taken nor given."""


class Order:
    """A module that changes something outside and never answers."""

    description = "Orders something."
    input_schema = output_schema = _Nothing

    def __init__(self) -> None:
        self.reached = anyio.Event()

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        self.reached.set()
        await anyio.sleep_forever()
        return {}


async def day(grove: Grove, clock: ManualClock) -> dict[str, Any]:
    """A day of work, and what was told on it."""
    ann, bob, carl = await hand(grove, "ann"), await hand(grove, "bob"), await hand(grove, "carl")
    trees: dict[str, str] = {}

    async def note() -> None:
        trees[await ann.version()] = await ann.tree()

    await note()
    await ann.ok("import_merge", json=HOUSE, strategy="upsert")
    await note()
    clock.now += 2 * DAY  # from here on the records so far are old
    form = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"name": "gr\u00fcn", "n": 1}}
    based = {**form, "versionToken": await ann.version(), "idempotencyKey": "k-1"}
    replay = {"arguments": based, "result": await ann.ok("add_child", **based)}
    for number, who in enumerate((ann, bob, ann)):
        await who.ok("add_child", parentNodeId="garden", payloadType="Tree", payloadProps={"n": number})
        await note()
    await bob.ok("update_payload", nodeId="kitchen", patch={"size": 151, "colours": ["a", {"b": "\U0001f333"}]})
    await note()
    made = await ann.ok("snapshot_create", label="first")
    await ann.ok("bookmark", nodeId="attic", label="up")
    await bob.ok("bookmark", nodeId="bath", label="wet")
    await bob.ok("expand_node", nodeId="house")
    await bob.ok("collapse_node", nodeId="garden")
    await ann.ok("set_filters", scope="view", included=["name"], excluded=[])
    await ann.ok("move_node", nodeId="bath", newParentId="garden")
    await note()
    await bob.ok("tag_node", nodeId="bath", tags=["blue", "old"])
    await note()
    batch: list[dict[str, Any]] = [
        {"op": "add", "parentId": "house", "payloadType": "Room", "payload": {"name": "Hall"}},
        {"op": "set", "at": "attic", "path": "name", "value": "Loft"},
        {"op": "remove", "at": "bath"},
    ]
    await bob.ok("apply_changes", changes=batch)
    await note()
    await ann.ok("copy_subtree", sourceId="house", targetParentId="garden", mode="reference")
    await note()
    await ann.ok("undo")
    await note()
    await ann.ok("redo")
    await note()
    await ann.refused("get_node", nodeId="nobody")
    await ann.refused("add_child", parentNodeId="nobody", payloadType="T")

    tokens = {name: grove.tokens.issue(name, by="grace") for name in ("ann", OPERATOR)}
    pins: Pins = grove.pins
    for tool, by in (("search", "cli:grace"), ("order", "first use")):
        pins.pin("up", tool, tool[0] * 64, {"name": tool, "inputSchema": {"type": "object"}}, by=by)
    pins.met("up")
    pins.saw("up", "order", "f" * 64, {"name": "order", "inputSchema": {"type": "object"}, "description": "More"})
    approvals = []
    for number in range(4):
        answer = await carl("add_child", parentNodeId="garden", payloadType="Carl", payloadProps={"n": number})
        approvals.append(answer["error"]["approvalId"])
    await grove.approvals.decide(approvals[0], approve=True, by="grace")
    await carl.ok("add_child", parentNodeId="garden", payloadType="Carl", payloadProps={"n": 0})
    await note()
    await grove.approvals.decide(approvals[1], approve=True, by="grace")
    await grove.approvals.decide(approvals[2], approve=False, by="grace", reason="not today")
    last = await ann.ok("update_payload", nodeId="attic", patch={"name": "Dach"})
    await note()
    await grove.recorder.collect()
    return {
        "trees": trees,
        "version": last["version"],
        "tree": await ann.tree(),
        "replay": replay,
        "tokens": tokens,
        "approvals": {one.id: one.state for one in await grove.approvals.list()},
        "pins": {pin.own_name: [pin.state, pin.pinned_by, pin.hash] for pin in pins.list()},
        "snapshot": {"id": made["snapshotId"], "subtree": (await ann.ok("snapshot_list"))["items"]},
        "bookmarks": {one.agent.name: (await one.ok("list_bookmarks"))["items"] for one in (ann, bob)},
        "views": {one.agent.name: await one.ok("get_view", rootNodeId="root") for one in (ann, bob)},
        "now": clock.now,
    }


async def _lived(config: Config, keep: Callable[[], None]) -> dict[str, Any]:
    """Do the day's work in a project, and have it kept while a call is under way; what was told."""
    clock, registry, order = ManualClock(), Registry(), Order()
    registry.register("order", order)
    async with Grove(config, clock=clock, extensions=registry) as grove:
        facts = await day(grove, clock)
        async with anyio.create_task_group() as group:
            ordering = await grove.agent("bob")
            group.start_soon(ordering.call, "order", {})
            with anyio.fail_after(30):
                await order.reached.wait()
            proof = await grove.audit_log.verify()
            assert proof.breach is None
            facts["proof"] = {"first": proof.first, "last": proof.last, "sealedFrom": proof.sealed_from}
            facts["end"] = (await grove.audit_log.records(AuditQuery(newest=True, limit=1))).records[0]["hash"]
            await anyio.to_thread.run_sync(keep)
            group.cancel_scope.cancel()
        ann = await hand(grove, "ann")
        await ann.ok("undo")
        return {**facts, "undone": await ann.tree()}


async def in_a_file(target: Path) -> dict[str, Any]:
    """Keep the project with its store in a file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = project(folder)

        def keep() -> None:
            for database in ("grove.db", "state/state.db"):
                _dump(folder / database, target / f"{database}.sql")
            _copy(folder, target, "toolgrove.yaml", "audit.jsonl", "grove.db-archive.jsonl")
            _copy(folder, target, "state/audit.key", "state/grove.db.head")
            where = ("--config", str(folder / "toolgrove.yaml"))
            assert toolgrove(("backup", str(target / "backup.zip"), *where)) == 0

        return await _lived(config, keep)


async def in_a_database(target: Path) -> dict[str, Any]:
    """Keep the project with its store in a database."""
    server = Postgres()
    try:
        server.start()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            config = project(folder, server.address(SCHEMA))

            def keep() -> None:
                _pack(_plain_sql(server), target / "dump.sql")
                _copy(folder, target, "audit.jsonl", "grove.db-archive.jsonl")
                _copy(folder, target, "state/audit.key", "state/database.head")

            return await _lived(config, keep)
    finally:
        server.close()


def _dump(database: Path, target: Path) -> None:
    """All of a SQLite file as SQL, with the facts that stand in its head."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("BEGIN")
        kept = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _PRAGMAS}
        lines = [f"PRAGMA {name}={value};" for name, value in kept.items()]
        _pack("\n".join([*lines, *connection.iterdump()]) + "\n", target)


_PRAGMAS = ("auto_vacuum", "application_id", "user_version")


def _plain_sql(server: Postgres) -> str:
    """What pg_dump says, without what only psql understands, and without a word on this machine."""
    command = [
        str(program("initdb").resolve().parent / "pg_dump"),
        "-h",
        "127.0.0.1",
        "-p",
        str(server.port),
        "-U",
        OWNER,
    ]
    options = ["--schema", SCHEMA, "--inserts", "--no-owner", "--no-privileges", OWNER]
    said = subprocess.run([*command, *options], check=True, capture_output=True, text=True).stdout
    return "\n".join(line for line in said.splitlines() if line and not line.startswith(("\\", "--"))) + "\n"


def _copy(folder: Path, target: Path, *names: str) -> None:
    for name in names:
        if name.endswith(".jsonl"):
            _pack((folder / name).read_text(), target / name)
        else:
            shutil.copyfile(folder / name, target / name)


def _pack(text: str, target: Path) -> None:
    """Keep a long text as a gzip file of today and of every other day."""
    target.with_name(f"{target.name}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


async def make(target: Path) -> None:
    """Keep both, and the facts of both."""
    for folder in (target, target / "database"):
        (folder / "state").mkdir(parents=True)
    facts = {"file": await in_a_file(target), "database": await in_a_database(target / "database")}
    _pack(json.dumps(facts, indent=1, sort_keys=True) + "\n", target / "facts.json")


if __name__ == "__main__":
    anyio.run(make, Path(sys.argv[1]))
