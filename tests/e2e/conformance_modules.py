"""The conformance suite's tools, as far as an apcore module can be them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from apcore import Registry

from apcore_mcp import elicit, report_progress

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADER_SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "priority": {"type": "integer", "x-mcp-header": "Priority"},
        "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
    },
}

Run = Callable[[dict[str, Any], Any], Awaitable[dict[str, Any]]]
registry = Registry()


def module(schema: dict[str, Any] | None = None, name: str | None = None) -> Callable[[Run], Run]:
    """Register a coroutine function as an apcore module of its own name."""

    def decorate(run: Run) -> Run:
        class Scripted:
            description = (run.__doc__ or run.__name__).strip()
            input_schema = schema or {"type": "object", "properties": {}}
            output_schema: ClassVar[dict[str, Any]] = {}

            async def execute(self, inputs: dict[str, Any], context: Any) -> dict[str, Any]:
                return await run(inputs, context)

        registry.register(name or run.__name__, Scripted())
        return run

    return decorate


@module()
async def test_simple_text(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Returns text."""
    return {"text": "This is a simple text response for testing."}


@module()
async def test_error_handling(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Always fails."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@module()
async def test_tool_with_progress(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Reports progress."""
    for progress in (0, 50, 100):
        await report_progress(context, progress, 100)
        await asyncio.sleep(0.05)
    return {"done": True}


@module({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]})
async def test_elicitation(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Asks for a user name and an address."""
    fields = {"username": {"type": "string"}, "email": {"type": "string"}}
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"response": await elicit(context, inputs["message"], schema)}


@module()
async def test_elicitation_sep1034_defaults(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Asks with default values."""
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return {"response": await elicit(context, "Check these", {"type": "object", "properties": fields})}


@module()
async def test_elicitation_sep1330_enums(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Asks with every kind of enumeration."""
    plain = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{name} Option"} for n, name in enumerate(("First", "Second", "Third"), 1)
    ]
    names = ["Option One", "Option Two", "Option Three"]
    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return {"response": await elicit(context, "Choose", {"type": "object", "properties": fields})}


@module()
async def test_input_required_result_elicitation(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Asks for a name."""
    answer = await elicit(context, "What is your name?", NAME)
    return {"text": f"Hello, {(answer or {}).get('name', 'stranger')}!"}


@module()
async def test_input_required_result_request_state(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Asks for a confirmation."""
    return {"text": "state-ok", "answer": await elicit(context, "Please confirm", OK)}


@module()
async def test_input_required_result_tampered_state(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Asks for a confirmation."""
    return {"answer": await elicit(context, "Please confirm", OK)}


@module()
async def test_input_required_result_multi_round(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Asks twice."""
    color = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    name = await elicit(context, "Step 1: What is your name?", NAME)
    return {"name": name, "color": await elicit(context, "Step 2: What is your favorite color?", color)}


@module()
async def test_streaming_elicitation(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Reports and asks."""
    await report_progress(context, 1, 2)
    return {"answer": await elicit(context, "What is your name?", NAME)}


@module()
async def test_trigger_tool_change(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Changes the list of tools: a module comes, or goes again."""
    if registry.get("test_transient") is None:
        module(name="test_transient")(test_simple_text)
    else:
        registry.unregister("test_transient")
    return {"changed": True}


@module(SCHEMA_2020_12)
async def json_schema_2020_12_tool(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Tool with JSON Schema 2020-12 features"""
    return inputs


@module(HEADER_SCHEMA)
async def test_custom_headers(inputs: dict[str, Any], context: Any) -> dict[str, Any]:
    """Arguments that are mirrored into headers."""
    return inputs
