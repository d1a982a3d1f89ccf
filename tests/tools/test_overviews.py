"""What a model can ask before it reads: figures by group, and what a tree holds at all."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grove_kit import Hand, config, hand, sample
from toolgrove import Grove

pytestmark = pytest.mark.anyio
TASKS: list[dict[str, Any]] = [
    {"name": "a", "hours": 3, "state": "open", "who": ["ann", "bob"], "at": {"city": "Ulm"}},
    {"name": "b", "hours": 4.5, "state": "open", "who": ["bob"], "at": {"city": "Bonn"}},
    {"name": "c", "hours": "many", "state": "done", "late": True},
    {"name": "d", "state": None, "late": False},
]


async def tasks(payloads: list[dict[str, Any]] = TASKS) -> Hand:
    editor = await hand(Grove(config()))
    items = [
        {"nodeId": f"t{at}", "parentId": "root", "payloadType": "Task", "payload": payload, "tags": ["x"] * (at % 2)}
        for at, payload in enumerate(payloads)
    ]
    await editor.ok("import_merge", json={"items": items}, strategy="upsert")
    return editor


async def test_figures_by_group_come_with_the_largest_group_first() -> None:
    editor = await tasks()
    measures = [{"op": "count"}, {"op": "sum", "path": "hours"}, {"op": "avg", "path": "hours"}]
    answer = await editor.ok("aggregate", groupBy="state", measures=measures)
    assert answer["groups"] == [
        {"key": "open", "count": 2, "sum(hours)": 7.5, "avg(hours)": 3.75},
        {"key": "done", "count": 1, "sum(hours)": 0, "avg(hours)": None},
        {"key": None, "count": 1, "sum(hours)": 0, "avg(hours)": None},
    ]
    assert (answer["groupCount"], answer["nodeCount"]) == (3, 4)


@pytest.mark.parametrize(
    ("op", "path", "figure"),
    [
        ("count", "hours", 3),
        ("distinct", "who", 2),
        ("min", "hours", 3),
        ("max", "hours", "many"),
        ("max", "at.city", "Ulm"),
        ("min", "nothing", None),
        ("distinct", "@tag", 1),
        ("max", "@depth", 1),
    ],
)
async def test_a_figure_without_groups_is_over_all_nodes(op: str, path: str, figure: Any) -> None:
    editor = await tasks()
    answer = await editor.ok("aggregate", measures=[{"op": op, "path": path}])
    assert answer["groups"] == [{f"{op}({path})": figure}]


async def test_a_node_with_several_values_is_in_the_group_of_each() -> None:
    editor = await tasks()
    answer = await editor.ok("aggregate", groupBy="who", query="exists who")
    assert answer["groups"] == [{"key": "bob", "count": 2}, {"key": "ann", "count": 1}]


async def test_only_what_is_below_the_root_and_selected_counts() -> None:
    _, editor = await sample()
    answer = await editor.ok("aggregate", rootNodeId="house", query="squareFeet > 70", groupBy="@type")
    assert answer["groups"] == [{"key": "Room", "count": 2}]
    nothing = await editor.ok("aggregate", query="type = Room")
    assert nothing["groups"] == [{"count": 0}]
    assert "@type" in nothing["hint"]


async def test_what_a_session_does_not_want_to_see_is_in_no_figure_and_no_description() -> None:
    editor = await tasks()
    await editor.ok("set_filters", scope="all", excluded=["hours", "at.city"])
    answer = await editor.ok("aggregate", groupBy="hours", measures=[{"op": "max", "path": "at.city"}])
    assert answer["groups"] == [{"key": None, "max(at.city)": None}]
    described = await editor.ok("describe_tree")
    assert not {"hours", "at.city"} & {one["path"] for one in described["properties"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"measures": [{"op": "sum"}]}, "sum needs a path"),
        ({"groupBy": "@typ"}, "Did you mean @type?"),
        ({"query": "a ="}, "a value is missing"),
        ({"rootNodeId": "nowhere"}, "nowhere"),
    ],
)
async def test_what_cannot_be_computed_is_refused_with_advice(arguments: dict[str, Any], words: str) -> None:
    editor = await tasks()
    assert words in (await editor.refused("aggregate", **arguments))["message"]


async def test_a_sum_that_no_number_can_hold_is_null_and_one_of_large_whole_numbers_is_exact() -> None:
    editor = await tasks([{"x": 1e308, "n": 2**60}, {"x": 1e308, "n": 1}])
    measures = [{"op": op, "path": path} for op in ("sum", "avg") for path in ("x", "n")]
    (group,) = (await editor.ok("aggregate", measures=measures))["groups"]
    assert group["sum(x)"] is None
    assert group["sum(n)"] == 2**60 + 1


async def test_a_description_tells_types_properties_tags_and_depth() -> None:
    editor = await tasks()
    described = await editor.ok("describe_tree")
    assert (described["nodes"], described["depth"]) == (5, 1)
    assert described["types"] == [{"payloadType": "Task", "count": 4}, {"payloadType": "Root", "count": 1}]
    assert described["tags"] == [{"tag": "x", "count": 2}]
    found = {one["path"]: (one["count"], one["kinds"]) for one in described["properties"]}
    assert found["hours"] == (3, {"number": 2, "string": 1})
    assert found["state"] == (4, {"string": 3, "null": 1})
    assert found["who"] == (2, {"array": 2})
    assert found["at.city"] == (2, {"string": 2})
    assert found["late"] == (2, {"boolean": 2})


VALUES = st.one_of(
    st.integers(-9, 9), st.sampled_from([0.5, 2.0, "x", "", True, None]), st.lists(st.integers(0, 2), max_size=2)
)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.fixed_dictionaries({}, optional={"g": VALUES, "v": VALUES}), min_size=1, max_size=12))
def test_figures_are_those_of_a_naive_count(payloads: list[dict[str, Any]]) -> None:
    anyio.run(_compare, payloads)


def flat(value: Any) -> list[Any]:
    return [] if value is None else [one for one in value if one is not None] if isinstance(value, list) else [value]


def mark(value: Any) -> str:
    return json.dumps(int(value) if isinstance(value, float) and value == int(value) else value)


async def _compare(payloads: list[dict[str, Any]]) -> None:
    editor = await tasks(payloads)
    measures = [{"op": "count"}, {"op": "distinct", "path": "v"}, {"op": "sum", "path": "v"}]
    answer = await editor.ok("aggregate", groupBy="g", measures=measures)
    keys = {mark(key) for one in payloads for key in flat(one.get("g")) or [None]}
    assert {mark(group["key"]) for group in answer["groups"]} == keys
    for group in answer["groups"]:
        inside = [one for one in payloads if mark(group["key"]) in {mark(key) for key in flat(one.get("g")) or [None]}]
        values = [value for one in inside for value in flat(one.get("v"))]
        numbers = [value for value in values if type(value) in (int, float)]
        assert group["count"] == len(inside)
        assert group["distinct(v)"] == len({mark(value) for value in values})
        assert group["sum(v)"] == pytest.approx(sum(numbers))
    described = {one["path"]: one["count"] for one in (await editor.ok("describe_tree"))["properties"]}
    assert described == {
        key: sum(key in one for one in payloads) for key in ("g", "v") if any(key in one for one in payloads)
    }
