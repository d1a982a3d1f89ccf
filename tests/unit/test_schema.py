"""SchemaConverter: schemas that stand on their own."""

import copy
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal
from urllib.parse import urljoin

import pytest
from apcore import ModuleDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema_specifications import REGISTRY as SPECIFICATIONS  # type: ignore[import-untyped]  # it has none
from pydantic import BaseModel, Field

from apcore_mcp.adapters.schema import SchemaConverter
from modules import CIRCULAR, Add, Sample, definition_of, registry_of

Json = dict[str, Any]


def described(inputs: dict[str, Any], outputs: dict[str, Any]) -> ModuleDescriptor:
    return ModuleDescriptor(
        module_id="m", name=None, description="", documentation=None, input_schema=inputs, output_schema=outputs
    )


def convert(schema: dict[str, Any]) -> dict[str, Any]:
    return SchemaConverter().convert_input_schema(described(schema, {}))


def convert_output(schema: dict[str, Any]) -> dict[str, Any]:
    return SchemaConverter().convert_output_schema(described({}, schema))


def chain(length: int) -> dict[str, Any]:
    """A schema whose references go `length` levels deep."""
    definitions: dict[str, Any] = {f"D{i}": {"$ref": f"#/$defs/D{i + 1}"} for i in range(1, length)}
    definitions[f"D{length}"] = {"type": "integer"}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/D1"}}, "$defs": definitions}


# FR-SCHEMA-001


@pytest.mark.requirement("FR-SCHEMA-001")
def test_a_pydantic_module_gives_an_object_schema_with_all_its_properties() -> None:
    descriptor = definition_of(registry_of({"add": Add()}), "add")
    schema = SchemaConverter().convert_input_schema(descriptor)
    assert schema["type"] == "object"
    assert schema["properties"]["a"]["type"] == schema["properties"]["b"]["type"] == "integer"
    assert schema["required"] == ["a", "b"]
    Draft202012Validator.check_schema(schema)


@pytest.mark.requirement("FR-SCHEMA-001", "FR-SCHEMA-002")
def test_nested_pydantic_models_are_inlined() -> None:
    class Point(BaseModel):
        x: int

    class Line(BaseModel):
        start: Point
        ends: list[Point]

    descriptor = definition_of(registry_of({"line": Sample(schema=Line, output=Line)}), "line")
    for schema in (
        SchemaConverter().convert_input_schema(descriptor),
        SchemaConverter().convert_output_schema(descriptor),
    ):
        assert "$defs" not in schema
        assert schema["properties"]["start"]["properties"]["x"]["type"] == "integer"
        assert schema["properties"]["ends"]["items"]["properties"]["x"]["type"] == "integer"


@pytest.mark.requirement("FR-SCHEMA-001", "FR-SCHEMA-003")
def test_an_empty_schema_becomes_an_object_without_properties() -> None:
    assert convert({}) == {"type": "object", "properties": {}}


@pytest.mark.requirement("FR-SCHEMA-001", "FR-SCHEMA-003")
def test_a_schema_with_properties_but_no_type_becomes_an_object() -> None:
    assert convert({"properties": {"x": {"type": "string"}}}) == {
        "type": "object",
        "properties": {"x": {"type": "string"}},
    }


@pytest.mark.requirement("FR-SCHEMA-001")
def test_title_and_required_are_preserved() -> None:
    schema = {"title": "Size", "type": "object", "properties": {"w": {"type": "integer"}}, "required": ["w"]}
    assert convert(schema) == schema


@pytest.mark.requirement("FR-SCHEMA-001", "FR-SCHEMA-002")
def test_a_circular_reference_is_refused_with_its_path() -> None:
    with pytest.raises(ValueError, match="Circular reference: A -> B -> A"):
        convert(CIRCULAR)


@pytest.mark.requirement("FR-SCHEMA-001", "FR-SCHEMA-002")
def test_a_definition_that_references_itself_is_refused_with_its_path() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/Tree"}}}
    with pytest.raises(ValueError, match="Circular reference: Tree -> Tree"):
        convert({"$ref": "#/$defs/Tree", "$defs": {"Tree": tree}})


