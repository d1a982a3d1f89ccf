"""`audit verify --deep`: the journal leads to the stored tree, and every process serves that one; else it is named."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from grove_kit import Hand, ManualClock, hand
from store_kit import stored
from toolgrove import Grove
from toolgrove.store.audit import TreeProof
from toolgrove.store.journal import SqliteAuditLog
from toolgrove.store.journal.postgres.audit_log import PostgresAuditLog
from toolgrove.store.journal.postgres.tables import PostgresTables
from toolgrove.store.journal.tables.connection import Connection
from toolgrove.store.journal.tables.encoding import checksum, encode
from toolgrove.store.postgres import DatabaseAddress
from toolgrove.store.postgres.connecting import connect

pytestmark = pytest.mark.anyio
Place = Path | str
PAYLOADS: list[dict[str, Any]] = [
    {},
    {"name": "ä\u0000", "n": 1.5, "big": 10**19, "deep": [{"a": None}, True]},
    {"n": 1e300, "m": -0.0, "k": 1e16, "text": "\U0001f600"},
]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return tmp_path / "grove.db" if request.param == "sqlite" else str(request.getfixturevalue("database"))


def edited(place: Place, edit: Callable[[Connection], object]) -> None:
    """Change the tables by hand."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as connection, connection:
            edit(connection)
    else:
        with closing(connect(DatabaseAddress.of(place))) as connected, connected:
            edit(PostgresTables(connected))


async def replayed(place: Place) -> TreeProof:
    """What is found beside a store that nobody has open."""
    if isinstance(place, Path):
        return await SqliteAuditLog(place).replay()
    return await PostgresAuditLog(DatabaseAddress.of(place)).replay()


async def some_changes(ann: Hand, draw: random.Random, count: int) -> Counter[str]:
    """A drawn mix, and how many of each were taken; what is refused changes nothing."""
    nodes, took = ["root"], Counter[str]()
    for at in range(count):
        one, other = draw.choice(nodes), draw.choice(nodes)
        ways: list[tuple[str, dict[str, Any]]] = [
            *[("add_child", {"parentNodeId": one, "payloadType": "T", "payloadProps": draw.choice(PAYLOADS)})] * 4,
            ("update_payload", {"nodeId": one, "patch": {"v": at}}),
            ("move_node", {"nodeId": one, "newParentId": other}),
            ("remove_node", {"nodeId": one}),
            ("tag_node", {"nodeId": one, "tags": [f"t{at % 3}", "ü"]}),
            ("bookmark", {"nodeId": one, "label": f"l{at}"}),
            ("undo", {}),
            *[("redo", {})] * 3,
            (
                "apply_changes",
                {
                    "changes": [
                        {"op": "add", "parentId": one, "payloadType": "T", "payload": {"name": "b"}, "ref": "b"},
                        {"op": "tag", "at": {"ref": "b"}, "add": ["x"]},
                    ]
                },
            ),
            (
                "import_merge",
                {
                    "json": {"payloadType": "T", "payload": {"name": f"i{at}"}, "children": [{"payloadType": "T"}]},
                    "parentNodeId": one,
                    "strategy": "upsert",
                },
            ),
        ]
        tool, given = draw.choice(ways)
        took[tool] += "error" not in await ann(tool, **given)
        nodes = [*_below(json.loads(await ann.tree()))]
    return took


def _below(node: dict[str, Any]) -> Iterator[str]:
    yield node["nodeId"]
    for child in node.get("children", ()):
        yield from _below(child)


SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_store_of_drawn_changes_is_what_its_journal_says(place: Place, seed: int) -> None:
    draw = random.Random(seed)
    limits = {"limits": {"history": draw.choice([5, 1_000])}}
    for _ in range(2):
        async with Grove(stored(place, **limits), clock=ManualClock()) as grove:
            await some_changes(await hand(grove, "ann"), draw, 20)
            proof = await grove.verify(deep=True)
            assert proof.tree is not None
            assert (proof.tree.differs, proof.tree.is_proved, proof.tree.served) == ((), True, 1), proof.tree
    found = await replayed(place)
    assert (found.differs, found.is_proved, found.changes > 0) == ((), True, True)


