"""A workspace that was closed and opened again is the same workspace."""

from __future__ import annotations

import asyncio
import copy
import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import precondition, rule

from grove_kit import Hand, ManualClock, hand
from store_kit import grown_older, portrait, stored
from toolgrove import Grove
from toolgrove.store.audit import AuditQuery
from toolgrove.store.journal import SqliteJournal
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.postgres.connecting import connect
from toolgrove.tools.sample import DOCUMENT
from toolgrove.types import SystemClock
from workspace_machine import Workspace

ADD = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"a": 1}}


class Life:
    """A grove that is entered and left in one task, whichever tasks call it meanwhile."""

    def __init__(self, grove: Grove) -> None:
        self._grove = grove

    async def begin(self) -> None:
        self._ready, self._end = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._live())
        await self._ready.wait()

    async def _live(self) -> None:
        try:
            async with self._grove:
                self._ready.set()
                await self._end.wait()
        finally:
            self._ready.set()

    async def end(self) -> None:
        self._end.set()
        await self._task


class Reopened(Workspace):
    """The machine of all tools on a store, closed and opened at any moment; the model knows of none of that."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        super().__init__()
        self.begin()
        self.changed = 0

    def begin(self) -> None:
        self.life = Life(self.grove)
        self.runner.run(self.life.begin())

    def configured(self, config: dict[str, Any]) -> dict[str, Any]:
        config["workspace"]["store"] = f"sqlite:{self.folder}/grove.db"
        return config

    @precondition(lambda self: self.count > self.changed)
    @rule()
    def reopen(self) -> None:
        before = self.runner.run(portrait(self.grove))
        self.runner.run(self.life.end())
        # The calls of the portrait, and a minute in which every rate limit runs out in the model as well.
        self.clock.now += 61
        self.grove = self.opened()
        self.begin()
        assert self.runner.run(portrait(self.grove)) == before
        self.changed = self.count

    def teardown(self) -> None:
        try:
            assert self.runner.run(self.grove.audit_log.verify()).breach is None
            self.runner.run(self.life.end())
        finally:
            self.runner.close()
            shutil.rmtree(self.folder)


Reopened.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestReopened = pytest.mark.long(Reopened.TestCase)


class ReopenedBesideLongCalls(Reopened):
    """The same with all that could be long in a thread, and versions that only what a call rests on makes stale."""

    concurrency = "node"
    long_after = 0


ReopenedBesideLongCalls.TestCase.settings = settings(
    max_examples=8, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestReopenedBesideLongCalls = pytest.mark.long(ReopenedBesideLongCalls.TestCase)


async def furnish(editor: Hand) -> None:
    """Leave a trace of everything that a store keeps."""
    await editor.ok("import_merge", json=copy.deepcopy(DOCUMENT), strategy="upsert", matchBy="nodeId")
    await editor.ok("snapshot_create", label="start")
    await editor.ok("copy_subtree", sourceId="shed", targetParentId="root", mode="reference")
    await editor.ok("move_before", nodeId="bath", siblingId="living")
    await editor.ok("tag_node", nodeId="kitchen", tags=["red"])
    await editor.ok("bookmark", nodeId="kitchen", label="here")
    await editor.ok("expand_node", nodeId="root")
    await editor.ok("set_filters", scope="view", included=["name"])
    shown = (await editor.ok("export_view", rootNodeId="property"))["viewJson"]
    await editor.ok("expand_all", rootNodeId="root")
    await editor.ok("import_view", viewJson=shown, payloadTypes=["Property", "House", "Room", "Shed"])
    await editor.ok("update_nodes", filter="@type = Room", patch={"x": 1})
    await editor.ok("remove_node", nodeId="house")
    await editor.ok("undo")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a store is: a file, or the address of a database."""
    return tmp_path / "grove.db" if request.param == "sqlite" else str(request.getfixturevalue("database"))