@pytest.mark.requirement("FR-SCHEMA-001")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"me": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"items": {"$ref": "#"}}}},
    ],
)
def test_a_reference_to_the_root_is_circular(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Circular reference"):
        convert(schema)


@pytest.mark.requirement("FR-SCHEMA-001")
def test_a_reference_to_a_missing_definition_names_it() -> None:
    with pytest.raises(KeyError, match="Missing"):
        convert({"type": "object", "properties": {"x": {"$ref": "#/$defs/Missing"}}, "$defs": {"Other": {}}})


@pytest.mark.requirement("FR-SCHEMA-001", "FR-SCHEMA-002")
def test_references_are_followed_to_thirty_two_levels_and_no_further() -> None:
    assert convert(chain(32))["properties"]["x"] == {"type": "integer"}
    with pytest.raises(ValueError, match=r"(?i)maximum recursion depth .*exceeded"):
        convert(chain(33))


@pytest.mark.requirement("FR-SCHEMA-001")
def test_references_that_multiply_are_refused_instead_of_filling_the_memory() -> None:
    definitions = {
        f"D{i}": {"properties": {"l": {"$ref": f"#/$defs/D{i + 1}"}, "r": {"$ref": f"#/$defs/D{i + 1}"}}}
        for i in range(30)
    }
    with pytest.raises(ValueError, match="nodes"):
        convert({"properties": {"x": {"$ref": "#/$defs/D0"}}, "$defs": definitions | {"D30": {}}})


# FR-SCHEMA-002


@pytest.mark.requirement("FR-SCHEMA-002")
def test_a_schema_without_references_is_returned_without_its_empty_definitions() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    assert convert(schema | {"$defs": {}}) == schema


@pytest.mark.requirement("FR-SCHEMA-002")
@pytest.mark.parametrize("key", ["$defs", "definitions"])
def test_both_spellings_of_definitions_are_resolved_and_removed(key: str) -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": f"#/{key}/X"}}, key: {"X": {"type": "string"}}}
    assert convert(schema) == {"type": "object", "properties": {"x": {"type": "string"}}}


@pytest.mark.requirement("FR-SCHEMA-002")
@pytest.mark.parametrize("keyword", ["oneOf", "anyOf", "allOf"])
def test_every_branch_of_a_combination_is_resolved(keyword: str) -> None:
    branches = [{"$ref": "#/$defs/A"}, {"type": "null"}, {"$ref": "#/$defs/B"}]
    schema = {
        "type": "object",
        "properties": {"x": {keyword: branches}},
        "$defs": {"A": {"type": "string"}, "B": {"type": "integer"}},
    }
    assert convert(schema)["properties"]["x"] == {keyword: [{"type": "string"}, {"type": "null"}, {"type": "integer"}]}


@pytest.mark.requirement("FR-SCHEMA-002")
def test_a_reference_in_array_items_is_resolved() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
        "$defs": {"A": {"type": "string"}},
    }
    assert convert(schema)["properties"]["x"]["items"] == {"type": "string"}


@pytest.mark.requirement("FR-SCHEMA-002")
def test_definitions_inside_a_subschema_are_resolved_and_removed() -> None:
    inner = {"$ref": "#/properties/x/$defs/A", "$defs": {"A": {"type": "string"}}}
    assert convert({"type": "object", "properties": {"x": inner}})["properties"]["x"] == {"type": "string"}


@pytest.mark.requirement("FR-SCHEMA-002")
def test_keywords_beside_a_reference_are_kept() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/A", "description": "mine", "default": "d"}},
        "$defs": {"A": {"type": "string", "description": "theirs"}},
    }
    assert convert(schema)["properties"]["x"] == {"type": "string", "description": "mine", "default": "d"}


@pytest.mark.requirement("FR-SCHEMA-002")
def test_escaped_definition_names_are_resolved() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/Page~1Of%3Cint%3E"}},
        "$defs": {"Page/Of<int>": {"type": "integer"}},
    }
    assert convert(schema)["properties"]["x"] == {"type": "integer"}


@pytest.mark.requirement("FR-SCHEMA-002")
def test_each_use_of_a_definition_is_a_copy_of_its_own() -> None:
    definition: dict[str, Any] = {"type": "array", "items": {"enum": [1, 2]}, "default": [1], "examples": [[1]]}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/A"}, "y": {"$ref": "#/$defs/A"}},
        "$defs": {"A": definition},
    }
    before = copy.deepcopy(schema)
    properties = convert(schema)["properties"]
    properties["x"]["items"]["enum"].append(3)
    properties["x"]["default"].append(3)
    properties["x"]["examples"][0].append(3)
    assert properties["y"] == before["$defs"]["A"]
    assert schema == before


@pytest.mark.requirement("FR-SCHEMA-002")
@pytest.mark.parametrize("name", ["$ref", "$defs", "definitions", "default", "enum", "const", "examples"])
def test_a_property_may_be_named_like_a_keyword(name: str) -> None:
    schema = {
        "type": "object",
        "properties": {name: {"$ref": "#/$defs/A"}, "other": {"type": "integer"}},
        "$defs": {"A": {"type": "string"}},
    }
    assert convert(schema)["properties"] == {name: {"type": "string"}, "other": {"type": "integer"}}


