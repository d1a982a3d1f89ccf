"""A store and a state as the last release wrote them go on as if nothing had been: all is there, and nothing leaves."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grove_kit import ManualClock, config, hand
from store_kit import EDITORS
from toolgrove import Config, Grove
from toolgrove.store.audit import AuditQuery, Place
from toolgrove.store.journal import read_workspace

pytestmark = pytest.mark.anyio
FORMATS = Path(__file__).with_name("formats")
FACTS: dict[str, Any] = json.loads((FORMATS / "facts_1.json").read_text())
DAY = 86_400


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store of format 1 and a state of format 2."""
    (tmp_path / "state").mkdir(mode=0o700)
    for name, text in (("grove.db", "store_1.sql"), ("state/state.db", "state_2.sql")):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            connection.executescript((FORMATS / text).read_text())
    return tmp_path


def project(folder: Path, **workspace: Any) -> Config:
    store = {"store": f"sqlite:{folder / 'grove.db'}", **workspace}
    return config(agents=EDITORS, workspace=store, state=str(folder / "state"))


async def test_its_tree_can_be_read_at_rest_and_it_stays_as_it_is(old: Path) -> None:
    path = old / "grove.db"
    bytes_before = path.read_bytes()
    saved = read_workspace(path)
    assert saved is not None
    assert path.read_bytes() == bytes_before
    async with Grove(project(old)) as grove:
        assert {node.id for node in grove.tree.nodes.values()} == {*saved.nodes, "root"}


async def test_everything_is_there_and_goes_on(old: Path) -> None:
    clock = ManualClock()
    clock.now += 120
    anchor = Place(FACTS["lastNumber"], FACTS["lastHash"])
    for _ in range(2):
        async with Grove(project(old), clock=clock) as grove:
            ann, bob = await hand(grove, "ann"), await hand(grove, "bob")
            assert await ann.tree() == FACTS["tree"]
            retry = {"parentNodeId": "root", "payloadType": "T", "payloadProps": {"a": 1, "name": "gr\u00fcn"}}
            assert await ann.ok("add_child", **retry, idempotencyKey="k-1") == FACTS["replay"]
            assert [one["label"] for one in (await bob.ok("list_bookmarks"))["items"]] == ["here"]
            assert [one["label"] for one in (await ann.ok("snapshot_list"))["items"]] == ["first"]
            assert "error" not in await ann("undo", dryRun=True)
            proof = await grove.audit_log.verify([anchor])
            assert (proof.breach, proof.first, proof.breaks) == (None, 1, ())
            assert set(grove.tokens.holders().values()) == {"ann"}
            assert [pin.pinned_by for pin in grove.pins.of("up").values()] == ["cli:someone"]


async def test_nothing_leaves_it_until_somebody_says_so(old: Path) -> None:
    clock = ManualClock()
    clock.now += 10_000 * DAY
    async with Grove(project(old), clock=clock) as grove:
        await (await hand(grove, "ann")).ok("get_node", nodeId="root")
        assert (await grove.audit_log.records(AuditQuery(limit=1))).records[0]["number"] == 1
    clock.now += 61
    async with Grove(project(old, auditDays=90), clock=clock) as grove:
        await (await hand(grove, "ann")).ok("get_node", nodeId="root")
        assert (await grove.audit_log.records(AuditQuery(limit=1))).records[0]["number"] > FACTS["lastNumber"]
        assert (await grove.audit_log.verify()).breach is None
    kept = (old / "grove.db-archive.jsonl").read_text().splitlines()
    numbers = [json.loads(line)["number"] for line in kept if not line.startswith('{"signedTo":')]
    assert numbers[: FACTS["lastNumber"]] == list(range(1, FACTS["lastNumber"] + 1))
