"""The parameters and the body of an operation as the arguments of a tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgrove.config.http_tool import may_be_argument, overrides_method
from toolgrove.pool.http.body import FILE_SCHEMA
from toolgrove.pool.http.openapi.document import OpenApiDocument
from toolgrove.pool.http.openapi.schema import Schemas
from toolgrove.pool.http.operation import Body, Encoding, Input, Place
from toolgrove.pool.http.parameter_style import PathStyle, Style

_ARGUMENT = re.compile(r"[^A-Za-z0-9_.-]")
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json")
_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_TEXT = re.compile(r"text/[\w.+-]+|application/(?:[\w.+-]+\+)?(?:xml|yaml)|application/(?:x-)?(?:ndjson|yaml|graphql)")
_BYTES = "application/octet-stream"
_STYLES: dict[str, Style] = {"form": "spread", "spaceDelimited": "space", "pipeDelimited": "pipe", "deepObject": "deep"}
_PATH_STYLES: dict[str, PathStyle] = {"simple": "simple", "label": "label", "matrix": "matrix"}


class Unfit(ValueError):
    """Why an operation cannot be a tool."""


@dataclass(slots=True)
class Signature:
    """The arguments of an operation, as they are gathered."""

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    body: Body | None = None

    def schema(self, defs: Mapping[str, Any]) -> dict[str, Any]:
        """The input schema; nothing else is taken."""
        whole: dict[str, Any] = {
            "type": "object",
            "properties": self.properties,
            "required": self.required,
            "additionalProperties": False,
        }
        return {**whole, "$defs": dict(defs)} if defs else whole


def signature(
    document: OpenApiDocument, shared: Any, operation: Mapping[str, Any], schemas: Schemas, given: frozenset[str]
) -> Signature:
    """The arguments of an operation; `given` names the headers that the operator sets."""
    whole = Signature()
    for parameter in _parameters(document, shared, operation.get("parameters")):
        _add(whole, parameter, schemas, given)
    _add_body(whole, document, document.followed(operation.get("requestBody")), schemas)
    return whole


def _parameters(document: OpenApiDocument, *lists: Any) -> Iterator[Mapping[str, Any]]:
    """The parameters; those of the operation replace those that its path shares."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for one in lists:
        for parameter in one if isinstance(one, list) else ():
            parameter = document.followed(parameter)
            if not isinstance(parameter, Mapping) or not isinstance(parameter.get("name"), str):
                raise Unfit("a parameter has no name")
            found[str(parameter.get("in")), parameter["name"]] = parameter
    yield from found.values()


def _add(whole: Signature, parameter: Mapping[str, Any], schemas: Schemas, given: frozenset[str]) -> None:
    place, wire = parameter.get("in"), parameter["name"]
    required = parameter.get("required") is True or place == "path"
    barred = place == "header" and (not may_be_argument(wire) or wire.casefold() in given)
    if place == "cookie" or barred or overrides_method(wire):
        needed = "cookie" if place == "cookie" else wire.casefold()
        if required and needed not in given:
            raise Unfit(f"it needs the {place} {wire!r}, which never comes from an agent: set it under headers")
        return
    if place not in ("path", "query", "header", "querystring"):
        raise Unfit(f"parameter {wire!r} stands in {place!r}, which is not known")
    style, path_style, explode = _styles(parameter, place)
    schema = parameter.get("schema", {})
    content = parameter.get("content")
    if isinstance(content, Mapping) and len(content) == 1:
        [(media, inside)] = content.items()
        style = "json" if _JSON.fullmatch(media) else "spread" if place == "querystring" else "repeat"
        schema = inside.get("schema", {}) if isinstance(inside, Mapping) else {}
    if place == "querystring" and style != "spread":
        raise Unfit(f"parameter {wire!r} is a whole query in a form that cannot be sent")
    argument = _free(whole, wire, place)
    whole.properties[argument] = _told(schemas.take(schema), parameter)
    whole.inputs.append(
        Input(argument=argument, wire=wire, place=_place(place), style=style, path_style=path_style, explode=explode)
    )
    if required:
        whole.required.append(argument)


def _place(text: str) -> Place:
    return "path" if text == "path" else "header" if text == "header" else "query"


