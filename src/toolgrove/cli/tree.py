"""`toolgrove tree`: print the tree in a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.tree import Tree as Branches

from toolgrove.cli.screen import Screen, visible
from toolgrove.tree.document import loads, read
from toolgrove.tree.merge import Merge
from toolgrove.tree.node import Node
from toolgrove.tree.payload_type import PayloadTypes
from toolgrove.tree.tree import Tree

_NODES = 1_000_000


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add the command."""
    parser = commands.add_parser("tree", help="print the tree in a JSON file", description="Print a tree.")
    parser.add_argument("file", type=Path, help="a document of export_subtree or export_view, nested or flat")
    parser.add_argument("--depth", type=int, default=None, help="levels to print")
    parser.add_argument("--nodes", type=int, default=500, help="nodes to print at most (500)")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    """Print the tree."""
    form = loads(chosen.file.read_text(encoding="utf-8"))
    tree = Tree()
    for key in ("view", "subtree"):
        form = form.get(key, form)
    incoming = read(form, limit=_NODES)
    merge = Merge(tree, PayloadTypes(), strategy="upsert", match_by="nodeId", parent=tree.root)
    merge.run(incoming)
    screen.out.print(branches(tree.root, depth=chosen.depth, nodes=chosen.nodes), markup=True)
    return 0


def branches(root: Node, *, depth: int | None, nodes: int) -> Branches:
    """A tree for the terminal, breadth first up to a number of nodes; `+n` counts what is not shown."""
    while root.parent is None and root.children_count == 1 and not root.payload:
        root = next(iter((root.children or {}).values()))
    top = Branches(_label(root))
    level: list[tuple[Node, Branches, int]] = [(root, top, 0)]
    left = nodes - 1
    for node, branch, at in level:
        children = list((node.children or {}).values())
        room = 0 if depth is not None and at >= depth else max(0, left)
        for child in children[:room]:
            level.append((child, branch.add(_label(child)), at + 1))
        left -= min(room, len(children))
        if len(children) > room:
            branch.add(f"[dim]+{len(children) - room}[/dim]")
    return top


def _label(node: Node) -> str:
    rest = {key: value for key, value in node.payload.items() if key.lower() != "name"}
    name = f"[bold]{_text(node.name)}[/bold] " if node.name else ""
    detail = f" {_text(json.dumps(rest, ensure_ascii=False))}" if rest else ""
    tags = "".join(f" [yellow]#{_text(tag)}[/yellow]" for tag in sorted(node.tags))
    return f"{name}[dim]{_text(node.id)}[/dim] [cyan]{_text(node.type)}[/cyan]{tags}{detail}"


def _text(text: str) -> str:
    return escape(visible(text))
