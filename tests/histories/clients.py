"""Clients that draw what they do: a mix of changes and reads, with keys, repeats and versions.

Each is an agent of its own with a generator of its own, so a seed gives the same draws again; what the answers are
depends on the moment. A client changes its own nodes, tags and bookmarks one call after the other and knows what they
must be; after a change whose end is unknown it leaves those subjects alone. The registers are everybody's: a client
reads one, and sets it with the version token of that very read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import anyio

from histories.history import FIRST, Call, History, Operation, Read, Value
from histories.lines import Answer, Lines, Served

REGISTERS = ("r0", "r1", "r2", "r3")
COMMONS = "commons"
"""A node below which all clients add."""
TOOLS = (
    *("get_node", "add_child", "update_payload", "move_node", "remove_node", "apply_changes", "import_merge"),
    *("undo", "bookmark", "tag_node", "list_bookmarks", "export_subtree"),
    *("snapshot_create", "snapshot_delete", "snapshot_list"),
)
_NOT_UNDONE = ("bookmark", "snapshot_create", "snapshot_delete")
_TRIES = 8
_PAUSE = 0.5
"""Seconds between tries, at most."""


def beds(client: str) -> tuple[str, str]:
    """The two nodes below which a client has its own."""
    return f"{client}-left", f"{client}-right"


def planted(clients: Sequence[str]) -> dict[str, Any]:
    """The document that every run begins with."""
    registers = [_note(name, value=FIRST, replaced=None) for name in REGISTERS]
    own = [_note(bed) for client in clients for bed in beds(client)]
    return {**_note("ground"), "children": [_note(COMMONS), *registers, *own]}


def _note(name: str, **payload: Any) -> dict[str, Any]:
    return {"nodeId": name, "payloadType": "Note", "payload": {"name": name, **payload}}


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a client wants changed, before it is called."""

    tool: str
    arguments: Mapping[str, Any]
    sets: Mapping[str, Value]
    replaced: Value = None
    token: str | None = None
    """The version that it must rest on; without one, the client's latest, and a newer one if that is stale."""
    is_undo: bool = False


