"""The rows of a journal, read and replayed by code of our own.

It knows what the columns hold and nothing of how the product reads them. A row of the table ``journal`` tells what
every node that a call touched was **before** it; a row of ``node`` what a node is now; a row of ``entry``, where there
are several replicas, what the call made of the nodes. So the history is replayed twice: backwards from the nodes of now
to the empty tree, and forwards from the first entry that is left. Each step must fit: a node that an entry made is
there when its making is taken back, what is replaced is what was there, and every node's parent is in the tree at any
time.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg

from histories.history import Stored, Tree, Value

ROOT = "root"
UNCHANGED = 0
"""Stands for a payload that the entry left as it was."""
Image = tuple[str | None, str, str, str, tuple[str, ...], str | None]
"""Parent, place among its siblings, type, payload as JSON, tags, group."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What the tables hold."""

    nodes: Sequence[str]
    journal: Sequence[tuple[int, int, str]]
    """Number, the number that it rests on, and its body; in order."""
    entries: Sequence[tuple[int, str]] | None
    """Number and body; None where one process alone writes, and keeps none."""


def of_sqlite(path: Path) -> Rows:
    """The rows of a store in a file."""
    with closing(sqlite3.connect(path)) as connection:
        return Rows(
            nodes=[body for (body,) in connection.execute("SELECT body FROM node")],
            journal=connection.execute("SELECT revision, base, body FROM journal ORDER BY revision").fetchall(),
            entries=None,
        )


def of_postgres(address: str, schema: str) -> Rows:
    """The rows of a store in a database, all of one moment."""
    with psycopg.connect(address) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT set_config('search_path', %s, true)", [schema])
        return Rows(
            nodes=[str(body) for (body,) in connection.execute("SELECT body FROM node")],
            journal=[
                (int(number), int(base), str(body))
                for number, base, body in connection.execute(
                    "SELECT revision, base, body FROM journal ORDER BY revision"
                )
            ],
            entries=[
                (int(number), str(body))
                for number, body in connection.execute("SELECT revision, body FROM entry ORDER BY revision")
            ],
        )


@dataclass(frozen=True, kw_only=True)
class _Step:
    """One commit of an entry: the nodes before and after it."""

    number: int
    tool: str
    before: Mapping[str, Image | None]
    after: Mapping[str, Image | None]


def replayed(rows: Rows) -> Stored:
    """Both replays, and what they show."""
    problems: list[str] = []
    nodes = _nodes(rows.nodes)
    steps = _backwards(rows, nodes, problems)
    calls = _forwards(rows, steps, nodes, problems)
    born: Counter[str] = Counter()
    values: dict[str, list[tuple[Value, Value]]] = {}
    for step in steps:
        for node_id, image in step.after.items():
            payload = {} if image is None else json.loads(image[3])
            name = str(payload.get("name", node_id))
            if image is not None and step.before[node_id] is None and step.tool not in ("undo", "redo"):
                born[name] += 1
            if "replaced" in payload and image != step.before[node_id]:
                values.setdefault(f"register {name}", []).append((payload["value"], payload["replaced"]))
    return Stored(
        problems=problems,
        tree=_tree(nodes),
        changes=len(rows.journal),
        calls=calls,
        is_whole=len(calls) == len(rows.journal),
        born=born,
        values=values,
    )


def _nodes(bodies: Sequence[str]) -> dict[str, Image]:
    nodes: dict[str, Image] = {}
    for body in bodies:
        node_id, *fields = json.loads(body)
        nodes[node_id] = _image(fields, None)
    nodes.setdefault(ROOT, (None, "0", "Root", "{}", (), None))
    return nodes


def _image(fields: Sequence[Any], payload: str | None) -> Image:
    parent, place, kind, given, tags, group = fields
    text = (payload or "{}") if given == UNCHANGED else json.dumps(given, sort_keys=True)
    return parent, str(place), kind, text, tuple(sorted(tags)), group


