"""Checking arguments against a tool's own JSON Schema before apcore does: every error at once, no value echoed."""

from typing import Any

from apcore.errors import SchemaValidationError
from jsonschema import Draft202012Validator
from mcp_types import Tool


class InputSchemas:
    """Validators, compiled once per tool."""

    def __init__(self) -> None:
        self._compiled: dict[str, tuple[Tool, Draft202012Validator]] = {}

    def check(self, tool: Tool, arguments: dict[str, Any]) -> None:
        known, validator = self._compiled.get(tool.name, (None, None))
        if known is not tool or validator is None:
            validator = Draft202012Validator(tool.input_schema)
            self._compiled[tool.name] = (tool, validator)
        errors = [
            {
                "path": "/".join(map(str, error.absolute_path)),
                "keyword": error.validator,
                "message": "Field required"
                if error.validator == "required"
                else f"must satisfy {error.validator} {error.validator_value!r:.100}",
            }
            for error in validator.iter_errors(arguments)
        ]
        if errors:
            raise SchemaValidationError(message="Input validation failed", errors=errors)