class Client:
    """One of them; `work` until it is told to stop."""

    def __init__(
        self,
        name: str,
        era: str,
        token: str,
        history: History,
        numbers: itertools.count[int],
        replicas: Sequence[Served],
        *,
        home: Served | None,
        pause: float,
        version: str,
    ) -> None:
        """It stays at its home; without one it goes where it likes."""
        self.name = name
        self._draw = Random(f"{history.seed}/{name}")
        self._history, self._numbers = history, numbers
        self._replicas, self._home, self._pause = replicas, home, pause
        self._lines = Lines(name, era, token)
        self._version = version
        self._own: dict[str, Value] = {}
        """The subjects that only this client changes and whose values it is sure of."""
        self._ids: dict[str, str] = {}
        """Of its own nodes, by name."""
        self._undoable: list[tuple[Operation, Mapping[str, Value]]] = []
        """The changes that undos would take back, the last one first to go, and what its subjects were before each."""
        self._serial = itertools.count(1)
        self._stopped = False

    def stop(self) -> None:
        """Let it end what it is at."""
        self._stopped = True

    async def work(self) -> None:
        try:
            while not self._stopped:
                await anyio.sleep(self._draw.uniform(0, 2 * self._pause))
                await self._do(self._draw.random())
        finally:
            with anyio.CancelScope(shield=True):
                await self._lines.close()

    async def _do(self, chance: float) -> None:
        if chance < 0.34:
            await self._set_register()
        elif chance < 0.46:
            await self._read(self._draw.choice(REGISTERS), "register {}")
        elif chance < 0.54:
            await self._read_own()
        else:
            wish = self._wish()
            if wish is not None:
                done = await self._change(wish)
                if wish.is_undo and done.fate == "took" and self._home is None:
                    await self._undo_elsewhere(done)

    # What it wishes for

    def _wish(self) -> Wish | None:
        wishes: Sequence[tuple[int, Callable[[], Wish | None]]] = (
            (20, self._add),
            (5, self._move),
            (4, self._remove),
            (5, self._batch),
            (3, self._import),
            (4, self._undo),
            (3, self._bookmark),
            (5, self._tag),
            (3, self._snapshot),
        )
        (wish,) = self._draw.choices([wish for _, wish in wishes], [weight for weight, _ in wishes])
        return wish()

    def _new(self) -> str:
        return f"{self.name}-{next(self._serial)}"

    def _bed(self) -> str:
        return self._draw.choice(beds(self.name))

    def _leaf(self) -> str | None:
        """One of its nodes; none has anything below it."""
        names = [subject[5:] for subject, value in self._own.items() if subject.startswith("node ") and value]
        return self._draw.choice(names) if names else None

    def _add(self) -> Wish:
        name = self._new()
        parent = self._bed() if self._draw.random() < 0.7 else COMMONS
        arguments = {"parentNodeId": parent, "payloadType": "Note", "payloadProps": {"name": name}}
        return Wish(tool="add_child", arguments=arguments, sets={f"node {name}": parent})

    def _move(self) -> Wish | None:
        name = self._leaf()
        if name is None:
            return None
        parent = next(bed for bed in beds(self.name) if bed != self._own[f"node {name}"])
        arguments = {"nodeId": self._ids[name], "newParentId": parent}
        return Wish(tool="move_node", arguments=arguments, sets={f"node {name}": parent})

    def _remove(self) -> Wish | None:
        name = self._leaf()
        if name is None:
            return None
        tags = {subject: None for subject, value in self._own.items() if value and subject.startswith(f"tag {name} ")}
        sets = {f"node {name}": None, **tags}
        return Wish(tool="remove_node", arguments={"nodeId": self._ids[name]}, sets=sets)

    def _tag(self) -> Wish | None:
        name = self._leaf()
        if name is None:
            return None
        tag = f"t{next(self._serial)}"
        arguments = {"nodeId": self._ids[name], "tags": [tag]}
        return Wish(tool="tag_node", arguments=arguments, sets={f"tag {name} {tag}": True})

    def _bookmark(self) -> Wish:
        """A new label, or one that leads elsewhere from now on."""
        known = {subject: node for subject, node in self._own.items() if subject.startswith("bookmark ")}
        subject = f"bookmark {self.name} l{next(self._serial)}"
        if known and self._draw.random() < 0.5:
            subject = self._draw.choice([*known])
        node = self._draw.choice([node for node in (COMMONS, *REGISTERS) if node != known.get(subject)])
        arguments = {"nodeId": node, "label": subject.rpartition(" ")[2]}
        return Wish(tool="bookmark", arguments=arguments, sets={subject: node})

    def _snapshot(self) -> Wish:
        """A new one, or the end of the one that it has."""
        held = [subject for subject, value in self._own.items() if value and subject.startswith("snapshot ")]
        if held:
            arguments = {"snapshotId": self._ids[held[0]]}
            return Wish(tool="snapshot_delete", arguments=arguments, sets={held[0]: None})
        label = self._new()
        return Wish(tool="snapshot_create", arguments={"label": label}, sets={f"snapshot {label}": True})

    def _batch(self) -> Wish:
        one, two, bed = self._new(), self._new(), self._bed()
        changes = [
            {"op": "add", "parentId": bed, "payloadType": "Note", "payload": {"name": one}, "ref": one},
            {"op": "add", "parentId": COMMONS, "payloadType": "Note", "payload": {"name": two}, "ref": two},
            {"op": "tag", "at": {"ref": one}, "add": ["batch"]},
        ]
        sets: dict[str, Value] = {f"node {one}": bed, f"node {two}": COMMONS, f"tag {one} batch": True}
        return Wish(tool="apply_changes", arguments={"changes": changes}, sets=sets)

    def _import(self) -> Wish:
        one, two, bed = self._new(), self._new(), self._bed()
        document = {**_note(bed), "children": [_note(one), _note(two)]}
        arguments = {"json": document, "strategy": "upsert", "matchBy": "nodeId"}
        return Wish(tool="import_merge", arguments=arguments, sets={f"node {one}": bed, f"node {two}": bed})

    def _undo(self) -> Wish | None:
        if not self._undoable:
            return None
        last, before = self._undoable[-1]
        return Wish(tool="undo", arguments={"ofVersion": last.success.version}, sets=before, is_undo=True)

    # How it changes something

    async def _set_register(self) -> None:
        name = self._draw.choice(REGISTERS)
        seen = await self._read(name, "register {}")
        if seen is None:
            return
        value = f"{self.name}-{next(self._serial)}"
        arguments = {"nodeId": name, "patch": {"value": value, "replaced": seen.value}}
        sets: dict[str, Value] = {f"register {name}": value}
        done = await self._change(
            Wish(tool="update_payload", arguments=arguments, sets=sets, replaced=seen.value, token=seen.version)
        )
        if done.fate == "took" and self._draw.random() < 0.4:  # what it was told must show elsewhere, at once
            await self._read(name, "register {}", at=self._draw.choice(self._replicas), asked=done.success.version)

    async def _undo_elsewhere(self, done: Operation) -> None:
        """Take back one more change, at another replica than the last one, as somebody does who lost a connection."""
        wish = self._undo()
        others = [replica for replica in self._replicas if replica.name != done.success.replica]
        if wish is not None and others:
            await self._change(wish, at=self._draw.choice(others))

    async def _change(self, wish: Wish, at: Served | None = None) -> Operation:
        number = next(self._numbers)
        key = f"k{number}" if self._draw.random() < 0.7 else None
        before = {subject: self._own.get(subject) for subject in wish.sets}
        calls: list[Call] = []
        token = wish.token or self._version or await self._latest()
        for _ in range(_TRIES):
            if key is not None and not calls and self._draw.random() < self._impatience(wish):
                answer, call = await self._called_everywhere(wish, token, key, calls)
            else:
                answer, call = await self._called(wish, token, key, replica=at)
            calls.append(call)
            if answer.told == "success" or (answer.told == "unknown" and key is None):
                break
            if answer.told == "refused":
                reason = answer.error.get("reason")
                if reason == "version_lost":
                    self._forget()
                if reason in ("stale_version", "version_lost") and wish.token is None:
                    token = answer.error.get("latestVersion") or await self._latest()
                    continue
                if "retryAfter" not in answer.error:
                    break
            await anyio.sleep(min(_PAUSE, float(answer.error.get("retryAfter", _PAUSE))))
        if key is not None and calls[-1].told == "success" and self._draw.random() < 0.15:
            fresh = self._version if self._draw.random() < 0.6 else token
            _, again = await self._called(wish, fresh, key, is_repeat=True)
            calls.append(again)
        operation = Operation(
            number=number,
            client=self.name,
            tool=wish.tool,
            sets=dict(wish.sets),
            key=key,
            replaced=wish.replaced,
            calls=calls,
        )
        self._history.operations.append(operation)
        self._learn(operation, before, is_undo=wish.is_undo)
        return operation

    def _impatience(self, wish: Wish) -> float:
        """How often it asks all replicas at once: mostly where no version token refuses a second effect."""
        if wish.tool == "snapshot_create":
            return 0.7
        return 0.1 if self._home is None else 0.0

    async def _called_everywhere(self, wish: Wish, token: str, key: str, calls: list[Call]) -> tuple[Answer, Call]:
        """Send it to every replica at once, as an impatient client does; a success counts, and all are kept."""
        answered: list[tuple[Answer, Call]] = []

        async def send(replica: Served) -> None:
            answered.append(await self._called(wish, token, key, replica=replica))

        async with anyio.create_task_group() as tasks:
            for replica in self._replicas:
                tasks.start_soon(send, replica)
        answered.sort(key=lambda one: one[0].told == "success")
        calls += [call for _, call in answered[:-1]]
        return answered[-1]

    async def _called(
        self, wish: Wish, token: str, key: str | None, *, replica: Served | None = None, is_repeat: bool = False
    ) -> tuple[Answer, Call]:
        replica = replica or self._where()
        keyed = {} if key is None else {"idempotencyKey": key}
        answer = await self._lines.to(replica).call(wish.tool, {**wish.arguments, "versionToken": token, **keyed})
        self._note(answer)
        return answer, Call(
            replica=replica.name,
            began=answer.began,
            ended=answer.ended,
            told=answer.told,
            version=answer.result.get("version"),
            node_ids=_ids_of(wish, answer.result),
            error=f"{answer.error.get('code', '')} {answer.error.get('reason', '')}".strip(),
            is_repeat=is_repeat,
        )

    def _learn(self, operation: Operation, before: Mapping[str, Value], *, is_undo: bool) -> None:
        """Know what an operation made of its own subjects; those in doubt are left alone from now on."""
        if operation.register is None and operation.fate == "took":
            self._own.update(operation.sets)
            self._ids.update(operation.success.node_ids)
        elif operation.register is None and operation.fate == "unknown":
            for subject in operation.sets:
                self._own.pop(subject, None)
                if subject.startswith("node "):
                    for tag in [one for one in self._own if one.startswith(f"tag {subject[5:]} ")]:
                        del self._own[tag]
        if operation.tool in _NOT_UNDONE or operation.fate == "refused":
            return
        if operation.fate == "unknown" or operation.register is not None:  # what others set since is not to be undone
            self._undoable.clear()
        elif is_undo:
            self._undoable.pop()
        else:
            self._undoable.append((operation, dict(before)))

    def _forget(self) -> None:
        """Some of what it knows is gone, and it cannot tell what."""
        self._history.refused_lost += 1
        self._version = ""
        self._own.clear()
        self._undoable.clear()

    # How it reads

    async def _read(
        self, name: str, subject: str, *, is_own: bool = False, at: Served | None = None, asked: str | None = None
    ) -> Read | None:
        """Read a node; with the version asked for, or now and then with the latest that it has seen."""
        replica = at or self._where()
        if asked is None and self._draw.random() < 0.5:
            asked = self._version
        node_id = self._ids.get(name, name)
        answer = await self._lines.to(replica).call("get_node", {"nodeId": node_id}, asked or None)
        self._note(answer)
        if answer.told != "success":
            if answer.error.get("reason") == "version_lost":
                self._forget()
            is_gone = is_own and answer.error.get("code") == "not_found"
            if not is_gone:
                return None
        if not subject:
            return None
        payload = answer.result.get("payload", {})
        value = answer.result.get("parentId") if is_own else payload.get("value")
        read = Read(
            number=next(self._numbers),
            client=self.name,
            replica=replica.name,
            began=answer.began,
            ended=answer.ended,
            subject=subject.format(name),
            value=value,
            version=str(answer.result.get("version", "")),
            asked=asked or None,
            is_own=is_own,
        )
        self._history.reads.append(read)
        return read

    async def _read_own(self) -> None:
        """Whoever stays at a replica is shown there what it did."""
        name = self._leaf()
        if name is not None and self._home is not None:
            await self._read(name, "node {}", is_own=True)

    async def _latest(self) -> str:
        """Some current version, where it knows none."""
        await self._read(COMMONS, "")
        return self._version

    def _note(self, answer: Answer) -> None:
        if answer.told == "success":
            self._version = str(answer.result["version"])

    def _where(self) -> Served:
        return self._home or self._draw.choice(self._replicas)


def _ids_of(wish: Wish, result: Mapping[str, Any]) -> dict[str, str]:
    """The ids that a success gave to the nodes that the wish named."""
    names = [subject[5:] for subject in wish.sets if subject.startswith("node ")]
    match wish.tool:
        case "add_child" if result:
            return {names[0]: result["nodeId"]}
        case "apply_changes" if result:
            refs: Mapping[str, str] = result["refs"]
            return {name: refs[name] for name in names if name in refs}
        case "snapshot_create" if result:
            return dict.fromkeys(wish.sets, result["snapshotId"])
        case "import_merge" if result:
            return {name: name for name in names}
    return {}
