"""What clients asked for and were told: values that a checker can judge without the product.

A client changes **subjects**. A subject is a text, and its value a plain value:

- ``node NAME``: the name of the node that it stands below, or None where it is not in the tree
- ``tag NAME TAG``: True where the node has it
- ``bookmark CLIENT LABEL``: the node that it leads to
- ``snapshot LABEL``: True where there is one
- ``register NAME``: the value that the last compare-and-set gave it

A register is everybody's; each other subject is changed by one client alone, one call after the other. An operation
is one wish of a client, in as many calls as it took. It **took** if one of them was told success, it was **refused** if
all were, and otherwise nobody knows: it may be in the tree now, or later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

Value = str | bool | None
Told = Literal["success", "refused", "unknown", "unsent"]
Fate = Literal["took", "refused", "unknown"]
FIRST: Value = "first"
"""What every register holds before anybody sets it."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request, and what came back."""

    replica: str
    began: float
    ended: float
    told: Told
    version: str | None = None
    """The version token of the answer."""
    node_ids: Mapping[str, str] = field(default_factory=dict)
    """The ids that new nodes were given, by their names."""
    error: str = ""
    is_repeat: bool = False
    """Sent on purpose after a success, with the same key."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A change that a client wished for."""

    number: int
    client: str
    tool: str
    sets: Mapping[str, Value]
    """The subjects, and what they were to be."""
    key: str | None = None
    replaced: Value = None
    """Of a compare-and-set: the value that it was to replace."""
    calls: Sequence[Call] = ()

    @cached_property
    def fate(self) -> Fate:
        told = {call.told for call in self.calls}
        return "took" if "success" in told else "unknown" if "unknown" in told else "refused"

    @property
    def success(self) -> Call:
        """The first call that was told so."""
        return next(call for call in self.calls if call.told == "success")

    @property
    def register(self) -> str | None:
        """The register that it sets, if it is a compare-and-set."""
        return next((subject for subject in self.sets if subject.startswith("register ")), None)

    def __str__(self) -> str:
        calls = ", ".join(f"{call.told} at {call.replica}" + f" {call.error}" * bool(call.error) for call in self.calls)
        return f"#{self.number} {self.tool} of {self.client} ({dict(self.sets)}; {calls})"


@dataclass(frozen=True, kw_only=True)
class Read:
    """A subject as a client was shown it."""

    number: int
    client: str
    replica: str
    began: float
    ended: float
    subject: str
    value: Value
    version: str
    asked: str | None = None
    """The version that the request brought."""
    is_own: bool = False
    """Whether nobody but this client changes the subject, and it knows what it must be."""

    def __str__(self) -> str:
        asked = f", asked for {self.asked}" if self.asked else ""
        at = f"{self.replica} ({self.version}{asked})"
        return f"#{self.number} {self.client} read {self.subject} = {self.value!r} at {at}"