async def test_all_kinds_of_changes_are_drawn(tmp_path: Path) -> None:
    async with Grove(stored(tmp_path / "grove.db"), clock=ManualClock()) as grove:
        took = await some_changes(await hand(grove, "ann"), random.Random(7), 150)
    assert {tool for tool, count in took.items() if count} == {*took}
    assert len(took) == 10


def _node(tables: Connection, draw: random.Random) -> tuple[str, list[Any]]:
    rows = tables.execute("SELECT body FROM node ORDER BY id").fetchall()
    fields = json.loads(draw.choice([body for (body,) in rows if not body.startswith('["root"')]))
    return fields[0], fields


def _write(tables: Connection, fields: list[Any]) -> None:
    body = encode(fields)
    tables.execute("UPDATE node SET body = ?, crc = ? WHERE id = ?", (body, checksum(body), fields[0]))


def change_node(tables: Connection, draw: random.Random) -> str:
    name, fields = _node(tables, draw)
    at, value = draw.choice([(2, "7/3"), (3, "Other"), (4, {"forged": True}), (5, ["forged"]), (6, "g99")])
    fields[at] = value
    _write(tables, fields)
    return name


def move_node(tables: Connection, draw: random.Random) -> str:
    name, fields = _node(tables, draw)
    ids = {one for (one,) in tables.execute("SELECT id FROM node").fetchall()} | {"root"}
    fields[1] = draw.choice(sorted(ids - {name, fields[1]}))
    _write(tables, fields)
    return name


def remove_node(tables: Connection, draw: random.Random) -> str:
    name, _ = _node(tables, draw)
    tables.execute("DELETE FROM node WHERE id = ?", (name,))
    return name


def add_node(tables: Connection, draw: random.Random) -> str:
    body = encode(["n9999", "root", 10**6, "T", {}, [], None])
    tables.execute("INSERT INTO node (id, body, crc) VALUES (?, ?, ?)", ("n9999", body, checksum(body)))
    return "n9999"


def spoil_node(tables: Connection, draw: random.Random) -> str:
    name, _ = _node(tables, draw)
    tables.execute("UPDATE node SET crc = crc + 1 WHERE id = ?", (name,))
    return name


def _change(tables: Connection, draw: random.Random) -> tuple[str, list[Any]]:
    rows = tables.execute("SELECT id, body FROM journal ORDER BY revision").fetchall()
    name, body = draw.choice([row for row in rows if any(commit[2] for commit in json.loads(row[1])[2])])
    return name, json.loads(body)


def drop_change(tables: Connection, draw: random.Random) -> str:
    name, _ = _change(tables, draw)
    tables.execute("DELETE FROM journal WHERE id = ?", (name,))
    return name


def change_change(tables: Connection, draw: random.Random) -> str:
    """What a node was before it, or whether it was there, or what it is after it."""
    name, past = _change(tables, draw)
    images = draw.choice([commit[2] for commit in past[2] if commit[2]])
    node = draw.choice(sorted(images))
    if draw.random() < 0.4:
        past[4][node] = (past[4][node] or 0) + 1
    elif images[node] is None:
        images[node] = ["root", 10**6, "T", {"forged": True}, [], None]
    elif draw.random() < 0.5:
        images[node] = None
    else:
        images[node][2] = "Forged"
    body = encode(past)
    tables.execute("UPDATE journal SET body = ?, crc = ? WHERE id = ?", (body, checksum(body), name))
    return name


def spoil_change(tables: Connection, draw: random.Random) -> str:
    name, _ = _change(tables, draw)
    tables.execute("UPDATE journal SET crc = crc + 1 WHERE id = ?", (name,))
    return name


DAMAGES = [change_node, move_node, remove_node, add_node, spoil_node, drop_change, change_change, spoil_change]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damage_of_the_stored_tree_or_its_journal_is_named(
    tmp_path: Path, seed: int, damage: Callable[[Connection, random.Random], str]
) -> None:
    place, draw = tmp_path / "grove.db", random.Random(seed)
    async with Grove(stored(place), clock=ManualClock()) as grove:
        ann = await hand(grove, "ann")
        for _ in range(3):
            await ann.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={})
        await some_changes(ann, draw, 12)
    await _is_named(place, damage, draw)


