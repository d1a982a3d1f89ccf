"""Queries of the selection language, which is imported when the first one comes: a list of tools does not need it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgrove.tree.dsl import Selection
    from toolgrove.tree.tree import Tree


def select(tree: Tree, text: str) -> Selection:
    """A compiled query, ready to walk a tree."""
    made: Selection = import_module("toolgrove.tree.dsl").Selection(tree, text)
    return made


def advice() -> Any:
    """What knows why a query found nothing."""
    return import_module("toolgrove.tree.dsl.advice")
