"""The body of an operation as one argument: JSON, a form, a form with files, a text, or one file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolgrove.pool.http.body import FILE_SCHEMA
from toolgrove.pool.http.openapi.document import OpenApiDocument
from toolgrove.pool.http.openapi.schema import Schemas
from toolgrove.pool.http.openapi.styles import JSON_MEDIA, query_style
from toolgrove.pool.http.openapi.unfit import Unfit
from toolgrove.pool.http.operation import Body, Encoding
from toolgrove.pool.http.parameter_style import Style

_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_TEXT = re.compile(r"text/.+|application/(?:[\w.+-]+\+)?(?:xml|yaml)|application/(?:x-)?(?:ndjson|yaml|graphql)")
_BYTES = "application/octet-stream"
_ANYTHING = "*/*"
_FILES: dict[str, Any] = {"type": "array", "items": FILE_SCHEMA}


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadBody:
    """A body, its schema for the agent, and what the document says about it."""

    body: Body
    schema: Any
    about: Mapping[str, Any]
    required: bool


def read_body(argument: str, document: OpenApiDocument, told: Mapping[str, Any], schemas: Schemas) -> ReadBody | None:
    """The body that the argument carries; None if it cannot be sent and need not be."""
    required = told.get("required") is True
    content = told.get("content")
    media = {
        str(name).partition(";")[0].strip().lower(): document.followed(one)
        for name, one in (content.items() if isinstance(content, Mapping) else ())
    }
    chosen = _chosen(media)
    if chosen is None:
        if required:
            raise Unfit(f"its body is {', '.join(sorted(media)) or 'of no type'}, which cannot be sent")
        return None
    inside: Mapping[str, Any] = media[chosen] if isinstance(media[chosen], Mapping) else {}
    plain = document.followed(inside.get("schema", {}))
    encoding = _encoding(chosen, plain)
    parts = _parts(document, inside)
    files: dict[str, Any] = {}
    if encoding == "multipart":
        files = _files(document, plain, parts)
    schema = {"text": {"type": "string"}, "file": FILE_SCHEMA}.get(encoding)
    if schema is None:
        schema = schemas.take(plain if files else inside.get("schema", {}))
    if files:
        schema = {**schema, "properties": {**schema["properties"], **files}}
    body = Body(
        argument=argument,
        content_type=_sent_as(chosen, encoding),
        encoding=encoding,
        files=tuple(sorted(files)),
        styles=_styles(parts) if encoding == "form" else (),
        types=_types(parts) if encoding == "multipart" else (),
    )
    return ReadBody(body=body, schema=schema, about=told, required=required)


def _chosen(media: Mapping[str, Any]) -> str | None:
    """The kind of body that is sent, where several are offered: the one that is easiest to write."""
    kinds = [name for name in media if not name.startswith("multipart/") or name == _MULTIPART]

    def rank(name: str) -> int:
        tests = (JSON_MEDIA.fullmatch(name), name == _FORM, name == _MULTIPART, _TEXT.fullmatch(name), name == _BYTES)
        return next((place for place, fits in enumerate(tests) if fits), len(tests))

    return min(kinds, key=rank, default=None)


def _encoding(media: str, schema: Any) -> Encoding:
    if JSON_MEDIA.fullmatch(media) or (media == _ANYTHING and not _is_file(schema)):
        return "json"
    if media in (_FORM, _MULTIPART):
        return "form" if media == _FORM else "multipart"
    return "text" if _TEXT.fullmatch(media) else "file"


def _sent_as(media: str, encoding: Encoding) -> str:
    """A type in place of a range such as `image/*`."""
    if "*" not in media:
        return media
    return {"json": "application/json", "text": "text/plain"}.get(encoding, _BYTES)


def _parts(document: OpenApiDocument, media: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What the document says about single properties of a form."""
    told = media.get("encoding")
    found = {name: document.followed(one) for name, one in told.items()} if isinstance(told, Mapping) else {}
    return {name: one for name, one in found.items() if isinstance(one, Mapping)}


def _styles(parts: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, Style], ...]:
    told = {name: part for name, part in parts.items() if "style" in part or "explode" in part}
    return tuple((name, query_style(f"{name!r} in its body", part, "form")) for name, part in sorted(told.items()))


def _types(parts: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    told = {name: part.get("contentType") for name, part in parts.items()}
    return tuple(
        (name, kind) for name, kind in sorted(told.items()) if isinstance(kind, str) and not re.search(r"[*,]", kind)
    )


def _files(document: OpenApiDocument, schema: Any, parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The properties of a form that are files, or lists of them, as an agent sends them."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    found: dict[str, Any] = {}
    for name, one in properties.items() if isinstance(properties, Mapping) else ():
        shapes = [document.followed(one), *_choices(document, document.followed(one))]
        items = [document.followed(shape.get("items")) for shape in shapes if isinstance(shape, Mapping)]
        if any(map(_is_file, items)):
            found[name] = _FILES
        elif any(map(_is_file, shapes)) or (not shapes[0] and _is_binary(parts.get(name, {}))):
            found[name] = FILE_SCHEMA
    return found


def _choices(document: OpenApiDocument, schema: Any) -> list[Any]:
    """What a schema may be instead: a file that may be null is written as a choice."""
    told = (schema.get("anyOf") or schema.get("oneOf")) if isinstance(schema, Mapping) else None
    return [document.followed(one) for one in told] if isinstance(told, list) else []


def _is_file(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    return schema.get("format") == "binary" or "contentMediaType" in schema or schema.get("contentEncoding") == "binary"


def _is_binary(part: Mapping[str, Any]) -> bool:
    kind = part.get("contentType")
    return isinstance(kind, str) and not JSON_MEDIA.fullmatch(kind) and not _TEXT.fullmatch(kind)