def rows(place: Path | str) -> int:
    """How many entries the journal holds."""
    query = "SELECT count(*) FROM journal"
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as connection:
            return int(connection.execute(query).fetchone()[0])
    with closing(connect(DatabaseAddress.of(place))) as database:
        (count,) = database.execute(query.encode()).fetchone() or (0,)
        return int(count)


@pytest.mark.anyio
async def test_everything_is_there_again_and_goes_on(place: Path | str) -> None:
    settings = stored(place)
    async with Grove(settings, clock=ManualClock()) as grove:
        await furnish(await hand(grove, "ann"))
        before = await portrait(grove)
    async with Grove(settings, clock=ManualClock()) as grove:
        assert await portrait(grove) == before
        ann = await hand(grove, "ann")
        await ann.ok("redo")
        assert (await ann.refused("get_node", nodeId="house"))["code"] == "not_found"
        await ann.ok("snapshot_restore", snapshotId="s1")
        await ann.ok("undo")
        await ann.ok("update_payload_property", nodeId="shed", propertyName="y", newValue=2)
        twins = (await ann.ok("select_nodes", queryDsl="y = 2"))["items"]
        assert len(twins) == 2


@pytest.mark.anyio
async def test_a_node_that_was_removed_stays_removed(place: Path | str) -> None:
    settings = stored(place)
    async with Grove(settings) as grove:
        ann = await hand(grove, "ann")
        await ann.ok("import_merge", json=copy.deepcopy(DOCUMENT), strategy="upsert", matchBy="nodeId")
        await ann.ok("remove_node", nodeId="house")
        before = await ann.tree()
    async with Grove(settings) as grove:
        ann = await hand(grove, "ann")
        assert (await ann.refused("get_node", nodeId="kitchen"))["code"] == "not_found"
        assert await ann.tree() == before


@pytest.mark.anyio
async def test_a_version_from_before_is_judged_as_if_nothing_had_happened(place: Path | str, tmp_path: Path) -> None:
    settings = stored(place)
    async with Grove(settings) as grove:
        ann, bob = await hand(grove, "ann"), await hand(grove, "bob")
        stale = await ann.version()
        current = (await ann.ok("add_child", **ADD))["version"]
        own = (await bob.ok("expand_node", nodeId="root"))["version"]
    async with Grove(settings) as grove:
        ann, bob = await hand(grove, "ann"), await hand(grove, "bob")
        assert (await ann.refused("add_child", **ADD, versionToken=stale))["changedNodeIds"] == ["n1"]
        assert (await bob.refused("add_child", **ADD, versionToken=current))["code"] == "conflict"
        assert (await bob.ok("collapse_node", nodeId="root", versionToken=own))["version"] != own
        assert (await ann.ok("add_child", **ADD, versionToken=current))["nodeId"] == "n2"
    async with Grove(stored(tmp_path / "other.db")) as grove:
        ann = await hand(grove, "ann")
        assert (await ann.refused("add_child", **ADD, versionToken=stale))["code"] == "conflict"


@pytest.mark.anyio
async def test_an_id_is_never_given_twice_and_a_page_token_leads_on(place: Path | str) -> None:
    settings = stored(place)
    async with Grove(settings) as grove:
        ann = await hand(grove, "ann")
        for _ in range(3):
            await ann.ok("add_child", **ADD)
        page = await ann.ok("list_children", nodeId="root", limit=1)
        await ann.ok("remove_node", nodeId="n3")
        await ann.ok("snapshot_create", label="x")
        await ann.ok("snapshot_delete", snapshotId="s1")
    async with Grove(settings) as grove:
        ann = await hand(grove, "ann")
        assert (await ann.ok("add_child", **ADD))["nodeId"] == "n4"
        assert (await ann.ok("snapshot_create", label="y"))["snapshotId"] == "s2"
        rest = await ann.ok("list_children", nodeId="root", limit=5, pageToken=page["nextPageToken"])
        assert [one["nodeId"] for one in rest["items"]] == ["n2", "n4"]


