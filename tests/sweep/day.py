"""A day of work, step by step, and what agents and people can see after each: that is what must be there afterwards.

A step changes one thing that can be seen. If it was acknowledged, what is seen now holds from then on; if it was
refused, what was seen before still does. Nothing here knows how anything is stored.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from apcore import Registry
from pydantic import BaseModel

from grove_kit import ManualClock
from toolgrove import Config, Grove
from toolgrove.errors import GroveError
from toolgrove.store.state import OPERATOR, hashed
from toolgrove.tools import DECLARATIONS

DAY = 86_400.0
MUCH = 700_000
FORMATS = Path(__file__).parents[1] / "store" / "formats"
AGENTS: dict[str, dict[str, Any]] = {
    "ann": {"role": "editor", "tools": ["*"]},
    "bob": {"role": "editor", "tools": ["*"]},
    "carl": {"role": "editor", "tools": ["*"], "approve": ["add_child"]},
}
HOUSE = {
    "nodeId": "house",
    "payloadType": "House",
    "payload": {"name": "House"},
    "children": [
        {"nodeId": name, "payloadType": "Room", "payload": {"name": name, "size": size}}
        for name, size in (("kitchen", 150), ("bath", 60), ("attic", 90))
    ],
}
Portrait = dict[str, Any]


class Refused(Exception):
    """A step was not acknowledged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A change of the tree that was acknowledged: what the audit log must say of it, once."""

    tool: str
    version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Keyed:
    """A call with an idempotency key, and its answer if it was acknowledged."""

    agent: str
    tool: str
    arguments: Mapping[str, Any]
    answer: Any = None


@dataclass(kw_only=True, slots=True)
class Book:
    """What was acknowledged so far."""

    portrait: Portrait = field(default_factory=dict)
    version: str = ""
    now: float = 1_000.0
    changes: list[Change] = field(default_factory=list)
    keyed: list[Keyed] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """As one line."""
        return json.dumps(asdict(self))

    def lived_again(self, before: Book) -> Book:
        """What is seen after the same step in another life, in which nothing after `before` was told."""
        return replace(before, portrait=self.portrait, version="", now=self.now)

    @classmethod
    def of(cls, text: str) -> Book:
        """As it was written down."""
        form = json.loads(text)
        changes, keyed = ([Change(**one) for one in form["changes"]], [Keyed(**one) for one in form["keyed"]])
        return cls(**{**form, "changes": changes, "keyed": keyed})


class World:
    """A project that is open, and the book of what it acknowledged."""

    def __init__(self, grove: Grove, clock: ManualClock, book: Book) -> None:
        self.grove, self.clock, self.book = grove, clock, book

    async def call(self, who: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """A call that has to be acknowledged."""
        if DECLARATIONS[tool].mutates:
            arguments.setdefault("versionToken", self.book.version)
        answer = await (await self.grove.agent(who)).call(tool, arguments)
        if "error" in answer:
            raise Refused(json.dumps(answer["error"]))
        if DECLARATIONS[tool].mutates:
            self.book.changes.append(Change(tool=tool, version=answer["version"]))
        if "idempotencyKey" in arguments:
            self.book.keyed.append(Keyed(agent=who, tool=tool, arguments=arguments, answer=answer))
        return answer


async def look(grove: Grove) -> tuple[Portrait, str]:
    """What agents and people can see, and the version of the tree; without what is drawn at random."""
    ann, bob = await grove.agent("ann"), await grove.agent("bob")
    exported = await ann.call("export_subtree", {"nodeId": "root"})
    version = str(exported["version"])
    seen: Portrait = {"tree": exported["json"], "version": version}
    for agent in (ann, bob):
        seen[f"{agent.name} bookmarks"] = (await agent.call("list_bookmarks"))["items"]
        undo = await agent.call("undo", {"dryRun": True, "versionToken": version})
        seen[f"{agent.name} undo"] = undo.get("changes", undo.get("error", {}).get("message"))
    seen["view"] = await bob.call("get_view", {"rootNodeId": "root", "depthLimit": 9})
    seen["snapshots"] = (await ann.call("snapshot_list"))["items"]
    seen["approvals"] = sorted(one.state for one in await grove.approvals.list())
    seen["tokens"] = sorted(grove.tokens.holders().values())
    seen["pins"] = [[pin.own_name, pin.state, pin.hash, pin.pinned_by] for pin in grove.pins.list()]
    seen = json.loads(json.dumps(seen).replace(version.partition("-")[0], "ID"))
    return seen, version


class _Nothing(BaseModel):
    """Neither taken nor given."""


class Order:
    """A module that changes something outside."""

    description = "Orders something."
    input_schema = output_schema = _Nothing

    async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        return {}


def opened(folder: Path, clock: ManualClock, **workspace: Any) -> Grove:
    """The project in a folder."""
    registry = Registry()
    registry.register("order", Order())
    kept = {
        "store": f"sqlite:{folder}/grove.db",
        "auditLog": str(folder / "audit.jsonl"),
        "auditDays": 1,
        "allowUnknownTypes": True,
    }
    form = {"agents": AGENTS, "workspace": kept | workspace, "state": str(folder / "state"), "recordBodyBytes": 2**20}
    return Grove(Config.model_validate(form), clock=clock, extensions=registry)


Step = Callable[[World], Awaitable[Any]]


def _call(who: str, tool: str, **arguments: Any) -> Step:
    return lambda world: world.call(who, tool, **arguments)


def _add(parent: str = "root", who: str = "ann", **more: Any) -> Step:
    return _call(who, "add_child", parentNodeId=parent, payloadType="T", **more)


async def _import(world: World) -> None:
    await world.call("ann", "import_merge", json=HOUSE, strategy="upsert")


async def _outside(world: World) -> None:
    answer = await (await world.grove.agent("bob")).call("order", {})
    if "error" in answer:
        raise Refused(json.dumps(answer["error"]))


async def _token(world: World) -> None:
    world.book.names["token"] = hashed(world.grove.tokens.issue("ann", by="grace"))


async def _other_token(world: World) -> None:
    world.grove.tokens.issue(OPERATOR, by="grace")


async def _revoked(world: World) -> None:
    if "token" not in world.book.names:
        raise Refused("nobody has one")
    world.grove.tokens.revoke(world.book.names["token"], by="grace")


async def _pinned(world: World) -> None:
    world.grove.pins.pin("up", "search", "a" * 64, {"name": "search"})


async def _saw(world: World) -> None:
    world.grove.pins.saw("up", "search", "b" * 64, {"name": "search", "description": "more"})


async def _accepted(world: World) -> None:
    try:
        world.grove.pins.accept("up", "search", "b" * 64, by="grace")
    except GroveError as error:
        raise Refused(error.message) from None


async def _asked(world: World) -> None:
    try:
        await world.call("carl", "add_child", parentNodeId="root", payloadType="Asked")
    except Refused as refused:
        error = json.loads(str(refused))
        if "approvalId" not in error:
            raise
        world.book.names["approval"] = error["approvalId"]


async def _decided(world: World) -> None:
    if "approval" not in world.book.names:
        raise Refused("nobody asked")
    await world.grove.approvals.decide(world.book.names["approval"], approve=True, by="grace")


async def _used(world: World) -> None:
    if "approval" not in world.book.names:
        raise Refused("nobody asked")
    await world.call("carl", "add_child", parentNodeId="root", payloadType="Asked")


def _later(tag: str) -> Step:
    """Two days pass, and then somebody writes."""

    async def wait(world: World) -> None:
        world.clock.now += 2 * DAY
        world.book.keyed.clear()  # keys are kept for a day
        await world.call("ann", "tag_node", nodeId="root", tags=[tag])

    return wait


async def _moved_away(world: World) -> None:
    """Somebody moves the logs away, as log rotation does."""
    folder = world.grove.config.workspace.store_path
    assert folder is not None
    for name in ("audit.jsonl", "grove.db-archive.jsonl"):
        path = folder.with_name(name)
        if path.exists():
            path.rename(path.with_name(f"old-{name}"))
    await world.call("ann", "tag_node", nodeId="root", tags=["moved"])


def _much() -> dict[str, Step]:
    """Calls whose records fill much room, and at last a small tree."""
    steps = {
        f"much {at}": _call("ann", "update_payload", nodeId="root", patch={"much": f"{at}" * MUCH}) for at in range(7)
    }
    return {**steps, "small": _call("ann", "update_payload", nodeId="root", remove=["much"])}


def _older(folder: Path) -> None:
    """A project as the first version left it."""
    (folder / "state").mkdir(mode=0o700, parents=True)
    for name, text in (("grove.db", "store_1.sql"), ("state/state.db", "state_2.sql")):
        with closing(sqlite3.connect(folder / name)) as connection:
            connection.executescript((FORMATS / text).read_text())


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A part of the day: what is done between opening the project and closing it.

    `before` happens on a disk that is well. `silent` steps change nothing that can be seen. With a `start` it is a
    project of its own, else it goes on with the one of the part before.
    """

    name: str
    steps: Mapping[str, Step]
    before: Mapping[str, Step] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    start: Callable[[Path], None] | None = None


