"""Ranks: a node always fits between two others, and ranks stay short however often that is asked."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrove.tree.node import Node
from toolgrove.tree.rank import between, rank_of, rank_text
from toolgrove.tree.tree import Tree

_ranks = st.fractions(min_value=-3, max_value=3, max_denominator=40)


@given(one=_ranks, other=_ranks)
def test_the_rank_between_two_others_is_the_shortest_there_is(one: Fraction, other: Fraction) -> None:
    low, high = sorted((one, other))
    if low == high:
        return
    found = between(low, high)
    assert low < found < high
    shorter = range(1, found.denominator)
    assert not any(low < Fraction(n, d) < high for d in shorter for n in range(low * d // 1, high * d // 1 + 2))


def siblings(tree: Tree, count: int) -> list[Node]:
    return [tree.add(tree.root, "T", {}) for _ in range(count)]


def shown(tree: Tree) -> list[str]:
    return list(tree.root.children or {})


def test_nodes_that_change_places_below_a_pinned_one_keep_short_ranks() -> None:
    tree = Tree()
    first, *others = siblings(tree, 3)
    for at in range(15_000):
        tree.place(others[at % 2], first, after=True)
        tree.take()
    assert shown(tree) == [first.id, others[1].id, others[0].id]
    assert all(len(rank_text(node.rank)) < 10 for node in others)


@pytest.mark.long
def test_nodes_that_close_in_on_each_other_are_numbered_anew_before_ranks_grow_long() -> None:
    tree = Tree()
    left, oldest, middle, newest, right = siblings(tree, 5)
    order = [left, oldest, middle, newest, right]
    for _ in range(2_000):
        # The oldest goes between the two that were placed last, so that the gap has to become narrower each time.
        anchor = min(middle, newest, key=order.index)
        tree.place(oldest, anchor, after=True)
        order.remove(oldest)
        order.insert(order.index(anchor) + 1, oldest)
        tree.take()
        oldest, middle, newest = middle, newest, oldest
    assert shown(tree) == [node.id for node in order]
    for node in order:
        assert len(rank_text(node.rank)) < 700
        assert rank_of(rank_text(node.rank)) == node.rank