def _backwards(rows: Rows, nodes: Mapping[str, Image], problems: list[str]) -> list[_Step]:
    """Every commit, oldest first; the nodes of now lose what was done, one after the other."""
    steps: list[_Step] = []
    now = dict(nodes)
    later: int | None = None
    for number, base, body in reversed(rows.journal):
        if later is not None and later != number:
            problems.append(f"entry {later} of the journal is missing, or stands beside {number}")
        later = base
        for _, tool, images, *_ in reversed(json.loads(body)[2]):
            before: dict[str, Image | None] = {}
            after: dict[str, Image | None] = {}
            for node_id, fields in images.items():
                there = after[node_id] = now.get(node_id)
                if fields is None:
                    before[node_id] = None
                    if there is None:
                        problems.append(f"entry {number} ({tool}) made {node_id}, which is not there after it")
                else:
                    if there is None and fields[3] == UNCHANGED:
                        problems.append(f"entry {number} ({tool}) left the payload of {node_id}, which is not there")
                    before[node_id] = _image(fields, None if there is None else there[3])
            steps.append(_Step(number=number, tool=tool, before=before, after=after))
            _put(now, before)
            problems += [f"before entry {number} ({tool}): {problem}" for problem in _torn(now, before)]
    if later not in (None, 0):
        problems.append(f"the journal begins behind entry {later}")
    elif any(node != ROOT for node in now):
        problems.append(f"before the first entry there are nodes that none made: {sorted(set(now) - {ROOT})[:5]}")
    return steps[::-1]


def _put(nodes: dict[str, Image], images: Mapping[str, Image | None]) -> None:
    for node_id, image in images.items():
        if image is None:
            nodes.pop(node_id, None)
        else:
            nodes[node_id] = image


def _torn(nodes: Mapping[str, Image], touched: Mapping[str, Image | None]) -> list[str]:
    """Nodes that hang on nothing, among those touched and those below what went."""
    gone = {node_id for node_id, image in touched.items() if image is None}
    among = nodes.items() if gone else [(node_id, nodes[node_id]) for node_id in touched if node_id in nodes]
    return [
        f"node {node_id} is below {image[0]}, which is not there"
        for node_id, image in among
        if image[0] is not None and image[0] not in nodes
    ]


def _forwards(rows: Rows, steps: Sequence[_Step], nodes: Mapping[str, Image], problems: list[str]) -> list[str]:
    """What the entries that are left make of the tree from which the first of them began; the calls that made them."""
    if rows.entries is None:
        return []
    first = rows.entries[0][0] if rows.entries else None
    now: dict[str, Image] = {ROOT: (None, "0", "Root", "{}", (), None)}
    of: dict[int, list[_Step]] = {}
    for step in steps:
        of.setdefault(step.number, []).append(step)
        if first is not None and step.number < first:
            _put(now, step.after)
    calls: list[str] = []
    for number, body in rows.entries:
        facts, made = json.loads(body)
        calls.append(str(facts[6][0]))
        touched: dict[str, Image | None] = {}
        for step in of.get(number, ()):
            touched = {**step.before, **touched}
        problems += [
            f"entry {number} rests on node {node_id} = {image}, and there was {now.get(node_id)}"
            for node_id, image in touched.items()
            if now.get(node_id) != image
        ]
        _put(now, {**dict.fromkeys(facts[2]), **{node_id: _image(fields, None) for node_id, *fields in made}})
    if rows.entries and rows.entries[-1][0] == rows.journal[-1][0] and now != dict(nodes):
        odd = sorted({node_id for node_id in {*now, *nodes} if now.get(node_id) != nodes.get(node_id)})
        problems.append(f"the entries lead to other nodes than those that are stored: {odd[:5]}")
    return calls


def _tree(nodes: Mapping[str, Image]) -> Tree | None:
    """The nodes as a tree; None where one has lost its parent."""
    below: dict[str, list[str]] = {}
    for node_id, image in nodes.items():
        if image[0] is not None:
            below.setdefault(image[0], []).append(node_id)
    if not set(below) <= set(nodes):
        return None
    return Tree(
        source="the journal's rows",
        nodes={node_id: (one[0], one[2], json.loads(one[3]), one[4]) for node_id, one in nodes.items()},
        order={
            parent: tuple(sorted(children, key=lambda child: Fraction(nodes[child][1])))
            for parent, children in below.items()
        },
    )