@pytest.mark.requirement("FR-SCHEMA-002")
@pytest.mark.parametrize("keyword", ["default", "const"])
def test_data_that_looks_like_a_reference_stays_data(keyword: str) -> None:
    schema = {"type": "object", "properties": {"x": {keyword: {"$ref": "#/$defs/Nowhere"}}}}
    assert convert(schema) == schema


@pytest.mark.requirement("FR-SCHEMA-001")
@pytest.mark.parametrize("pointer", ["#/$defs/Missing", "#/properties/a/anyOf/7/Missing", "#/type/Missing", "#Missing"])
def test_a_reference_that_leads_nowhere_is_told_by_its_name(pointer: str) -> None:
    schema = {"type": "object", "properties": {"a": {"anyOf": [{}]}, "x": {"$ref": pointer}}}
    with pytest.raises(KeyError, match="Missing"):
        convert(schema)


@pytest.mark.requirement("FR-SCHEMA-002")
def test_a_reference_may_lead_through_a_list() -> None:
    a = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    schema = {"type": "object", "properties": {"a": a, "x": {"$ref": "#/properties/a/anyOf/0"}}}
    assert convert(schema)["properties"] == {"a": a, "x": {"type": "string"}}


@pytest.mark.requirement("FR-SCHEMA-002")
@pytest.mark.parametrize(
    "keyword",
    ["unevaluatedProperties", "unevaluatedItems", "additionalItems", "contentSchema", "additionalProperties", "not"],
)
def test_no_keyword_keeps_a_reference(keyword: str) -> None:
    schema = {"type": "object", "properties": {"x": {keyword: {"$ref": "#/$defs/A"}}}, "$defs": {"A": {"type": "null"}}}
    assert convert(schema) == {"type": "object", "properties": {"x": {keyword: {"type": "null"}}}}


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


@pytest.mark.requirement("FR-SCHEMA-002")
def test_a_tagged_union_names_no_definition_that_is_gone() -> None:
    schema = convert(Owner.model_json_schema())
    assert schema["properties"]["pet"]["discriminator"] == {"propertyName": "kind"}
    assert [branch["title"] for branch in schema["properties"]["pet"]["oneOf"]] == ["Cat", "Dog"]
    assert "$defs" not in str(schema)


# FR-SCHEMA-003


@pytest.mark.requirement("FR-SCHEMA-003")
@pytest.mark.parametrize(
    "schema", [{"type": "object", "properties": {}}, {"type": "object", "properties": {"x": {"type": "null"}}}]
)
def test_an_object_schema_stays_as_it_is(schema: dict[str, Any]) -> None:
    assert convert(schema) == schema


# FR-SCHEMA-005


@pytest.mark.requirement("FR-SCHEMA-005")
def test_an_empty_output_schema_stays_empty() -> None:
    assert convert_output({}) == {}


@pytest.mark.requirement("FR-SCHEMA-005")
def test_references_of_an_output_schema_are_inlined() -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}
    assert convert_output(schema) == {"type": "object", "properties": {"x": {"type": "string"}}}


@pytest.mark.requirement("FR-SCHEMA-005")
def test_a_circular_output_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="Circular reference"):
        convert_output(CIRCULAR)


# FR-SCHEMA-006


@pytest.mark.requirement("FR-SCHEMA-006")
@pytest.mark.parametrize(
    "field",
    [
        *({"type": kind} for kind in ("string", "integer", "number", "boolean", "array", "object", "null")),
        {"type": ["string", "null"]},
        {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "null"}}}}},
        {"type": "string", "enum": ["a", "b"]},
        {"const": 3},
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "email"},
        {"type": "integer", "default": 7},
        {"type": "string", "description": "what it is"},
        {"type": "string", "x-sensitive": True},
    ],
    ids=str,
)
def test_every_kind_of_field_passes_unchanged(field: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"x": field}}
    assert convert(schema) == schema


# Laws

_LEAVES = st.sampled_from(["string", "integer", "boolean", "null"]).map(lambda kind: {"type": kind})
_NAMES = st.sampled_from(["a", "b", "c", "items", "default"])


def _composed(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda p: {"type": "object", "properties": p}, st.dictionaries(_NAMES, children, max_size=3)),
        st.builds(lambda c: {"type": "array", "items": c}, children),
        st.builds(lambda k, c: {k: c}, st.sampled_from(["anyOf", "oneOf"]), st.lists(children, min_size=1, max_size=3)),
    )


