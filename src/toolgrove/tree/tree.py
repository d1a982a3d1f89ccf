"""The tree: a dict of nodes, changed only inside a transaction that remembers what was there before."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter

from toolgrove.errors import Conflict, InvalidArgument, NodeNotFound
from toolgrove.notation.json_value import identical
from toolgrove.tree.node import NO_TAGS, Image, Node, Payload
from toolgrove.tree.rank import Rank, between, is_long

ROOT = "root"
_NUMBERS = 10**15
"""Ids are numbered up to here; what an import brings beyond is no number to count on from."""
_by_rank = attrgetter("rank")


def walk(root: Node) -> Iterator[Node]:
    """`root` and all below it, in pre-order."""
    stack = [root]
    pop, push = stack.pop, stack.extend
    while stack:
        node = pop()
        yield node
        if node.children:
            push(reversed(node.children.values()))


class Tree:
    """Nodes by id, with one writer at a time and a before-image of everything it touches."""

    def __init__(self) -> None:
        self.root = Node(ROOT, "Root", {}, None, 0)
        self.nodes: dict[str, Node] = {ROOT: self.root}
        self.tagged: dict[str, dict[str, None]] = {}
        self.groups: dict[str, dict[str, None]] = {}
        self.before: dict[str, Image | None] = {}
        # Changed more than once, so perhaps what it was before after all.
        self._doubtful: set[str] = set()
        self._serial = 0
        self._serial_before = 0
        self._group_serial = 0
        self._disordered: dict[str, Node] = {}

    @classmethod
    def grown(cls, images: Mapping[str, Image], *, serial: int, group_serial: int) -> Tree:
        """The tree that these images describe; every parent must be among them."""
        tree = cls()
        tree._serial = tree._serial_before = serial
        tree._group_serial = group_serial
        nodes = tree.nodes
        shared: dict[str, Payload] = {}
        for node_id, image in images.items():
            payload = image.payload if image.group is None else shared.setdefault(image.group, image.payload)
            node = nodes[node_id] = Node(node_id, image.type, payload, None, image.rank)
            if image.tags:
                tree._set_tags(node, image.tags)
            if image.group is not None:
                tree._set_group(node, image.group)
        tree.root = nodes[ROOT]
        for node_id, image in sorted(images.items(), key=lambda one: one[1].rank):
            if image.parent_id is not None:
                parent, node = nodes[image.parent_id], nodes[node_id]
                if parent.children is None:
                    parent.children = {}
                parent.children[node_id] = node
                node.parent = parent
        return tree

    def fork(self) -> Tree:
        """A tree that starts out as this one; payloads are shared, since they are replaced and never changed."""
        fork = Tree()
        nodes = fork.nodes = {}
        for node_id, node in self.nodes.items():
            twin = nodes[node_id] = Node(node_id, node.type, node.payload, None, node.rank)
            twin.tags, twin.group = node.tags, node.group
        for node_id, node in self.nodes.items():
            if node.children:
                twin = nodes[node_id]
                twin.children = {key: nodes[key] for key in node.children}
                for child in twin.children.values():
                    child.parent = twin
        fork.root = nodes[ROOT]
        fork.tagged = {tag: dict(held) for tag, held in self.tagged.items()}
        fork.groups = {group: dict(held) for group, held in self.groups.items()}
        for held in fork.groups.values():
            for node_id in held:
                nodes[node_id].holders = held
        fork._serial = fork._serial_before = self._serial
        fork._group_serial = self._group_serial
        return fork

    def dismantle(self) -> None:
        """Take a tree apart that nobody needs any more, so that it is freed at once and not by the collector."""
        for node in self.nodes.values():
            node.parent = node.children = node.holders = None
        self.nodes = {}

    @property
    def serials(self) -> tuple[int, int]:
        """The last number given to a node, and to a group of nodes that share a payload."""
        return self._serial, self._group_serial

    def follow(self, images: Mapping[str, Image | None], *, serial: int, group_serial: int) -> None:
        """Become what another tree with the same nodes became; who shares a payload goes on sharing it."""
        shared: dict[str, Payload] = {}
        fitting = dict(images)
        for node_id, image in images.items():
            if image is not None and image.group is not None:
                if image.group not in shared:
                    others = [key for key in self.groups.get(image.group, ()) if key not in images]
                    shared[image.group] = self.nodes[others[0]].payload if others else image.payload
                fitting[node_id] = image._replace(payload=shared[image.group])
        self.apply(fitting)
        self.take()
        self._serial = self._serial_before = serial
        self._group_serial = group_serial

    def __getitem__(self, node_id: str) -> Node:
        try:
            return self.nodes[node_id]
        except KeyError:
            raise NodeNotFound(node_id) from None

    def __contains__(self, node_id: object) -> bool:
        return node_id in self.nodes

    def __len__(self) -> int:
        return len(self.nodes)

    # Changes ----------------------------------------------------------------------------------

    def add(self, parent: Node, type: str, payload: Payload, node_id: str | None = None) -> Node:
        """Append a child; the tree picks the id unless an import brings one."""
        if node_id is None:
            node_id = self.fresh_id()
        elif node_id in self.nodes:
            raise Conflict(f"A node with the id {node_id!r} exists already.", nodeId=node_id)
        else:
            self.reserve(node_id)
        if node_id in self.before:
            self._doubtful.add(node_id)
        else:
            self.before[node_id] = None
        siblings = parent.children
        if siblings:
            rank = siblings[next(reversed(siblings))].rank // 1 + 1
        else:
            siblings = parent.children = {}
            rank = 0
        node = Node(node_id, type, payload, parent, rank)
        siblings[node_id] = self.nodes[node_id] = node
        return node

    def write(self, node: Node, payload: Payload) -> list[Node]:
        """Replace a payload in every node that shares it; returns the nodes that changed."""
        if payload is node.payload:
            return []
        if node.group is None:
            self._touch(node)
            node.payload = payload
            return [node]
        holders = [self.nodes[holder] for holder in self.groups[node.group]]
        for holder in holders:
            self._touch(holder)
            holder.payload = payload
        return holders

    def retype(self, node: Node, type: str) -> None:
        """Give a node another payload type."""
        if type != node.type:
            self._touch(node)
            node.type = type

    def tag(self, node: Node, tags: frozenset[str]) -> None:
        """Give a node exactly these tags."""
        if tags != node.tags:
            self._touch(node)
            self._set_tags(node, tags)

    def share(self, node: Node, other: Node) -> None:
        """Let two nodes hold one payload from now on."""
        if node.group is None:
            self._touch(node)
            self._group_serial += 1
            self._set_group(node, f"g{self._group_serial}")
        self._touch(other)
        other.payload = node.payload
        self._set_group(other, node.group)

    def remove(self, node: Node) -> list[str]:
        """Remove a node and all below it; returns their ids in pre-order."""
        if node.parent is None:
            raise InvalidArgument("The root cannot be removed; remove its children instead.", nodeId=node.id)
        gone = list(walk(node))
        for one in gone:
            self._touch(one)
            self._forget(one)
        self._unlink(node)
        for one in gone:
            # Without circles they are freed at once; the collector would have to look for them.
            one.parent = one.children = None
        return [one.id for one in gone]

    def move(self, node: Node, parent: Node, rank: Rank | None = None) -> None:
        """Hang a node under another parent, last unless a rank says where."""
        _check_move(node, parent)
        if node.parent is parent and rank is None and next(reversed(parent.children or {})) == node.id:
            return
        self._touch(node)
        self._unlink(node)
        self._link(node, parent, self.last_rank(parent) if rank is None else rank)
        self._settle_order()

    def insert(
        self,
        nodes: Sequence[Node],
        parent: Node,
        *,
        index: int | None = None,
        sibling: Node | None = None,
        after: bool = False,
    ) -> None:
        """Put nodes one behind the other under a parent: beside a child, at an index among those that stay, or last."""
        if len(nodes) == 1 and index is None and sibling is None:
            self.move(nodes[0], parent)  # without a look at its siblings
            return
        for node in nodes:
            _check_move(node, parent)
        moving = {node.id for node in nodes}
        order = [child for child in (parent.children or {}).values() if child.id not in moving]
        spot = len(order) if index is None else min(index, len(order))
        if sibling is not None:
            spot = order.index(sibling) + after
        wanted = [*order[:spot], *nodes, *order[spot:]]
        if wanted == list((parent.children or {}).values()):
            return
        lower, upper = order[spot - 1].rank if spot else None, order[spot].rank if spot < len(order) else None
        ranks = _ranks(lower, upper, len(nodes))
        for node, rank in zip(nodes, ranks, strict=True):
            self._touch(node)
            self._unlink(node)
            self._link(node, parent, rank)
        if any(is_long(rank) for rank in ranks):
            self._renumber(wanted)
        self._disordered[parent.id] = parent
        self._settle_order()

    def place(self, node: Node, sibling: Node, *, after: bool) -> None:
        """Put a node immediately before or after a sibling."""
        parent = sibling.parent
        if parent is None or node.parent is not parent or node is sibling:
            raise InvalidArgument(
                f"{node.id!r} and {sibling.id!r} are not two children of one parent. "
                "Use move_node first to bring them together.",
                nodeId=node.id,
            )
        order = [child for child in parent.children.values() if child is not node]  # type: ignore[union-attr]
        spot = order.index(sibling) + after
        if spot == 0:
            rank = order[0].rank // 1 - 1
        elif spot == len(order):
            rank = order[-1].rank // 1 + 1
        else:
            rank = between(order[spot - 1].rank, order[spot].rank)
        lower = order[spot - 1].rank if spot else None
        upper = order[spot].rank if spot < len(order) else None
        if (lower is None or lower < node.rank) and (upper is None or node.rank < upper):
            return
        if is_long(rank):
            self._renumber([*order[:spot], node, *order[spot:]])
        else:
            self._touch(node)
            node.rank = rank
        self._disordered[parent.id] = parent
        self._settle_order()

    def reorder(self, parent: Node, order: list[Node]) -> list[str]:
        """Give the children a new order; returns the ids that changed place."""
        ranks = sorted(child.rank for child in order)
        moved: list[str] = []
        for child, rank in zip(order, ranks, strict=True):
            if child.rank != rank:
                self._touch(child)
                child.rank = rank
                moved.append(child.id)
        parent.children = {child.id: child for child in order} or None
        return moved

    def last_rank(self, parent: Node) -> Rank:
        """The rank behind the last child."""
        siblings = parent.children
        return siblings[next(reversed(siblings))].rank // 1 + 1 if siblings else 0

    def fresh_id(self) -> str:
        """An id that no node has or had."""
        if self._serial < _NUMBERS:
            self._serial += 1
            return f"n{self._serial}"
        return f"n{secrets.token_hex(12)}"

    def reserve(self, node_id: str) -> None:
        """Never give out an id that a document brings."""
        digits = node_id[1:]
        if node_id[:1] == "n" and digits.isascii() and digits.isdigit() and len(digits) <= 255:
            number = int(digits)
            if number <= _NUMBERS:
                self._serial = max(self._serial, number)

    # Transactions -----------------------------------------------------------------------------

    @contextmanager
    def step(self) -> Iterator[None]:
        """A part of the transaction; if it fails, it alone is taken back."""
        before, doubtful, serial = self.before, self._doubtful, self._serial
        self.before, self._doubtful = {}, set()
        try:
            yield
        except BaseException:
            images, self.before = self.before, {}
            self.apply(images)
            self.before, self._doubtful, self._serial = before, doubtful, serial
            raise
        doubtful.update(self._doubtful, before.keys() & self.before.keys())
        for node_id, image in self.before.items():
            before.setdefault(node_id, image)
        self.before, self._doubtful = before, doubtful

    def take(self) -> dict[str, Image | None]:
        """Close the transaction and hand over its before-images, less what did not change in the end."""
        before, self.before = self.before, {}
        doubtful, self._doubtful = self._doubtful, set()
        self._serial_before = self._serial
        for node_id in doubtful:
            if is_still(before[node_id], self.nodes.get(node_id)):
                del before[node_id]
        return before

    def rollback(self) -> None:
        """Undo everything since the last `take`."""
        before, self.before = self.before, {}
        self.apply(before)
        self.before, self._doubtful = {}, set()
        self._serial = self._serial_before

    def image(self, node_id: str) -> Image | None:
        """The present state of a node, or None where there is none."""
        node = self.nodes.get(node_id)
        return None if node is None else node.image()

    def apply(self, images: Mapping[str, Image | None]) -> None:
        """Make the given nodes what the images say; None removes. The caller has checked that it fits."""
        nodes = self.nodes
        for node_id in images:
            if node_id not in self.before:
                self.before[node_id] = self.image(node_id)
        self._doubtful.update(images)
        leaving = [nodes[node_id] for node_id, image in images.items() if image is None and node_id in nodes]
        for gone in leaving:
            self._unlink(gone)
            self._forget(gone)
        arriving: list[tuple[Node, Image]] = []
        for node_id, image in images.items():
            if image is None:
                continue
            node = nodes.get(node_id)
            if node is None:
                node = nodes[node_id] = Node(node_id, image.type, image.payload, None, image.rank)
                arriving.append((node, image))
            else:
                node.type = image.type
                # What reads the same stays the same object: a journal that was closed meanwhile holds copies.
                if not identical(node.payload, image.payload):
                    node.payload = image.payload
                if node.parent_id != image.parent_id or node.rank != image.rank:
                    self._unlink(node)
                    arriving.append((node, image))
            self._set_tags(node, image.tags)
            self._set_group(node, image.group)
        for node, image in arriving:
            if image.parent_id is not None:
                self._link(node, nodes[image.parent_id], image.rank)
        self._settle_order()

    # The bookkeeping under the changes ----------------------------------------------------------

    def _touch(self, node: Node) -> None:
        """Keep what a node was before a change; only a further change can make it that again."""
        if node.id in self.before:
            self._doubtful.add(node.id)
        else:
            self.before[node.id] = node.image()

    def _renumber(self, order: list[Node]) -> None:
        """Once in a thousand moves into one gap; a page token from before may then be off its place."""
        for rank, child in enumerate(order):
            if child.rank != rank:
                self._touch(child)
                child.rank = rank

    def _link(self, node: Node, parent: Node, rank: Rank) -> None:
        siblings = parent.children
        if siblings is None:
            siblings = parent.children = {}
        elif siblings and rank <= siblings[next(reversed(siblings))].rank:
            self._disordered[parent.id] = parent
        node.parent, node.rank = parent, rank
        siblings[node.id] = node

    def _unlink(self, node: Node) -> None:
        parent = node.parent
        if parent is not None and parent.children is not None:
            parent.children.pop(node.id, None)
            if not parent.children:
                parent.children = None
        node.parent = None

    def _settle_order(self) -> None:
        for parent in self._disordered.values():
            if parent.children:
                parent.children = {child.id: child for child in sorted(parent.children.values(), key=_by_rank)}
        self._disordered.clear()

    def _forget(self, node: Node) -> None:
        del self.nodes[node.id]
        self._set_tags(node, NO_TAGS)
        self._set_group(node, None)

    def _set_tags(self, node: Node, tags: frozenset[str]) -> None:
        if tags is node.tags:
            return
        _reindex(self.tagged, node.id, node.tags, tags)
        node.tags = tags

    def _set_group(self, node: Node, group: str | None) -> None:
        if group == node.group:
            return
        old, new = node.group, group
        _reindex(self.groups, node.id, (old,) if old else (), (new,) if new else ())
        node.group = group
        node.holders = self.groups[new] if new else None


def _check_move(node: Node, parent: Node) -> None:
    if node.parent is None:
        raise InvalidArgument("The root cannot be moved.", nodeId=node.id)
    if parent.is_within(node):
        raise InvalidArgument(
            f"{node.id!r} cannot move under {parent.id!r}: that is the node itself or below it. "
            "Choose a parent outside its subtree.",
            nodeId=node.id,
        )


def _ranks(lower: Rank | None, upper: Rank | None, count: int) -> list[Rank]:
    """Ranks in order for nodes between two others, before the first or behind the last."""
    if lower is None or upper is None:
        start = lower // 1 + 1 if lower is not None else upper // 1 - count if upper is not None else 0
        return [start + at for at in range(count)]
    ranks: list[Rank] = []
    for _ in range(count):
        ranks.append(between(ranks[-1] if ranks else lower, upper))
    return ranks


def is_still(image: Image | None, node: Node | None) -> bool:
    """Whether a node is what the image says, to the letter."""
    if image is None or node is None:
        return image is None and node is None
    return (
        image.parent_id == node.parent_id
        and image.rank == node.rank
        and image.type == node.type
        and image.tags == node.tags
        and image.group == node.group
        and identical(image.payload, node.payload)
    )


def _reindex(index: dict[str, dict[str, None]], node_id: str, old: Iterable[str], new: Iterable[str]) -> None:
    for key in old:
        holders = index[key]
        holders.pop(node_id, None)
        if not holders:
            del index[key]
    for key in new:
        index.setdefault(key, {})[node_id] = None