@pytest.mark.anyio
async def test_a_repeated_request_is_answered_from_before_the_restart(place: Path | str) -> None:
    clock, settings = ManualClock(), stored(place)
    async with Grove(settings, clock=clock) as grove:
        first = await (await hand(grove, "ann")).ok("add_child", **ADD, idempotencyKey="k")
    async with Grove(settings, clock=clock) as grove:
        ann = await hand(grove, "ann")
        assert await ann.ok("add_child", **ADD, idempotencyKey="k") == first
        changed = {**ADD, "payloadType": "U"}
        assert (await ann.refused("add_child", **changed, idempotencyKey="k"))["reason"] == "idempotency_key_reused"
    clock.now += 86_401
    if isinstance(place, str):
        grown_older(place, 86_401)
    async with Grove(settings, clock=clock) as grove:
        assert await (await hand(grove, "ann")).ok("add_child", **ADD, idempotencyKey="k") != first


@pytest.mark.anyio
async def test_history_is_bounded_in_the_store_as_well(place: Path | str) -> None:
    settings = stored(place, limits={"history": 10})
    async with Grove(settings, clock=ManualClock()) as grove:
        ann = await hand(grove, "ann")
        start = await ann.version()
        for at in range(50):
            await ann.ok("update_payload_property", nodeId="root", propertyName="at", newValue=at)
        before = await portrait(grove)
    assert rows(place) <= 13
    async with Grove(settings, clock=ManualClock()) as grove:
        assert await portrait(grove) == before
        ann = await hand(grove, "ann")
        assert (await ann.refused("changes_since", version=start))["reason"] == "history_trimmed"
        undone = 0
        while "error" not in await ann("undo"):
            undone += 1
        assert undone >= 5  # taking back is a change of its own, and pushes the oldest out
        await ann.ok("snapshot_create", label="x")
        for at in range(30):
            await ann.ok("update_payload_property", nodeId="root", propertyName="at", newValue=f"later {at}")
    async with Grove(settings, clock=ManualClock()) as grove:
        ann = await hand(grove, "ann")
        await ann.ok("snapshot_restore", snapshotId="s1")
        assert (await ann.ok("get_node", nodeId="root"))["payload"] == {"at": 49 - undone}


@pytest.mark.anyio
async def test_the_audit_chain_goes_on_and_shows_what_was_altered_or_cut(tmp_path: Path) -> None:
    path = tmp_path / "grove.db"
    for _ in range(2):
        async with Grove(stored(path)) as grove:
            ann = await hand(grove, "ann")
            await ann.ok("add_child", **ADD)
            await ann.refused("get_node", nodeId="line\nbreak INFO approved")
    for statement, problem in (
        ("UPDATE audit SET line = replace(line, 'ann', 'bob') WHERE number = 2", "altered"),
        ("DELETE FROM audit WHERE number = 3", "missing or out of order"),
        ("DELETE FROM audit WHERE number > 4", "after it are missing"),
    ):
        forged = tmp_path / "forged.db"
        shutil.copy(path, forged)
        shutil.copy(tmp_path / "grove.db-key", tmp_path / "forged.db-key")
        async with Grove(stored(forged)) as grove:
            assert (await grove.audit_log.verify()).breach is None
            assert [one["number"] for one in (await grove.audit_log.records(AuditQuery())).records] == [
                1,
                2,
                3,
                4,
                5,
                6,
            ]
        with closing(sqlite3.connect(forged, isolation_level=None)) as connection:
            connection.execute(statement)
        async with Grove(stored(forged)) as grove:
            breach = (await grove.audit_log.verify()).breach
            assert breach is not None
            assert problem in breach.problem
        forged.unlink()


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["\ufffe", "\0x", "näme", "'quoted'", "x" * 255])
async def test_ids_labels_and_values_of_any_text_come_back(place: Path | str, text: str) -> None:
    settings = stored(place)
    document = json.dumps({"nodeId": text, "payloadType": "T", "payload": {text: [text, 10**30, 1e-300, -0.0]}})
    async with Grove(settings) as grove:
        ann = await hand(grove, "ann", session=text)
        await ann.ok("import_merge", json=document, strategy="upsert")
        await ann.ok("bookmark", nodeId=text, label=text[:200])
        await ann.ok("expand_node", nodeId=text)
        before = [await ann.tree(), await ann.ok("list_bookmarks"), await ann.ok("get_view", rootNodeId="root")]
    async with Grove(settings) as grove:
        ann = await hand(grove, "ann", session=text)
        after = [await ann.tree(), await ann.ok("list_bookmarks"), await ann.ok("get_view", rootNodeId="root")]
        assert json.dumps(after) == json.dumps(before)
        await ann.ok("remove_node", nodeId=text)
    async with Grove(settings) as grove:
        assert (await (await hand(grove, "ann")).ok("list_children", nodeId="root"))["items"] == []


