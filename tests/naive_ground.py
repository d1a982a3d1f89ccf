"""What a call stands on where only that makes its version stale; the model of footprints, by looking things up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from naive_query import Family

Node = dict[str, Any]
VIEW_ALONE = ("set_filters", "import_view", "remove_bookmark", "snapshot_create", "snapshot_delete")
VIEW_AND_NODE = (
    "expand_node",
    "collapse_node",
    "toggle_node",
    "expand_all",
    "collapse_all",
    "set_expansion_recursive",
    "bookmark",
)


@dataclass(frozen=True, kw_only=True)
class Ground:
    """Nodes, lists of children, everything, the caller's view."""

    nodes: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    everything: bool = False
    view: bool = False

    def changed_by(self, touched: set[str], lists: set[str]) -> set[str]:
        """What of it a change has changed."""
        return touched if self.everything else (touched & self.nodes) | (lists & self.lists)


EVERYTHING = Ground(everything=True)


def ground_of(tool: str, arguments: dict[str, Any], root: Node) -> Ground:
    """What a tool stands on in a tree."""
    family = Family(root)
    node: str = arguments.get("nodeId") or arguments.get("rootNodeId") or arguments.get("sourceId") or ""
    below = ids(family, family.descendants, node)
    match tool:
        case "add_child":
            return Ground(lists=frozenset({arguments["parentNodeId"]}))
        case "sort_children":
            return Ground(lists=frozenset({arguments["parentId"]}))
        case "update_payload" | "update_payload_property" | "tag_node":
            return Ground(nodes=frozenset({node}))
        case "clone_node":
            return Ground(nodes=frozenset({node}), lists=frozenset({arguments["targetParentId"]}))
        case "copy_subtree":
            return Ground(nodes=below, lists=below | {arguments["targetParentId"]})
        case "remove_node":
            return standing(family, [node], nodes=below, lists=below)
        case "move_before" | "move_after":
            return standing(family, [node, arguments["siblingId"]])
        case "move_node":
            parent = arguments["newParentId"]
            above = ids(family, family.ancestors, parent)
            return standing(family, [node], nodes=above | {node}, lists=frozenset({parent}))
        case _ if tool in VIEW_ALONE:
            return Ground(view=True)
        case _ if tool in VIEW_AND_NODE:
            return Ground(nodes=frozenset({node}), view=True)
        case _:
            return EVERYTHING


def ids(family: Family, relatives: Callable[[Node], list[Node]], node_id: str) -> frozenset[str]:
    """A node and its relatives; the id alone where there is no such node."""
    found = [one for one in family.order if one["nodeId"] == node_id]
    return frozenset({node_id}) | {one["nodeId"] for node in found for one in relatives(node)}


def standing(
    family: Family, node_ids: list[str], nodes: frozenset[str] = frozenset(), lists: frozenset[str] = frozenset()
) -> Ground:
    """The lists that nodes stand in, beside other ground; a node itself where it stands in none."""
    for node_id in node_ids:
        parent = family.parent.get(node_id)
        if parent is None:
            nodes |= {node_id}
        else:
            lists |= {parent["nodeId"]}
    return Ground(nodes=nodes, lists=lists)
