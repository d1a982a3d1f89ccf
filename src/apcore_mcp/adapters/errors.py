"""What a client is told when a call fails: enough to act on, nothing about the inside."""

from collections.abc import Callable, Mapping
from typing import Any

from apcore import errors as apcore_errors
from apcore.errors import ModuleError, ModuleExecuteError, SchemaValidationError
from jsonschema import Draft202012Validator
from mcp_types import CallToolResult, TextContent

from apcore_mcp.modules import Json

_TEXTS: dict[type[ModuleError], Callable[[Any], str]] = {
    apcore_errors.ModuleNotFoundError: lambda error: f"Module not found: {error.details.get('module_id', '')}",
    apcore_errors.ACLDeniedError: lambda error: "Access denied",
    apcore_errors.ModuleTimeoutError: lambda error: f"Module timed out after {error.details.get('timeout_ms')}ms",
    apcore_errors.InvalidInputError: lambda error: f"Invalid input: {error.message}",
    apcore_errors.CallDepthExceededError: lambda error: "Call depth limit exceeded",
    apcore_errors.CircularCallError: lambda error: "Circular call detected",
    apcore_errors.CallFrequencyExceededError: lambda error: "Call frequency limit exceeded",
    ModuleError: lambda error: f"Module error: {error.code}",
    BaseException: lambda error: "Internal error occurred",  # type: ignore[dict-item]
}


def error_result(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def is_unexpected(error: BaseException) -> bool:
    """Whether this is a fault of the module's code rather than an error that apcore defines."""
    fault = error.cause if isinstance(error, ModuleExecuteError) else error
    return not isinstance(fault, ModuleError)


class ErrorMapper:
    """Turns any exception into a `CallToolResult` with `is_error`."""

    def to_mcp_error(self, error: BaseException, schema: Json | None = None, arguments: Any = None) -> CallToolResult:
        """Map an error; the tool's schema and the call's arguments name the fields that are missing."""
        if isinstance(error, SchemaValidationError):
            return error_result(_validation_text(error, schema or {}, arguments))
        shown = RuntimeError() if is_unexpected(error) else error
        return error_result(next(text(error) for kind, text in _TEXTS.items() if isinstance(shown, kind)))


def _validation_text(error: SchemaValidationError, schema: Json, arguments: Any) -> str:
    if error.message.startswith("Output"):
        return "Output validation failed"
    lines = ["Input validation failed:"]
    missing = _missing_fields(schema, arguments)
    for entry in error.details.get("errors") or ():
        facts = entry if isinstance(entry, Mapping) else vars(entry)
        code = str(facts.get("code") or facts.get("keyword") or facts.get("constraint") or "invalid")
        path = str(facts.get("field") or facts.get("path") or "").strip("/").replace("/", ".")
        message = facts.get("message", "invalid")
        if code in ("required", "missing"):  # since 0.32 the path is that of the parent
            path = missing[path].pop(0) if missing.get(path) else path
        elif _is_sensitive(schema, path):
            message = "invalid value"
        lines.append(f"{path or 'input'}: {message} ({code})")
    return "\n- ".join(lines) if len(lines) > 1 else "Input validation failed"


def _missing_fields(schema: Json, arguments: Any) -> dict[str, list[str]]:
    """Dotted paths of objects, and of the required fields that each lacks."""
    found: dict[str, list[str]] = {}
    errors = list(Draft202012Validator(schema).iter_errors(arguments))
    for error in errors:
        errors += error.context or ()
        if error.validator == "required":
            parents = [str(step) for step in error.absolute_path]
            names = [".".join([*parents, name]) for name in error.validator_value if name not in error.instance]
            found[".".join(parents)] = names
    return found


def _is_sensitive(schema: Json, path: str) -> bool:
    """Whether a message about this field might repeat what must not be repeated."""
    for step in path.split(".") if path else ():
        schema = (schema.get("items") if step.isdigit() else schema.get("properties", {}).get(step)) or {}
    return "x-sensitive" in str(schema)