@dataclass(frozen=True, kw_only=True)
class Payment:
    """A call with an effect outside that needs an approval, in as many calls as it took."""

    number: int
    client: str
    purpose: str
    """An argument that no other payment has."""
    calls: Sequence[Call]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a person said about a payment, and whether it counts."""

    approval: str
    purpose: str
    approve: bool
    told: Told
    began: float


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """A payment as it came in where it was paid to."""

    purpose: str
    at: float


@dataclass(frozen=True, kw_only=True)
class Look:
    """What `/ready` of a replica said; status 0 where nobody answered."""

    replica: str
    at: float
    status: int
    troubles: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that was broken on purpose, from then to then."""

    kind: str
    target: str
    began: float
    ended: float


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A whole tree as one source shows it: every node by its id."""

    source: str
    nodes: Mapping[str, tuple[str | None, str, Mapping[str, Any], tuple[str, ...]]]
    """Id → (id of the parent, type, payload, sorted tags)."""
    order: Mapping[str, tuple[str, ...]]
    """Id → ids of its children in order; only of nodes that have some."""

    @classmethod
    def of_document(cls, source: str, document: Mapping[str, Any]) -> Tree:
        """The tree of an export in JSON."""
        nodes: dict[str, tuple[str | None, str, Mapping[str, Any], tuple[str, ...]]] = {}
        order: dict[str, tuple[str, ...]] = {}

        def take(node: Mapping[str, Any], parent: str | None) -> None:
            name, children = str(node["nodeId"]), node.get("children", ())
            nodes[name] = parent, node["payloadType"], node["payload"], tuple(sorted(node.get("tags", ())))
            if children:
                order[name] = tuple(str(child["nodeId"]) for child in children)
            for child in children:
                take(child, name)

        take(document, None)
        return cls(source=source, nodes=nodes, order=order)

    @cached_property
    def named(self) -> Mapping[str, Sequence[str]]:
        """Name → ids of the nodes that have it."""
        found: dict[str, list[str]] = {}
        for node_id, (_, _, payload, _) in self.nodes.items():
            found.setdefault(str(payload.get("name", node_id)), []).append(node_id)
        return found

    def subjects(self) -> dict[str, Value]:
        """All that clients change, as it is here; what is absent has no entry."""
        found: dict[str, Value] = {}
        for node_id, (parent, _, payload, tags) in self.nodes.items():
            name = str(payload.get("name", node_id))
            if "value" in payload:
                found[f"register {name}"] = payload["value"]
                continue
            above = None if parent is None else self.nodes[parent][2].get("name", parent)
            found[f"node {name}"] = above
            found.update({f"tag {name} {tag}": True for tag in tags})
        return found


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What the rows of the journal say when somebody else replays them."""

    problems: Sequence[str]
    """Where they contradict each other."""
    tree: Tree | None
    """What they lead to."""
    changes: int
    """How many entries there are."""
    calls: Sequence[str]
    """The ids of calls that made them, as far as the store tells."""
    is_whole: bool
    """Whether `calls` has one for each entry."""
    born: Mapping[str, int]
    """Name → how many entries made a node of that name, undo aside."""
    values: Mapping[str, Sequence[tuple[Value, Value]]]
    """Register → (value, value that it names as replaced), in the order of the journal."""


Seen = Operation | Read | Payment | Decision | Arrival | Look | Fault | Tree


@dataclass(kw_only=True)
class History:
    """All that was seen of one run; grows while it lasts."""

    seed: str
    operations: list[Operation] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    payments: list[Payment] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    approvals: list[Mapping[str, Any]] = field(default_factory=list)
    """In the end: every approval, as the API shows it."""
    looks: list[Look] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    """In the end: of every replica, and of one that started afresh."""
    bookmarks: dict[str, Value] = field(default_factory=dict)
    """In the end: `bookmark CLIENT LABEL` → node."""
    snapshots: list[str] = field(default_factory=list)
    """In the end: the label of each snapshot."""
    audit: list[dict[str, Any]] = field(default_factory=list)
    """In the end: every record of the audit log."""
    stored: Stored | None = None
    wrong: list[str] = field(default_factory=list)
    """What kept a replica from its work when nothing was broken any more."""
    may_lose: bool = False
    """Whether the store went over to a standby that lacked acknowledged changes."""
    refused_lost: int = 0
    """How many version tokens were refused as `version_lost`."""

    def save(self, path: Path) -> None:
        """Write it down, a line for each thing that was seen."""
        with path.open("w", encoding="utf-8") as file:
            for one in self._all():
                file.write(json.dumps({type(one).__name__: asdict(one)}) + "\n")

    def _all(self) -> Iterator[Seen]:
        groups: Iterable[Iterable[Seen]] = (
            self.operations,
            self.reads,
            self.payments,
            self.decisions,
            self.arrivals,
            self.looks,
            self.faults,
            self.trees,
        )
        for group in groups:
            yield from group
