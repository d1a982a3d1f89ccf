"""Patterns agree with `fnmatch`, however they are looked up."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from toolgrove.pool.globs import Globs

names = st.text("ab_*", max_size=8)
patterns = st.lists(st.one_of(st.text("ab_*", max_size=6), st.text("ab*?[!]_", max_size=6)), max_size=6)


@given(patterns, names)
def test_a_name_is_matched_by_a_pattern_that_names_it(patterns: list[str], name: str) -> None:
    found = Globs(patterns).match(name)
    if name in patterns:
        assert found is not None
    if found is None:
        assert not any(fnmatchcase(name, pattern) for pattern in patterns)
    else:
        assert found in patterns
        assert found == name or fnmatchcase(name, found)


@given(patterns, st.lists(names))
def test_many_names_are_matched_as_each_alone(patterns: list[str], names: list[str]) -> None:
    globs = Globs(patterns)
    assert globs.matches(names) == {name: found for name in names if (found := globs.match(name)) is not None}
