"""An entry of `httpTools` that is one call."""

from __future__ import annotations

from toolgrove.config import HttpToolConfig
from toolgrove.config.http_tool import CHANGING
from toolgrove.pool.http.operation import HttpOperation, Refused
from toolgrove.pool.http.url import BadUrl, parse_template
from toolgrove.types import Schema


def read_single(name: str, config: HttpToolConfig) -> list[HttpOperation | Refused]:
    """The one operation of an entry."""
    try:
        url = parse_template(config.url or "")
    except BadUrl as problem:
        return [Refused(name=name, own_name=name, reason=f"httpTools.{name}.url: {problem}")]
    return [
        HttpOperation(
            name=name,
            own_name=name,
            entry=f"httpTools.{name}",
            method=config.method,
            url=url,
            description=config.description or f"{config.method} {url.origin.host}",
            input_schema=closed(config.input_schema),
            answer=config.output_schema,
            headers=config.headers,
            allow_private=config.allow_private,
            reads=config.reads is True,
            reads_if="" if config.method in CHANGING else f"httpTools.{name}.reads: true",
        )
    ]


def closed(schema: Schema) -> Schema:
    """The schema without room for undeclared arguments, unless it says otherwise itself."""
    if "additionalProperties" in schema or "unevaluatedProperties" in schema or "allOf" in schema or "$ref" in schema:
        return schema
    return {**schema, "additionalProperties": False}
