"""What a client is told when a call fails: enough to act on, nothing about the inside."""

from collections.abc import Iterator, Mapping
from typing import Any

from apcore import errors as apcore_errors
from apcore.errors import ModuleError
from mcp_types import CallToolResult, TextContent

INTERNAL = "Internal error occurred"
_MISSING = frozenset({"required", "missing"})
_FIXED_TEXTS: dict[type[ModuleError], str] = {
    apcore_errors.ACLDeniedError: "Access denied",
    apcore_errors.CallDepthExceededError: "Call depth limit exceeded",
    apcore_errors.CircularCallError: "Circular call detected",
    apcore_errors.CallFrequencyExceededError: "Call frequency limit exceeded",
}


def error_result(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def is_unexpected(error: BaseException) -> bool:
    """Whether this is a fault of the module's code rather than an error that apcore defines."""
    if isinstance(error, apcore_errors.ModuleExecuteError):
        return not isinstance(error.cause, ModuleError)
    return not isinstance(error, ModuleError)


class ErrorMapper:
    """Turns any exception into a `CallToolResult` with `is_error`."""

    def to_mcp_error(
        self,
        error: BaseException,
        *,
        schema: Mapping[str, Any] | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Map an error; the tool's schema and the call's arguments name the fields that are missing."""
        return error_result(self._text(error, schema or {}, arguments or {}))

    def _text(self, error: BaseException, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
        if is_unexpected(error) or not isinstance(error, ModuleError):
            return INTERNAL
        for kind, text in _FIXED_TEXTS.items():
            if isinstance(error, kind):
                return text
        match error:
            case apcore_errors.ModuleNotFoundError():
                return f"Module not found: {error.details.get('module_id', '')}"
            case apcore_errors.SchemaValidationError():
                if error.message.startswith("Output"):
                    return "Output validation failed"
                lines = _field_lines(error.details.get("errors") or (), schema, arguments)
                return "\n- ".join(["Input validation failed:", *lines]) if lines else "Input validation failed"
            case apcore_errors.ModuleTimeoutError():
                return f"Module timed out after {error.details.get('timeout_ms')}ms"
            case apcore_errors.InvalidInputError():
                return f"Invalid input: {error.message}"
        return f"Module error: {error.code}"


def _field_lines(entries: Any, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    missing: dict[str, Iterator[str]] = {}
    lines = []
    for entry in entries:
        facts = entry if isinstance(entry, Mapping) else vars(entry)
        code = str(facts.get("code") or facts.get("keyword") or facts.get("constraint") or "invalid")
        path = str(facts.get("field") or facts.get("path") or "").strip("/").replace("/", ".")
        if code in _MISSING:  # apcore 0.32 gives the parent's path; older ones name the field itself
            names = missing.setdefault(path, _missing_names(path, schema, arguments))
            path = next(names, path)
        lines.append(f"{path or 'input'}: {facts.get('message', 'invalid')} ({code})")
    return lines


def _missing_names(path: str, schema: Mapping[str, Any], arguments: Any) -> Iterator[str]:
    """Dotted names of the required properties that the object at `path` lacks."""
    schemas: list[Any] = [schema]
    for step in path.split(".") if path else ():
        schemas = [child for branch in _branches(schemas) if (child := _child(branch, step)) is not None]
        if isinstance(arguments, Mapping):
            arguments = arguments.get(step)
        elif isinstance(arguments, list) and step.isdigit() and int(step) < len(arguments):
            arguments = arguments[int(step)]
    if isinstance(arguments, Mapping):
        names = dict.fromkeys(name for branch in _branches(schemas) for name in branch.get("required", ()))
        for name in names:
            if name not in arguments:
                yield f"{path}.{name}" if path else name


def _branches(schemas: list[Any]) -> Iterator[Mapping[str, Any]]:
    for schema in schemas:
        if isinstance(schema, Mapping):
            yield schema
            for key in ("anyOf", "oneOf", "allOf"):
                yield from _branches(schema.get(key, []))


def _child(schema: Mapping[str, Any], step: str) -> Any:
    properties = schema.get("properties") or {}
    return properties.get(step, schema.get("items") if step.isdigit() else None)
