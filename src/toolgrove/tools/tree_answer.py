"""How a view or a subtree is answered: nested, as flat items when paged, or as an outline, within a budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolgrove.tools.answer_size import size
from toolgrove.tools.context import ToolContext, place_of, ranks_of
from toolgrove.tree.node import Node
from toolgrove.tree.render import branch_cost, line, line_cost, nested, node_json, outline
from toolgrove.tree.view import Lens
from toolgrove.types import Arguments, Result


def tree_answer(
    context: ToolContext, arguments: Arguments, root: Node, lens: Lens, *, word: str, header: Result
) -> Result:
    """What a read shows from a node down; `word` is what nested nodes are answered under."""
    taken = size(header) if header else 0
    if "pageSize" in arguments or "pageToken" in arguments:
        return {**_page(context, arguments, root, lens, taken), **header}
    as_outline = arguments.get("format") == "outline"
    shown, cut = nested(
        root,
        lens,
        max_tokens=context.budget,
        max_nodes=context.limits.view_nodes,
        cost=line_cost if as_outline else branch_cost,
        taken=taken,
    )
    result: Result = {"outline": outline(shown)} if as_outline else {word: shown}
    return {**result, **cut.noted(), **header}


def _page(context: ToolContext, arguments: Arguments, root: Node, lens: Lens, taken: int) -> Result:
    after = ranks_of(context.place(arguments))
    as_outline = arguments.get("format") == "outline"

    def places(pair: tuple[Node, Any]) -> list[str]:
        return place_of(pair[0], root)

    if as_outline:
        lines = ((node, _line(node, depth, lens)) for node, depth in lens.walk(root, after))
        texts, more = context.page(arguments, lines, places, _shown, taken=taken)
        return {"outline": "\n".join(texts), **more}
    items = _items(root, lens, after)
    found, more = context.page(arguments, items, places, _shown, taken=taken)
    return {"items": found, **more}


def _shown(pair: tuple[Node, Any]) -> Any:
    return pair[1]


def _items(root: Node, lens: Lens, after: list[Any] | None) -> Iterator[tuple[Node, Result]]:
    for node, depth in lens.walk(root, after):
        item = {**node_json(node, lens.filter), "depth": depth}
        yield node, item if lens.expanded is None else {**item, "isExpanded": lens.is_expanded(node)}


def _line(node: Node, depth: int, lens: Lens) -> str:
    return line(node_json(node, lens.filter), depth, 0 if lens.opens(node, depth) else node.children_count)
