"""What modules answer: as `json.dumps` writes it; what their schema refuses is told as that, without a value."""

from __future__ import annotations

import asyncio
import datetime
import json
import logging
from typing import Any

import pytest
from apcore import Executor
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from apcore_mcp.server.router import ExecutionRouter
from grove_kit import config
from mcp_text import text_of
from modules import Sample, registry_of
from toolgrove import Grove

Json = dict[str, Any]
SECRET = "sk-live-4242"
UNREADABLE = {"Failed to serialize module output", "Internal error occurred", "Output validation failed"}
KEYS = st.text(max_size=4) | st.integers() | st.booleans() | st.none() | st.floats()
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=6)
    | st.just(datetime.date(2026, 2, 15))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.just((1, 2)), inner, max_size=3),
    max_leaves=6,
)
RESULTS = st.dictionaries(KEYS, VALUES, max_size=3) | st.dictionaries(st.text(max_size=3), VALUES, max_size=3)


class Anything(BaseModel, extra="allow"):
    pass


def returning(value: Any, schema: Any, *, is_async: bool) -> Sample:
    async def later(inputs: Json, context: Any) -> Any:
        return value

    return Sample(later if is_async else lambda inputs, context: value, output=schema)


def through_the_bridge(module: Sample) -> tuple[str, bool]:
    """What a client of the bridge is told, and whether that is an error."""
    router = ExecutionRouter(Executor(registry_of({"sample.tool": module})))
    answer = asyncio.run(router.handle_call("sample.tool", {}))
    return text_of(answer), bool(answer.is_error)


def through_the_gateway(module: Sample) -> Json:
    """What an agent is told."""

    async def call() -> Json:
        settings = config(agents={"a": {"role": "editor", "tools": ["sample-tool"]}}, workspace={})
        async with Grove(settings, extensions=registry_of({"sample.tool": module})) as grove:
            return await (await grove.agent("a")).call("sample-tool")

    return asyncio.run(call())


def written(value: Any) -> Any:
    """What a client reads of a value; None if nobody can write it for him."""
    try:
        text = json.dumps(value, default=str, allow_nan=False, ensure_ascii=False)
        return json.loads(text.encode())
    except (TypeError, ValueError):
        return None


@given(RESULTS, st.sampled_from([{}, {"type": "object"}, Anything]), st.booleans())
@pytest.mark.requirement("FR-EXEC-002")
def test_a_client_reads_what_json_dumps_writes_or_that_it_cannot_be_written(
    value: Json, schema: Any, is_async: bool
) -> None:
    text, is_error = through_the_bridge(returning(value, schema, is_async=is_async))
    readable = written(value)
    if readable is None:
        assert is_error
        assert text in UNREADABLE
    else:
        assert not is_error, text
        assert json.loads(text) == readable


WHOLE = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | WHOLE | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(WHOLE | st.integers() | st.booleans() | st.none(), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=30)
@given(st.dictionaries(WHOLE | st.integers() | st.none(), PLAIN, max_size=3), st.booleans())
def test_an_agent_reads_the_same_and_nothing_that_another_client_could_not_read(value: Json, is_async: bool) -> None:
    answer = through_the_gateway(returning(value, {}, is_async=is_async))
    json.dumps(answer, ensure_ascii=False).encode()
    readable = written(value)
    if readable is None:
        assert (answer["error"]["code"], answer["error"]["reason"]) == ("internal", "bad_result")
    else:
        assert answer == readable


@pytest.mark.parametrize("value", [[1], "text", 5, (1, 2), {1}], ids=repr)
@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.requirement("FR-EXEC-007", "FR-ERROR-009")
def test_an_answer_that_is_no_object_is_a_fault_of_the_module(value: Any, is_async: bool) -> None:
    assert through_the_bridge(returning(value, {}, is_async=is_async)) == ("Internal error occurred", True)


class Scores(BaseModel):
    scores: dict[int, float]


@given(st.dictionaries(st.integers(), st.floats(allow_nan=False, allow_infinity=False), max_size=4))
@pytest.mark.requirement("FR-EXEC-002")
def test_a_model_whose_keys_are_no_strings_is_content_with_them(scores: dict[int, float]) -> None:
    text, is_error = through_the_bridge(returning({"scores": scores}, Scores, is_async=True))
    assert not is_error, text
    assert json.loads(text) == written({"scores": scores})


REFUSING: dict[str, tuple[Json, Any]] = {
    "type": ({"type": "integer"}, int),
    "enum": ({"enum": ["a"]}, None),
    "const": ({"const": "a"}, None),
    "pattern": ({"type": "string", "pattern": "^x"}, (str, Field(pattern="^x"))),
    "maxLength": ({"type": "string", "maxLength": 3}, (str, Field(max_length=3))),
    "not": ({"not": {"type": "string"}}, None),
    "anyOf": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, int | None),
    "object": ({"type": "object"}, dict[str, int]),
}
"""Schemas that no secret fits, as JSON Schema and as the type of a field."""


@given(
    st.sampled_from(sorted(REFUSING)),
    st.sampled_from(["field", "array", "map", "nested"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
@pytest.mark.requirement("NFR-SEC-002", "NFR-SEC-003", "FR-ERROR-002")
def test_an_answer_that_its_schema_refuses_is_no_input_error_and_repeats_no_value(
    keyword: str, place: str, as_model: bool, is_marked: bool, is_async: bool
) -> None:
    schema, kind = REFUSING[keyword]
    mark: Json = {"x-sensitive": True} if is_marked else {}
    output: Any
    value: Json
    if as_model and kind is not None:
        annotated = kind if isinstance(kind, tuple) else (kind, Field(json_schema_extra=mark))
        output, value = create_model("Output", token=annotated), {"token": SECRET}
    else:
        output, value = around(place, schema | mark)
    module = returning(value, output, is_async=is_async)
    with recorded() as lines:
        assert through_the_bridge(module) == ("Output validation failed", True)
        answer = through_the_gateway(module)
    assert (answer["error"]["code"], answer["error"]["reason"]) == ("internal", "module_error")
    assert SECRET not in f"{answer} {lines}"


def around(place: str, schema: Json) -> tuple[Json, Json]:
    """A schema of an object that holds the other one, and an answer that has the secret there."""
    match place:
        case "field":
            return {"type": "object", "properties": {"token": schema}}, {"token": SECRET}
        case "array":
            return {"type": "object", "properties": {"all": {"items": schema}}}, {"all": [SECRET]}
        case "map":
            return {"type": "object", "additionalProperties": schema}, {SECRET: SECRET}
    inner, value = around("field", schema)
    return {"type": "object", "properties": {"inner": inner}}, {"inner": value}


class recorded(logging.Handler):
    """What is logged meanwhile."""

    def __enter__(self) -> list[str]:
        self.lines: list[str] = []
        logging.getLogger().addHandler(self)
        return self.lines

    def __exit__(self, *about: object) -> None:
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))