def _styles(parameter: Mapping[str, Any], place: str) -> tuple[Style, PathStyle, bool]:
    """How lists and objects are written: in a query, in a path, and whether each item stands for itself."""
    in_query = place in ("query", "querystring")
    told = parameter.get("style", "form" if in_query else "simple")
    explode = parameter.get("explode", told == "form") is True
    known = _STYLES if in_query else _PATH_STYLES if place == "path" else ("simple",)
    if told not in known:
        raise Unfit(f"parameter {parameter['name']!r} has the style {told!r}, which cannot be sent in a {place}")
    if not in_query:
        return "repeat", _PATH_STYLES[told], explode
    style = _STYLES[told]
    if style in ("space", "pipe") and explode:
        return "spread", "simple", explode
    return ("comma" if style == "spread" and not explode else style), "simple", explode


def _free(whole: Signature, wire: str, place: str) -> str:
    """The name of an argument: model APIs take few characters, and two places may share a name."""
    name = _ARGUMENT.sub("_", wire)[:64] or place
    for candidate in (name, f"{name[:50]}_{place}"):
        if candidate not in whole.properties:
            return candidate
    raise Unfit(f"two parameters would be the argument {name!r}")


def _told(schema: Any, parameter: Mapping[str, Any]) -> Any:
    description = parameter.get("description")
    if isinstance(description, str) and isinstance(schema, dict) and "description" not in schema:
        return {**schema, "description": description}
    return schema


def _add_body(whole: Signature, document: OpenApiDocument, body: Any, schemas: Schemas) -> None:
    if not isinstance(body, Mapping):
        return
    content = body.get("content")
    media = {str(name).partition(";")[0].strip().lower(): one for name, one in dict(content or {}).items()}
    chosen, encoding = _chosen(media)
    if chosen is None:
        if body.get("required") is True:
            listed = ", ".join(sorted(media)) or "of no type"
            raise Unfit(f"its body is {listed}; only JSON, forms, files and text can be sent")
        return
    inside = media[chosen].get("schema", {}) if isinstance(media[chosen], Mapping) else {}
    argument = _free(whole, "body", "request")
    files: tuple[str, ...] = ()
    if encoding == "multipart":
        inside, files = _with_files(document, inside)
    schema = {"text": {"type": "string"}, "file": FILE_SCHEMA}.get(encoding) or schemas.take(inside)
    if files:
        schema = {**schema, "properties": {**schema["properties"], **{name: _file(inside, name) for name in files}}}
    whole.properties[argument] = _told(schema, body)
    whole.body = Body(argument=argument, content_type=chosen, encoding=encoding, files=files)
    if body.get("required") is True:
        whole.required.append(argument)


def _chosen(media: Mapping[str, Any]) -> tuple[str | None, Encoding]:
    """The kind of body that is sent, where several are offered."""
    for name in media:
        if _JSON.fullmatch(name):
            return name, "json"
    encodings: dict[str, Encoding] = {_FORM: "form", _MULTIPART: "multipart", _BYTES: "file"}
    for name in (_FORM, _MULTIPART):
        if name in media:
            return name, encodings[name]
    for name in media:
        if _TEXT.fullmatch(name):
            return name, "text"
    return (_BYTES, "file") if _BYTES in media else (None, "json")


def _with_files(document: OpenApiDocument, schema: Any) -> tuple[Any, tuple[str, ...]]:
    """The schema of a form in one piece, and which of its properties are files, or lists of them."""
    schema = document.followed(schema)
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    files = [
        name
        for name, one in (properties.items() if isinstance(properties, Mapping) else ())
        if _is_file(document.followed(one)) or _is_file(document.followed(_items(document.followed(one))))
    ]
    return schema, tuple(sorted(files))


def _items(schema: Any) -> Any:
    return schema.get("items") if isinstance(schema, Mapping) else None


def _is_file(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    return schema.get("format") == "binary" or "contentMediaType" in schema or schema.get("contentEncoding") == "binary"


def _file(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    one = schema["properties"][name]
    is_list = isinstance(one, Mapping) and one.get("type") == "array"
    return {"type": "array", "items": FILE_SCHEMA} if is_list else FILE_SCHEMA
