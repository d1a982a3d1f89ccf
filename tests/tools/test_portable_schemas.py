"""Our own tools' schemas can be read by clients that know little of JSON Schema, and still refuse what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from grove_kit import config, sample
from toolgrove import Grove
from toolgrove.types import ToolSpec

pytestmark = pytest.mark.anyio
TYPES = {"string", "number", "integer", "boolean", "null", "object", "array"}
DEEPEST = 8
"""Levels of schemas in each other; a client that makes a type of each is done soon."""


async def built_in() -> tuple[ToolSpec, ...]:
    async with Grove(config()) as grove:
        return (await grove.agent("editor")).tools


def problems(schema: Mapping[str, Any], where: str, room: int = DEEPEST) -> Iterator[str]:
    """What a client may stumble over; only the items of a list of anything may be of any type."""
    if room == 0:
        yield f"{where} is nested too deeply"
        return
    for keyword in ("$ref", "$defs", "definitions", "$dynamicRef", "allOf", "oneOf", "not", "if"):
        if keyword in schema:
            yield f"{where} has {keyword}"
    branches = schema.get("anyOf", [])
    kind = schema.get("type")
    if not branches and not TYPES.issuperset(kind if isinstance(kind, list) else [kind]):
        yield f"{where} has no type"
    if kind == "array" and "items" not in schema:
        yield f"{where} does not say what its items are"
    for at, branch in enumerate(branches):
        yield from problems(branch, f"{where}|{at}", room - 1)
    for name, inner in schema.get("properties", {}).items():
        yield from problems(inner, f"{where}.{name}", room - 1)
    for keyword in ("items", "additionalProperties"):
        inner = schema.get(keyword)
        if isinstance(inner, dict) and inner != {}:
            yield from problems(inner, f"{where}.{keyword}", room - 1)


def lists_of_types(schema: Any, where: str) -> Iterator[str]:
    """Where a type is a list of types, which some clients cannot make a type of."""
    if isinstance(schema, dict):
        if isinstance(schema.get("type"), list):
            yield where
        for name, inner in schema.items():
            yield from lists_of_types(inner, f"{where}.{name}")
    elif isinstance(schema, list):
        for inner in schema:
            yield from lists_of_types(inner, where)


async def test_every_schema_of_ours_is_portable() -> None:
    specs = await built_in()
    assert len(specs) > 50
    found = [
        problem
        for spec in specs
        for side, schema in (("in", spec.input_schema), ("out", spec.output_schema))
        for problem in problems(schema, f"{spec.name} {side}")
    ]
    assert found == []
    assert [place for spec in specs for place in lists_of_types(spec.input_schema, spec.name)] == []


LEAF = {"path": "status", "op": "eq", "value": "done"}


def nested(levels: int) -> dict[str, Any]:
    return LEAF if levels == 0 else {"and": [nested(levels - 1)]}


@pytest.mark.parametrize(
    "value", ["x", 1, 1.5, True, None, {"a": [1]}, [1, 2], ["a"], ["a", 1, None], [[1], [{"b": 2}]]]
)
async def test_a_value_may_be_any_json(value: Any) -> None:
    _, editor = await sample()
    await editor.ok("update_payload_property", nodeId="kitchen", propertyName="odd", newValue=value)
    leaf = {"path": "odd", "op": "eq", "value": value}
    for predicates in (leaf, [leaf], {"or": [leaf, {"and": [leaf]}]}):
        found = await editor.ok("search_advanced", rootId="root", predicates=predicates)
        assert [node["nodeId"] for node in found["items"]] in (["kitchen"], []), predicates
    assert [node["nodeId"] for node in (await editor.ok("search", rootNodeId="root", filters=[leaf]))["items"]]


async def test_groups_nest_as_deep_as_is_said() -> None:
    _, editor = await sample()
    await editor.ok("search_advanced", rootId="root", predicates=nested(15))
    error = await editor.refused("search_advanced", rootId="root", predicates=nested(16))
    assert error["reason"] == "predicate"


@pytest.mark.parametrize(
    ("predicates", "path", "words"),
    [
        ({"path": "a", "op": "like", "value": 1}, "predicates.op", "eq, contains, gt, lt, between"),
        ([{"path": "a", "op": "like", "value": 1}], "predicates[0].op", "like"),
        ({"path": "a", "op": "contain", "value": 1}, "predicates.op", "Did you mean 'contains'?"),
        ({"or": [LEAF, {"path": "a", "op": "eq"}]}, "predicates.or[1]", "'value' is missing"),
        ({"or": [LEAF, {**LEAF, "not": True}]}, "predicates.or[1]", "'not' is not known"),
        ({"or": [LEAF, "status = done"]}, "predicates.or[1]", "a condition is an object"),
        ({"or": []}, "predicates", "a list of conditions"),
        ({"and": [LEAF], "or": [LEAF]}, "predicates", "alone"),
        ({"and": [{"path": "", "op": "eq", "value": 1}]}, "predicates.and[0].path", "dotted property path"),
        ([{**LEAF, "value": 1, "x": 2}], "predicates[0]", "'x'"),
        (7, "predicates", "anyOf"),
    ],
)
async def test_a_wrong_condition_is_refused_by_its_place(predicates: Any, path: str, words: str) -> None:
    _, editor = await sample()
    error = await editor.refused("search_advanced", rootId="root", predicates=predicates)
    assert (error["code"], error["reason"], error["path"]) == ("invalid_argument", "schema", path)
    assert words in error["message"]
    if isinstance(predicates, dict):
        error = await editor.refused("update_nodes", filter=predicates, patch={"a": 1})
        assert error["path"] == path.replace("predicates", "filter")
