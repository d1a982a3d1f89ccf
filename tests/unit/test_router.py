"""ExecutionRouter: one call through apcore's whole pipeline, whatever the module does."""

import asyncio
import datetime
import json
import logging
import math
import threading
import uuid
from pathlib import PurePosixPath
from typing import Any

import pytest
from apcore import ACL, ACLRule, Config, Executor, Middleware
from mcp_types import CallToolResult
from pydantic import BaseModel, Field

from apcore_mcp.server.router import ExecutionRouter
from mcp_text import text_of
from modules import Add, AsyncAdd, Sample, echo, registry_of

pytestmark = pytest.mark.anyio


async def call(module: Any, arguments: Any = None, **options: Any) -> CallToolResult:
    """Call the module through a router and an executor of its own."""
    executor = Executor(registry_of({"sample.tool": module}), **options)
    return await ExecutionRouter(executor).handle_call("sample.tool", {} if arguments is None else arguments)


async def output_of(module: Any, arguments: Any = None, **options: Any) -> Any:
    result = await call(module, arguments, **options)
    assert result.is_error is False, text_of(result)
    return json.loads(text_of(result))


async def error_of(module: Any, arguments: Any = None, **options: Any) -> str:
    result = await call(module, arguments, **options)
    assert result.is_error is True, text_of(result)
    return text_of(result)


def returns(value: Any) -> Sample:
    return Sample(lambda inputs, context: value)


def raises(error: BaseException) -> Sample:
    def execute(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        raise error

    return Sample(execute)


# FR-EXEC-001, 002: a result


@pytest.mark.requirement("FR-EXEC-001")
async def test_a_call_returns_the_output_as_json_text() -> None:
    result = await call(Add(), {"a": 1, "b": 2})
    assert result.is_error is False
    assert text_of(result) == '{"sum": 3}'


@pytest.mark.requirement("FR-EXEC-001")
async def test_empty_arguments_reach_the_module_as_an_empty_dict() -> None:
    assert await output_of(Sample(lambda inputs, context: {"inputs": inputs})) == {"inputs": {}}


@pytest.mark.requirement("FR-EXEC-001")
async def test_arguments_that_are_absent_are_empty() -> None:
    router = ExecutionRouter(Executor(registry_of({"sample.tool": Sample(lambda inputs, context: {"inputs": inputs})})))
    assert text_of(await router.handle_call("sample.tool", None)) == '{"inputs": {}}'


@pytest.mark.requirement("FR-EXEC-001")
async def test_nested_output_is_serialized_whole() -> None:
    nested = {"a": [{"b": {"c": [1, None, True, "ü", 1.5]}}]}
    assert await output_of(returns(nested)) == nested


@pytest.mark.requirement("FR-EXEC-002")
async def test_an_empty_output_is_an_empty_object() -> None:
    assert text_of(await call(returns({}))) == "{}"


@pytest.mark.requirement("FR-EXEC-002")
@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2026, 2, 15, 12, 30, tzinfo=datetime.UTC),
        datetime.date(2026, 2, 15),
        PurePosixPath("/out/resized.png"),
        uuid.UUID(int=1),
        b"bytes",
        {1},
        1j,
    ],
    ids=lambda value: type(value).__name__,
)
async def test_what_json_does_not_know_is_written_as_its_string(value: Any) -> None:
    assert await output_of(returns({"value": value})) == {"value": str(value)}


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("secret /etc/passwd")

    __repr__ = __str__


@pytest.mark.requirement("FR-EXEC-002", "FR-EXEC-007")
@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, "\ud800", Unprintable()],
    ids=["NaN", "inf", "-inf", "lone surrogate", "unprintable"],
)
async def test_what_cannot_be_json_at_all_is_a_failure_to_serialize(value: Any) -> None:
    assert await error_of(returns({"value": value})) == "Failed to serialize module output"


@pytest.mark.requirement("FR-EXEC-002", "FR-EXEC-007")
async def test_a_self_referencing_output_is_an_error() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    assert await error_of(returns(loop)) in {"Failed to serialize module output", "Internal error occurred"}


