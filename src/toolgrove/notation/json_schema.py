"""JSON Schemas, compiled to validators."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def compiled(schema: Mapping[str, Any]) -> Any:
    """A validator that fetches nothing; ValueError says in one line what is wrong with the schema."""
    rust = import_module("jsonschema_rs")  # only those who check something pay for its import
    try:
        return rust.validator_for(dict(schema), offline=True)
    except rust.ValidationError as error:
        raise ValueError(f"is not a JSON Schema: {error.message}") from None
