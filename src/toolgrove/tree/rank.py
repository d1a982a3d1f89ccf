"""Ranks: what orders siblings, and finds a place between any two of them."""

from __future__ import annotations

from fractions import Fraction

Rank = int | Fraction
"""A fraction always fits between two ranks, so no sibling is renumbered because another one moves: before-images stay
small and page tokens stay true."""

_LONGEST = 1_024


def between(low: Rank, high: Rank) -> Rank:
    """The rank of the smallest numerator and denominator between two others.

    Halving instead would make ranks longer with every node that is put into the same gap.
    """
    # Both as continued fractions a/b and c/d: as far as they agree, so does whatever is between them.
    (a, b), (c, d) = low.as_integer_ratio(), high.as_integer_ratio()
    wholes: list[int] = []
    while (whole := a // b) * d + d >= c:
        a, c = a - whole * b, c - whole * d
        if a == 0:
            above, below = whole * (d // c + 1) + 1, d // c + 1
            break
        wholes.append(whole)
        a, b, c, d = d, c, b, a
    else:
        above, below = whole + 1, 1
    for whole in reversed(wholes):
        above, below = whole * above + below, above
    return above if below == 1 else Fraction(above, below)


def is_long(rank: Rank) -> bool:
    """Whether siblings have closed in on each other so often that they should be numbered anew."""
    return rank.denominator.bit_length() > _LONGEST


def rank_text(rank: Rank) -> str:
    """A rank as a token carries it."""
    return str(rank)


def rank_of(text: str) -> Rank:
    """The rank that a token carried."""
    whole = Fraction(text)
    return whole.numerator if whole.denominator == 1 else whole