@st.composite
def _acyclic_schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Schemas whose definitions refer only to earlier ones."""
    key = draw(st.sampled_from(["$defs", "definitions"]))
    definitions: dict[str, Any] = {}
    for name in ["A", "B", "C"][: draw(st.integers(0, 3))]:
        leaves = st.one_of(_LEAVES, *[st.just({"$ref": f"#/{key}/{known}"}) for known in definitions])
        definitions[name] = draw(st.recursive(leaves, _composed, max_leaves=4))
    leaves = st.one_of(_LEAVES, *[st.just({"$ref": f"#/{key}/{known}"}) for known in definitions])
    properties = draw(st.dictionaries(_NAMES, st.recursive(leaves, _composed, max_leaves=6), max_size=4))
    return {"type": "object", "properties": properties, key: definitions}


def _nodes(schema: Any) -> Any:
    yield schema
    for child in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _nodes(child)


_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "x"])),
    lambda c: st.one_of(st.lists(c, max_size=2), st.dictionaries(_NAMES, c, max_size=3)),
    max_leaves=6,
)


@pytest.mark.long
@pytest.mark.requirement("FR-SCHEMA-002")
@settings(max_examples=50)
@given(_acyclic_schemas())
def test_inlining_leaves_no_reference_and_never_touches_its_input(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    inlined = convert(schema)
    assert schema == before
    assert not any(isinstance(n, dict) and n.keys() & {"$ref", "$defs", "definitions"} for n in _nodes(inlined))
    assert convert(inlined) == inlined


@pytest.mark.requirement("FR-SCHEMA-002")
@settings(max_examples=50)
@given(_acyclic_schemas(), st.dictionaries(_NAMES, _VALUES, max_size=4))
def test_inlining_accepts_and_refuses_the_same_arguments(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    before = Draft202012Validator(schema).is_valid(arguments)
    assert Draft202012Validator(convert(schema)).is_valid(arguments) == before


# Every place for a schema, as the drafts themselves know them

DRAFTS: list[Any] = [Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator]
SHAPES: dict[str, Callable[[Json], Any]] = {
    "alone": lambda schema: schema,
    "in a list": lambda schema: [schema],
    "in a map": lambda schema: {"name": schema},
}


def keywords(draft: Any) -> set[str]:
    """Every keyword that the draft has, also through its vocabularies."""
    found = set(draft.META_SCHEMA["properties"])
    for part in draft.META_SCHEMA.get("allOf", ()):
        uri = urljoin(draft.META_SCHEMA["$id"], part["$ref"])
        found |= set(SPECIFICATIONS.contents(uri)["properties"])
    return found


def is_place(draft: Any, keyword: str, shape: Callable[[Json], Any]) -> bool:
    """Whether the draft takes a schema there, and refuses what is none."""
    try:
        draft.check_schema({keyword: shape({"type": "string"})})
    except SchemaError:
        return False
    try:
        draft.check_schema({keyword: shape({"type": 5})})
    except SchemaError:
        return True
    return False


PLACES = sorted(
    (draft.__name__, keyword, name)
    for draft in DRAFTS
    for keyword in keywords(draft)
    for name, shape in SHAPES.items()
    if is_place(draft, keyword, shape)
)


def references(value: Any) -> list[Any]:
    """Every `$ref` that is left, wherever."""
    if isinstance(value, list):
        return [found for each in value for found in references(each)]
    if not isinstance(value, dict):
        return []
    return [value[key] for key in ("$ref",) if key in value] + references(list(value.values()))


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
@pytest.mark.requirement("FR-SCHEMA-002")
def test_no_reference_is_left_wherever_a_draft_has_room_for_a_schema(place: tuple[str, str, str]) -> None:
    _, keyword, name = place
    shaped = SHAPES[name]({"$ref": "#/$defs/Part"})
    definitions = {"Part": {"type": "string", "title": "part"}}
    inlined = convert({"type": "object", "properties": {"x": {keyword: shaped}}, "$defs": definitions})
    assert references(inlined) == []
    if keyword not in ("$defs", "definitions"):  # what nobody refers to any more is left out
        assert inlined["properties"]["x"] == {keyword: SHAPES[name](definitions["Part"])}


def test_the_drafts_have_the_places_that_everybody_knows() -> None:
    known = {("Draft7Validator", "dependencies", "in a map"), ("Draft202012Validator", "prefixItems", "in a list")}
    assert known <= set(PLACES)
    assert len(PLACES) > 80


@pytest.mark.parametrize("keyword", ["$dynamicRef", "$recursiveRef"])
@pytest.mark.requirement("FR-SCHEMA-002")
def test_a_reference_that_only_a_validator_can_follow_is_refused(keyword: str) -> None:
    with pytest.raises(ValueError, match=re.escape(keyword)):
        convert({"type": "object", "properties": {"a": {keyword: "#"}}})
    named = {"type": "object", "properties": {keyword: {"type": "string"}}}
    assert convert(named) == named
