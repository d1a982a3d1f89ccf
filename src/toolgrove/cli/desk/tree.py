"""Operations: the tree, as far as it is wanted."""

from __future__ import annotations

from typing import Any

from toolgrove.cli.desk.rest import Kept
from toolgrove.errors import InvalidArgument
from toolgrove.grove import Grove
from toolgrove.notation.half_characters import whole as without_halves
from toolgrove.store.journal import read_workspace
from toolgrove.tree.document import export
from toolgrove.tree.node import Node
from toolgrove.tree.tree import Tree
from toolgrove.types import Client


async def tree(
    project: Kept, client: Client, *, depth: int | None = None, nodes: int = 500, whole: bool = False
) -> Any:
    """The tree with its first nodes, level by level; or the whole of it as a document."""
    root = _tree(project).root
    shown = export(root)[0] if whole else outline(root, depth=depth, nodes=nodes)
    return without_halves(shown)


def _tree(project: Kept) -> Tree:
    if isinstance(project, Grove):
        return project.tree
    workspace = project.config.workspace
    if workspace.store_path is None:
        raise InvalidArgument(
            "This project's tree is in memory, and no running gateway has one. Start 'toolgrove serve', "
            "or name a file: toolgrove tree FILE."
        )
    saved = read_workspace(workspace.store_path)
    return (
        Tree()
        if saved is None
        else Tree.grown(saved.nodes, serial=saved.mark.serial, group_serial=saved.mark.group_serial)
    )


def outline(root: Node, *, depth: int | None, nodes: int) -> dict[str, Any]:
    """Nodes breadth first up to a number; `more` counts the children that are left out."""
    top = _outlined(root)
    level: list[tuple[Node, dict[str, Any], int]] = [(root, top, 0)]
    left = nodes - 1
    for node, shown, at in level:
        children = list((node.children or {}).values())
        room = 0 if depth is not None and at >= depth else max(0, left)
        for child in children[:room]:
            shown["children"].append(_outlined(child))
            level.append((child, shown["children"][-1], at + 1))
        left -= min(room, len(children))
        shown["more"] = max(0, len(children) - room)
    return top


def _outlined(node: Node) -> dict[str, Any]:
    rest = {key: value for key, value in node.payload.items() if key.lower() != "name"}
    return {
        "id": node.id,
        "name": node.name,
        "type": node.type,
        "tags": sorted(node.tags),
        "payload": rest,
        "children": [],
        "more": 0,
    }