@pytest.mark.requirement("FR-EXEC-002", "FR-EXEC-007")
async def test_a_bottomless_output_is_an_error() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"d": deep}
    assert await error_of(returns(deep)) in {"Failed to serialize module output", "Internal error occurred"}


@pytest.mark.requirement("FR-EXEC-007")
async def test_an_output_beyond_sixteen_mebibytes_is_an_error_that_says_so() -> None:
    message = await error_of(returns({"x": "x" * (16 * 1024 * 1024)}))
    assert "the limit is 16777216" in message
    assert len(message) < 200


@pytest.mark.requirement("FR-EXEC-002")
async def test_a_large_output_below_the_limit_arrives_whole() -> None:
    assert await output_of(returns({"x": "x" * 8_000_000})) == {"x": "x" * 8_000_000}


@pytest.mark.requirement("FR-EXEC-007")
@pytest.mark.parametrize("value", [[1, 2], "text", 7, (1,), b"x", object()], ids=lambda value: type(value).__name__)
async def test_an_output_that_is_not_a_dict_is_an_error_without_details(value: Any) -> None:
    message = await error_of(returns(value))
    assert message in {"Internal error occurred", "Module error: MODULE_EXECUTE_ERROR", "Output validation failed"}


@pytest.mark.requirement("FR-EXEC-002")
async def test_no_output_is_an_empty_object() -> None:
    assert text_of(await call(returns(None))) == "{}"


# FR-EXEC-003, 005: the pipeline


class Recorder(Middleware):
    def __init__(self, seen: list[str]) -> None:
        super().__init__()
        self.seen = seen

    def before(self, module_id: str, inputs: dict[str, Any], context: Any) -> None:
        self.seen.append(f"before {module_id}")

    def after(self, module_id: str, inputs: Any, output: dict[str, Any], context: Any) -> dict[str, Any]:
        self.seen.append(f"after {module_id}")
        return {**output, "after": True}


