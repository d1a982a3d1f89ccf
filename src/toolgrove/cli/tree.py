"""`toolgrove tree`: print the tree in a file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.text import Text
from rich.tree import Tree as Branches

from toolgrove.cli.screen import Screen, line
from toolgrove.cli.text import whole_number
from toolgrove.tree.document import export, loads, read
from toolgrove.tree.merge import Merge
from toolgrove.tree.node import Node
from toolgrove.tree.payload_type import PayloadTypes
from toolgrove.tree.tree import Tree

_NODES = 1_000_000


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("tree", parents=[shared], description="Print a tree.")
    parser.add_argument("file", type=Path, help="a document of export_subtree or export_view, nested or flat")
    parser.add_argument("--depth", type=whole_number("a number of levels"), default=None, help="levels to print")
    parser.add_argument(
        "--nodes", type=whole_number("a number of nodes", low=1), default=500, help="nodes to print at most (500)"
    )
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace, screen: Screen) -> int:
    with screen.waiting(f"Reading {chosen.file} …"):
        top = _read(chosen.file)
    screen.answer(export(top)[0], branches(top, depth=chosen.depth, nodes=chosen.nodes))
    return 0


def _read(file: Path) -> Node:
    """The tree of a document; a root that only holds it together is left out."""
    try:
        document = loads(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{file} is not UTF-8 text; name a document that export_subtree or export_view gave") from None
    for key in ("view", "subtree"):
        document = loads(document.get(key, document))
    tree = Tree()
    merge = Merge(tree, PayloadTypes(), strategy="upsert", match_by="nodeId", parent=tree.root)
    merge.run(read(document, limit=_NODES))
    top = tree.root
    while top.parent is None and top.children_count == 1 and not top.payload:
        top = next(iter((top.children or {}).values()))
    return top


def branches(root: Node, *, depth: int | None, nodes: int) -> Branches:
    """A tree for the terminal, breadth first up to a number of nodes; `+n` counts what is not shown."""
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
            branch.add(line(f"+{len(children) - room}", "dim"))
    return top


def _label(node: Node) -> Text:
    rest = {key: value for key, value in node.payload.items() if key.lower() != "name"}
    parts = [line(node.name, "bold")] if node.name else []
    parts += [line(node.id, "dim"), line(node.type, "cyan")]
    parts += [line(f"#{tag}", "yellow") for tag in sorted(node.tags)]
    parts += [line(json.dumps(rest, ensure_ascii=False))] if rest else []
    return Text(" ").join(parts)