@pytest.mark.anyio
async def test_a_read_never_tells_of_a_write_that_is_not_durable_yet(tmp_path: Path) -> None:
    path = tmp_path / "grove.db"
    async with Grove(stored(path, concurrency="node")) as grove:
        ann, bob = await hand(grove, "ann"), await hand(grove, "bob")
        for _ in range(30):
            await ann.ok("add_child", **ADD)
        version = await ann.version()
        durable: list[tuple[int, int]] = []

        async def write(at: int) -> None:
            form = {"nodeId": f"n{at + 1}", "propertyName": "done", "newValue": True}
            await ann.ok("update_payload_property", **form, versionToken=version)

        async def read() -> None:
            seen = len((await bob.ok("select_nodes", queryDsl="done = true"))["items"])
            with closing(sqlite3.connect(path)) as connection:
                there = connection.execute("SELECT count(*) FROM node WHERE body LIKE '%done%'").fetchone()[0]
            durable.append((seen, there))

        async with anyio.create_task_group() as group:
            for at in range(30):
                group.start_soon(write, at)
                group.start_soon(read)
        assert max(seen for seen, _ in durable) == 30
        assert all(there >= seen for seen, there in durable)


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["scope", "task"])
async def test_a_call_cancelled_while_it_is_written_is_done_once_and_recorded_once(tmp_path: Path, way: str) -> None:
    async with Grove(stored(tmp_path / "grove.db")) as grove:
        ann = await hand(grove, "ann")
        form = {**ADD, "versionToken": await ann.version(), "idempotencyKey": "k"}
        if way == "scope":
            with anyio.CancelScope() as scope:
                asyncio.get_running_loop().call_soon(scope.cancel)
                await ann.agent.call("add_child", form)
                await anyio.lowlevel.checkpoint()
                raise AssertionError("the cancellation was lost")
        else:
            task = asyncio.create_task(ann.agent.call("add_child", form))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        assert (await ann.ok("get_node", nodeId="root"))["childrenCount"] == 1
        assert (await ann.ok("add_child", **form))["nodeId"] == "n1"
        records = (await grove.audit_log.records(AuditQuery(tool="add_child"))).records
        assert [one["outcome"] for one in records] == ["success", "replayed"]
        await ann.ok("undo")


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["scope", "task"])
async def test_an_agent_that_does_nothing_but_write_can_be_cancelled(tmp_path: Path, way: str) -> None:
    async with Grove(stored(tmp_path / "grove.db")) as grove:
        ann = await hand(grove, "ann")
        under_way = asyncio.Event()

        async def write_forever() -> None:
            version = await ann.version()
            while True:
                version = (await ann.ok("add_child", **ADD, versionToken=version))["version"]
                under_way.set()

        if way == "scope":
            async with anyio.create_task_group() as group:
                group.start_soon(write_forever)
                await under_way.wait()
                group.cancel_scope.cancel()
        else:
            task = asyncio.create_task(write_forever())
            await under_way.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()


def test_a_grove_with_a_store_must_be_entered(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "grove.db", SystemClock())
    with pytest.raises(OSError, match="not open"):
        asyncio.run(journal.recall("ann", "k"))
    assert list(tmp_path.iterdir()) == []
