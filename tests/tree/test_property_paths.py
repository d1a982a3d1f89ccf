"""Property paths and JSON values, where the wording of the rules is exact."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolgrove.errors import GroveError
from toolgrove.notation.json_value import canonical, detached, identical, same
from toolgrove.tree.node import Node
from toolgrove.tree.predicate import compile_predicate
from toolgrove.tree.property_path import MISSING, PropertyFilter, finder

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 2.5]) | st.sampled_from(["", "a", "A"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "A"]), inner, max_size=3),
    max_leaves=6,
)


def test_the_exact_key_comes_first_and_only_a_unique_other_case_counts() -> None:
    assert finder("name")({"Name": 1, "name": 2}) == 2
    assert finder("name")({"NAME": 1}) == 1
    assert finder("name")({"NAME": 1, "Name": 2}) is MISSING
    assert finder("a.name")({"a": {"NAME": 1, "Name": 2}}) is MISSING
    assert PropertyFilter(("name",))({"NAME": 1, "Name": 2}) == {}
    assert PropertyFilter(("name",))({"nameLong": 1}) == {}


def test_arrays_are_transparent_and_dotted_keys_are_found_whole() -> None:
    payload = {"rows": [{"x": 1}, {"x": 2, "y": 3}, 5, [{"x": 4}]], "a.b": 6, "a": {"b": 7}}
    assert finder("rows.x")(payload) == [1, 2, 4]
    assert finder("a.b")(payload) == 6
    assert PropertyFilter(("rows.x",))(payload) == {"rows": [{"x": 1}, {"x": 2}, 5, [{"x": 4}]]}
    assert PropertyFilter((), ("rows.x", "a.b"))(payload) == {"rows": [{}, {"y": 3}, 5, [{}]], "a": {"b": 7}}


@given(JSON)
def test_a_filter_without_paths_keeps_everything_and_shares_nothing(value: Any) -> None:
    payload = {"v": value}
    copy = PropertyFilter()(payload)
    assert identical(copy, payload)
    assert copy is not payload
    assert copy["v"] is not value or not isinstance(value, dict | list)


@given(JSON, JSON)
@example(True, 1)
@example({"a": [False]}, {"a": [0]})
@example(1, 1.0)
def test_equality_is_json_equality(left: Any, right: Any) -> None:
    def tagged(value: Any) -> Any:
        if isinstance(value, bool):
            return ("bool", value)
        if isinstance(value, dict):
            return {key: tagged(item) for key, item in value.items()}
        return [tagged(item) for item in value] if isinstance(value, list) else value

    assert same(left, right) is (tagged(left) == tagged(right))
    if identical(left, right):
        assert canonical(left) == canonical(right)


@given(JSON)
def test_detaching_plain_json_changes_nothing(value: Any) -> None:
    assert identical(detached(value), value)


@pytest.mark.parametrize(
    ("form", "payload", "holds"),
    [
        ({"path": "x", "op": "eq", "value": 1}, {"x": True}, False),
        ({"path": "x", "op": "eq", "value": True}, {"x": 1}, False),
        ({"path": "x", "op": "eq", "value": "1"}, {"x": 1}, False),
        ({"path": "x", "op": "eq", "value": None}, {"x": None}, True),
        ({"path": "x", "op": "eq", "value": None}, {}, False),
        ({"path": "x", "op": "gt", "value": 0}, {"x": True}, False),
        ({"path": "x", "op": "gt", "value": 0}, {"x": "1"}, False),
        ({"path": "x", "op": "between", "value": [1, 3]}, {"x": 1}, True),
        ({"path": "x", "op": "between", "value": [1, 3]}, {"x": 3}, True),
        ({"path": "x", "op": "between", "value": [1, 1]}, {"x": 1}, True),
        ({"path": "x", "op": "contains", "value": "ROOM"}, {"x": "Living room"}, True),
        ({"path": "x", "op": "contains", "value": 2}, {"x": [1, 2]}, True),
        ({"path": "x", "op": "contains", "value": 1}, {"x": [True]}, False),
        ({"path": "x", "op": "contains", "value": 1}, {"x": "1"}, True),  # as text: the one exception
    ],
)
def test_nothing_is_coerced(form: dict[str, Any], payload: dict[str, Any], holds: bool) -> None:
    assert compile_predicate(form)(Node("n", "T", payload, None, 0)) is holds


@pytest.mark.parametrize("value", [[2, 1], ["a", 1], [1], "x", [None, 1], [True, 2]])
def test_a_range_without_sense_is_refused(value: Any) -> None:
    with pytest.raises(GroveError, match=r"bounds|between"):
        compile_predicate({"path": "x", "op": "between", "value": value})
