"""JSON Schemas, compiled to validators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def compiled(schema: Mapping[str, Any]) -> Any:
    """A validator that fetches nothing; ValueError says in one line what is wrong with the schema."""
    try:
        return jsonschema_rs.validator_for(dict(schema), offline=True)
    except jsonschema_rs.ValidationError as error:
        raise ValueError(f"is not a JSON Schema: {error.message}") from None
