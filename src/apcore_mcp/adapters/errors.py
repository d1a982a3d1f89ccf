"""What a client is told when a call fails: enough to act on, nothing about the inside."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from apcore.errors import (
    ACLDeniedError,
    CallDepthExceededError,
    CallFrequencyExceededError,
    CircularCallError,
    InvalidInputError,
    ModuleError,
    ModuleExecuteError,
    ModuleNotFoundError,
    ModuleTimeoutError,
    SchemaValidationError,
)
from jsonschema import Draft202012Validator
from mcp_types import CallToolResult

from apcore_mcp.adapters.sensitivity import may_be_sensitive
from apcore_mcp.modules import Json
from mcp_serve.sdk_forms import error_result


def is_unexpected(error: BaseException) -> bool:
    """Whether this is a fault of the module's code rather than an error that apcore defines."""
    fault = error.cause if isinstance(error, ModuleExecuteError) else error
    return not isinstance(fault, ModuleError)


class ErrorMapper:
    """Turns any exception into a `CallToolResult` with `is_error`."""

    def to_mcp_error(self, error: BaseException, schema: Json | None = None, arguments: Any = None) -> CallToolResult:
        """Map an error; the tool's schema and the call's arguments name the fields that are missing."""
        text = "Internal error occurred"
        with suppress(Exception):  # what a module raises may hold anything
            if isinstance(error, SchemaValidationError):
                text = _validation_text(error, schema or {}, arguments)
            elif isinstance(error, ModuleError) and not is_unexpected(error):
                text = _module_error_text(error)
        return error_result(text.encode(errors="replace").decode())


def _module_error_text(error: ModuleError) -> str:
    match error:
        case ModuleNotFoundError():
            return f"Module not found: {error.details.get('module_id', '')}"
        case ACLDeniedError():
            return "Access denied"
        case ModuleTimeoutError():
            return f"Module timed out after {error.details.get('timeout_ms')}ms"
        case InvalidInputError() if error.details.get("code") == "STREAM_CHUNK_NOT_OBJECT":
            return "Output validation failed"
        case InvalidInputError():
            return f"Invalid input: {error.message}"
        case CallDepthExceededError():
            return "Call depth limit exceeded"
        case CircularCallError():
            return "Circular call detected"
        case CallFrequencyExceededError():
            return "Call frequency limit exceeded"
        case _:
            return f"Module error: {error.code}"


def _validation_text(error: SchemaValidationError, schema: Json, arguments: Any) -> str:
    if error.message.startswith("Output"):
        return "Output validation failed"
    missing = _missing_fields(schema, arguments)
    problems = [_problem(entry, schema, missing) for entry in error.details.get("errors") or ()]
    if not problems:
        return "Input validation failed"
    return "\n- ".join(["Input validation failed:", *problems])


def _problem(entry: Any, schema: Json, missing: dict[str, list[str]]) -> str:
    """One violation in words; what apcore calls its facts differs from version to version."""
    facts = entry if isinstance(entry, Mapping) else getattr(entry, "__dict__", {})
    code = str(facts.get("code") or facts.get("keyword") or facts.get("constraint") or "invalid")
    path = str(facts.get("field") or facts.get("path") or "").strip("/").replace("/", ".")
    message = facts.get("message", "invalid")
    if code in ("required", "missing"):
        if missing.get(path):  # since 0.32 the path is that of the parent
            path = missing[path].pop(0)
    elif may_be_sensitive(schema, path):
        message = "invalid value"
    return f"{path or 'input'}: {message} ({code})"


def _missing_fields(schema: Json, arguments: Any) -> dict[str, list[str]]:
    """Dotted paths of objects, and of the required fields that each lacks."""
    found: dict[str, list[str]] = {}
    errors = list(Draft202012Validator(schema).iter_errors(arguments))
    for error in errors:  # grows while it is walked: branches have errors of their own
        errors += error.context or ()
        if error.validator == "required":
            parents = [str(step) for step in error.absolute_path]
            lacking = [name for name in error.validator_value if name not in error.instance]
            found[".".join(parents)] = [".".join([*parents, name]) for name in lacking]
    return found
