"""A tree in a file of exported nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolgrove.cli.desk.tree import outline
from toolgrove.tree.document import export, loads
from toolgrove.tree.document import read as nodes_of
from toolgrove.tree.merge import Merge
from toolgrove.tree.node import Node
from toolgrove.tree.payload_type import PayloadTypes
from toolgrove.tree.tree import Tree

_NODES = 1_000_000


def read(file: Path, *, depth: int | None, nodes: int) -> tuple[Any, dict[str, Any]]:
    """The whole of it as a document, and its first nodes for a person."""
    top = _top(file)
    return export(top)[0], outline(top, depth=depth, nodes=nodes)


def _top(file: Path) -> Node:
    """The tree of a document; a root that only holds it together is left out."""
    try:
        document = loads(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{file} is not UTF-8 text; name a document that export_subtree or export_view gave") from None
    for key in ("view", "subtree"):
        document = loads(document.get(key, document))
    tree = Tree()
    merge = Merge(tree, PayloadTypes(), strategy="upsert", match_by="nodeId", parent=tree.root)
    merge.run(nodes_of(document, limit=_NODES))
    top = tree.root
    while top.parent is None and top.children_count == 1 and not top.payload:
        top = next(iter((top.children or {}).values()))
    return top