BATCH: list[dict[str, Any]] = [
    {"op": "add", "parentId": "house", "payloadType": "Room", "payload": {"name": "Hall"}},
    {"op": "set", "at": "attic", "path": "name", "value": "Loft"},
    {"op": "remove", "at": "bath"},
]
PARTS = (
    Part(
        name="a new project",
        steps={
            "import": _import,
            "add with a key": _add("house", payloadProps={"n": 1}, idempotencyKey="k-1"),
            "update": _call("bob", "update_payload", nodeId="kitchen", patch={"size": 151}),
            "move": _call("ann", "move_node", nodeId="bath", newParentId="attic"),
            "tag": _call("bob", "tag_node", nodeId="bath", tags=["red"]),
            "snapshot": _call("ann", "snapshot_create", label="first"),
            "last": _add(),
        },
    ),
    Part(
        name="a batch, views and undo",
        steps={
            "bookmark": _call("ann", "bookmark", nodeId="bath", label="wet"),
            "expand": _call("bob", "expand_node", nodeId="house"),
            "filters": _call("bob", "set_filters", scope="view", included=["name"], excluded=[]),
            "batch": _call("bob", "apply_changes", changes=BATCH),
            "undo": _call("bob", "undo"),
            "redo": _call("bob", "redo"),
            "copy": _call("ann", "copy_subtree", sourceId="house", targetParentId="root", mode="reference"),
            "restore": _call("ann", "snapshot_restore", snapshotId="s1"),
            "forget": _call("ann", "snapshot_delete", snapshotId="s1"),
            "remove": _call("bob", "remove_node", nodeId="kitchen"),
            "last": _add(),
        },
    ),
    Part(
        name="people",
        steps={
            "token": _token,
            "operator's token": _other_token,
            "revoke": _revoked,
            "pin": _pinned,
            "seen": _saw,
            "accepted": _accepted,
            "ask": _asked,
            "decide": _decided,
            "use": _used,
            "outside": _outside,
            "last": _add(),
        },
        silent=frozenset(["outside"]),
    ),
    Part(
        name="old records leave",
        steps={
            "the next day": _later("next"),
            "logs are moved away": _moved_away,
            "a day later": _later("later"),
            "last": _add(idempotencyKey="k-2"),
        },
    ),
    Part(
        name="room is given back",
        before=_much(),
        steps={"the next day": _later("much"), "a minute later": _later("more"), "last": _add()},
    ),
    Part(name="an older format", start=_older, steps={"last": _add()}),
)