@pytest.mark.requirement("FR-EXEC-003", "FR-EXEC-005")
async def test_middleware_runs_around_the_module_and_may_change_the_result() -> None:
    seen: list[str] = []

    def execute(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        seen.append("execute")
        return {"x": 1}

    module = Sample(execute)
    assert await output_of(module, middlewares=[Recorder(seen)]) == {"x": 1, "after": True}
    assert seen == ["before sample.tool", "execute", "after sample.tool"]


@pytest.mark.requirement("FR-EXEC-003", "FR-EXEC-005", "NFR-SEC-001", "FR-ERROR-003")
async def test_a_call_that_the_acl_denies_never_reaches_the_module() -> None:
    ran: list[bool] = []

    def execute(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        ran.append(True)
        return {}

    module = Sample(execute)
    deny = ACL([ACLRule(callers=["*"], targets=["sample.*"], effect="deny")], default_effect="allow")
    assert await error_of(module, acl=deny) == "Access denied"
    assert ran == []


@pytest.mark.requirement("FR-EXEC-003", "NFR-SEC-001")
async def test_a_call_that_the_acl_allows_runs() -> None:
    allow = ACL([ACLRule(callers=["*"], targets=["sample.*"], effect="allow")], default_effect="deny")
    assert await output_of(Add(), {"a": 1, "b": 1}, acl=allow) == {"sum": 2}


@pytest.mark.requirement("FR-EXEC-003")
async def test_input_is_validated_before_the_module_runs() -> None:
    message = await error_of(Add(), {"a": 1, "b": "two"})
    assert message.startswith("Input validation failed:\n- b: Input should be a valid integer (")


@pytest.mark.requirement("FR-EXEC-003")
async def test_output_is_validated_after_the_module_ran() -> None:
    class Output(BaseModel):
        sum: int

    module = Sample(lambda inputs, context: {"sum": "not a number"}, output=Output)
    assert await error_of(module) == "Output validation failed"


@pytest.mark.requirement("FR-EXEC-003")
async def test_a_module_without_schema_middleware_or_acl_just_runs() -> None:
    assert await output_of(Sample(echo), {"anything": [1]}) == {"anything": [1]}


@pytest.mark.requirement("FR-EXEC-003", "FR-ERROR-007")
async def test_a_circular_call_is_stopped() -> None:
    async def execute(inputs: dict[str, Any], context: Any) -> Any:
        return await context.executor.call_async("sample.tool", {}, context)

    message = await error_of(Sample(execute))
    assert message in {"Circular call detected", "Call frequency limit exceeded"}


@pytest.mark.requirement("FR-EXEC-005", "FR-ERROR-004")
@pytest.mark.parametrize("by", ["module", "executor"])
async def test_a_timeout_of_the_module_or_the_executor_applies(by: str) -> None:
    async def execute(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
        await asyncio.get_running_loop().create_future()
        return {}

    module = Sample(execute, timeout=20 if by == "module" else None)
    config = Config(data={"executor": {"default_timeout": 20}}) if by == "executor" else None
    assert await error_of(module, config=config) == "Module timed out after 20ms"


@pytest.mark.requirement("FR-EXEC-004")
@pytest.mark.parametrize("module", [Add(), AsyncAdd()], ids=["sync", "async"])
async def test_sync_and_async_modules_both_run(module: Any) -> None:
    assert await output_of(module, {"a": 2, "b": 3}) == {"sum": 5}


@pytest.mark.requirement("FR-EXEC-004")
async def test_a_sync_module_does_not_run_on_the_event_loop() -> None:
    module = Sample(lambda inputs, context: {"thread": threading.get_ident()})
    assert (await output_of(module))["thread"] != threading.get_ident()


# FR-EXEC-007: never an exception


@pytest.mark.requirement("FR-EXEC-007", "FR-ERROR-009", "FR-ERROR-011")
@pytest.mark.parametrize(
    "error",
    [RuntimeError("disk full"), KeyError("k"), OSError("gone"), RecursionError(), MemoryError()],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_module_raises_is_an_internal_error(error: Exception) -> None:
    assert await error_of(raises(error)) == "Internal error occurred"


@pytest.mark.requirement("FR-EXEC-007")
async def test_an_exception_that_cannot_be_printed_is_an_internal_error() -> None:
    class Evil(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

        __repr__ = __str__

    assert await error_of(raises(Evil())) == "Internal error occurred"


@pytest.mark.requirement("FR-EXEC-007")
async def test_a_module_that_exits_ends_its_call_and_not_the_server() -> None:
    assert await error_of(raises(SystemExit(3))) == "Internal error occurred"


@pytest.mark.requirement("FR-ERROR-001", "FR-EXEC-007")
@pytest.mark.parametrize("name", ["image.resize", "No-Such", "", "UPPER", "a" * 300, "a b", "ü", "../../etc"])
async def test_a_name_that_is_no_module_is_not_found(name: str) -> None:
    result = await ExecutionRouter(Executor(registry_of({"add": Add()}))).handle_call(name, {})
    assert result.is_error is True
    assert text_of(result) == f"Module not found: {name}"


@pytest.mark.requirement("FR-EXEC-007")
@pytest.mark.parametrize("arguments", [[], [1], "text", 7, 0, True, 1.5], ids=str)
async def test_arguments_that_are_not_an_object_are_refused(arguments: Any) -> None:
    router = ExecutionRouter(Executor(registry_of({"sample.tool": Sample(echo)})))
    result = await router.handle_call("sample.tool", arguments)
    assert result.is_error is True
    assert text_of(result) == "Invalid input: arguments must be an object"


@pytest.mark.requirement("FR-EXEC-007")
@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", object()], ids=["NaN", "inf", "surrogate", "object"])
async def test_arguments_that_json_cannot_carry_are_refused(value: Any) -> None:
    assert (await error_of(Sample(echo), {"x": value})).startswith("Invalid input: arguments must be plain JSON")


@pytest.mark.requirement("FR-EXEC-007")
async def test_bottomless_arguments_are_refused() -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    assert (await error_of(Sample(echo), {"x": deep})).startswith("Invalid input: ")


@pytest.mark.requirement("FR-EXEC-007")
async def test_arguments_that_contain_themselves_are_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert (await error_of(Sample(echo), {"x": loop})).startswith("Invalid input: ")


# Missing fields are named


class Point(BaseModel):
    x: int
    y: int


class Figure(BaseModel):
    name: str
    size: int
    start: Point
    points: list[Point] = []
    label: Point | None = None
    camel_case: int = Field(alias="camelCase", default=1)


FIGURE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "size": {"type": "integer"},
        "start": {"$ref": "#/$defs/Point"},
        "points": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
        "label": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]},
    },
    "required": ["name", "size", "start"],
    "$defs": {
        "Point": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
            "required": ["x", "y"],
        }
    },
}
WHOLE = {"name": "n", "size": 1, "start": {"x": 1, "y": 2}}