@pytest.mark.services
@pytest.mark.parametrize("seed", range(16))
async def test_a_damage_of_a_database_is_named(database: str, seed: int) -> None:
    draw = random.Random(seed)
    async with Grove(stored(database), clock=ManualClock()) as grove:
        ann = await hand(grove, "ann")
        for _ in range(3):
            await ann.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={})
        await some_changes(ann, draw, 6)
    await _is_named(database, [*DAMAGES, change_entry, drop_entry][seed % 10], draw)


def change_entry(tables: Connection, draw: random.Random) -> str:
    name, revision, body = draw.choice(
        [
            row
            for row in tables.execute("SELECT id, revision, entry.body FROM journal JOIN entry USING (revision)")
            if json.loads(row[2])[1]
        ]
    )
    entry = json.loads(body)
    draw.choice(entry[1])[3] = "Forged"
    body = encode(entry)
    tables.execute("UPDATE entry SET body = ?, crc = ? WHERE revision = ?", (body, checksum(body), revision))
    return str(name)


def drop_entry(tables: Connection, draw: random.Random) -> str:
    rows = tables.execute("SELECT id, revision FROM journal ORDER BY revision").fetchall()
    name, revision = draw.choice(rows[1:])
    tables.execute("DELETE FROM entry WHERE revision = ?", (revision,))
    return str(name)


async def _is_named(place: Place, damage: Callable[[Connection, random.Random], str], draw: random.Random) -> None:
    assert (await replayed(place)).differs == ()
    damaged: list[str] = []
    edited(place, lambda tables: damaged.append(damage(tables, draw)))
    found = (await replayed(place)).differs
    assert any(damaged[0] in (one.name, *one.problem.replace(",", "").split()) for one in found), (damaged, found)


async def test_a_process_whose_memory_is_not_what_is_stored_is_named(place: Place) -> None:
    async with Grove(stored(place), clock=ManualClock()) as grove:
        ann = await hand(grove, "ann")
        node = (await ann.ok("add_child", parentNodeId="root", payloadType="T", payloadProps={"v": 1}))["nodeId"]
        await ann.ok("tag_node", nodeId=node, tags=["one"])
        proof = await grove.verify(deep=True)
        assert proof.tree is not None
        assert (proof.whole is False, proof.tree.differs, proof.tree.is_proved) == (False, (), True), proof
        grove._workspace.tree.nodes[node].payload = {"v": 2}
        proof = await grove.verify(deep=True)
        assert proof.tree is not None
        assert (proof.whole, [one.what for one in proof.tree.differs]) == (False, ["replica"]), proof


@pytest.mark.services
async def test_every_replica_says_what_it_serves_while_changes_go_on(database: str, tmp_path: Path) -> None:
    async with (
        Grove(stored(database), clock=ManualClock()) as one,
        Grove(stored(database), clock=ManualClock()) as other,
    ):
        ann, bob = await hand(one, "ann"), await hand(other, "bob")

        async def write(hand: Hand) -> None:
            for _ in range(15):
                await hand("add_child", parentNodeId="root", payloadType="T", payloadProps={})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write, ann)
            tasks.start_soon(write, bob)
            for _ in range(5):
                found = await replayed(database)
                assert (found.differs, found.served, found.is_proved) == ((), 2, True), found
        *_, node = _below(json.loads(await bob.tree()))
        other._workspace.tree.nodes[node].payload = {"v": 2}
        differs = (await replayed(database)).differs
        assert [(one.what, "serves another tree" in one.problem) for one in differs] == [("replica", True)]


async def test_a_process_that_is_not_asked_leaves_the_tree_unproved(tmp_path: Path) -> None:
    place = tmp_path / "grove.db"
    async with Grove(stored(place), clock=ManualClock()) as grove:
        await (await hand(grove, "ann")).ok("add_child", parentNodeId="root", payloadType="T", payloadProps={})
        found = await replayed(place)
        assert (found.differs, found.is_proved, "did not say" in found.unchecked[0]) == ((), False, True)
    assert (await replayed(place)).is_proved is True