@pytest.mark.requirement("FR-ERROR-002")
@pytest.mark.parametrize("schema", [Figure, FIGURE], ids=["pydantic", "dict"])
@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ({}, ["name", "size", "start"]),
        ({"size": 1}, ["name", "start"]),
        ({**WHOLE, "start": {}}, ["start.x", "start.y"]),
        ({**WHOLE, "start": {"x": 1}}, ["start.y"]),
        ({**WHOLE, "points": [{"x": 1, "y": 1}, {}, {"y": 1}]}, ["points.1.x", "points.1.y", "points.2.x"]),
        ({"name": "n", "start": {"y": 1}}, ["size", "start.x"]),
    ],
    ids=["root", "some of the root", "nested", "one nested", "in an array", "root and nested"],
)
async def test_every_missing_field_is_named(schema: Any, arguments: dict[str, Any], missing: list[str]) -> None:
    message = await error_of(Sample(echo, schema=schema), arguments)
    first, *lines = message.split("\n")
    assert first == "Input validation failed:"
    assert sorted(line.partition(":")[0].removeprefix("- ") for line in lines) == missing
    assert all(line.endswith("(required)") or line.endswith("(missing)") for line in lines)


@pytest.mark.requirement("FR-ERROR-002")
async def test_a_missing_field_of_an_optional_object_is_named() -> None:
    message = await error_of(Sample(echo, schema=Figure), {**WHOLE, "label": {"x": 1}})
    assert "label.y: Field required" in message


@pytest.mark.requirement("FR-ERROR-002")
async def test_a_missing_field_goes_by_the_name_that_the_schema_gives_it() -> None:
    class Aliased(BaseModel):
        node_id: str = Field(alias="nodeId")

    assert "- nodeId: Field required" in await error_of(Sample(echo, schema=Aliased), {})


# FR-LOG: what the log says of a call


@pytest.mark.requirement("FR-LOG-002", "FR-LOG-004")
async def test_a_call_is_logged_by_name(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "apcore_mcp")
    await call(Add(), {"a": 1, "b": 2})
    records = [record for record in caplog.records if record.message == "Tool call: sample.tool"]
    assert [record.levelname for record in records] == ["DEBUG"]
    assert records[0].name == "apcore_mcp.server.router"


@pytest.mark.requirement("FR-LOG-003")
async def test_a_module_error_is_logged_with_type_and_message(caplog: pytest.LogCaptureFixture) -> None:
    await call(Add(), {"a": "x", "b": 2})
    record = next(record for record in caplog.records if record.name.startswith("apcore_mcp"))
    assert record.levelname == "ERROR"
    assert record.message.startswith("Tool call error: sample.tool - SchemaValidationError: Input validation failed")
    assert not record.exc_info


@pytest.mark.requirement("FR-LOG-003", "FR-ERROR-009")
async def test_an_unexpected_exception_is_logged_with_its_stack_trace(caplog: pytest.LogCaptureFixture) -> None:
    await call(raises(RuntimeError("disk full")))
    record = next(record for record in caplog.records if record.name.startswith("apcore_mcp"))
    assert record.levelname == "ERROR"
    assert record.message.startswith("Tool call error: sample.tool - ")
    assert "RuntimeError" in record.message
    assert "disk full" in record.message
    assert "Traceback" in caplog.text
    assert "in execute" in caplog.text


@pytest.mark.requirement("FR-LOG-002")
async def test_a_hostile_name_stays_on_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "apcore_mcp")
    await ExecutionRouter(Executor(registry_of({}))).handle_call("x\nERROR forged\x1b[31m" + "y" * 10_000, {})
    for record in caplog.records:
        if record.name.startswith("apcore_mcp"):
            assert "\n" not in record.message
            assert "\x1b" not in record.message
            assert len(record.message) < 1_000
