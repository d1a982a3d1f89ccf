"""The parameters of an operation, and its body, as the arguments of a tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgrove.config.http_tool import may_be_argument, overrides_method
from toolgrove.pool.http.openapi.document import OpenApiDocument
from toolgrove.pool.http.openapi.request_body import read_body
from toolgrove.pool.http.openapi.schema import Schemas
from toolgrove.pool.http.openapi.styles import JSON_MEDIA, query_style
from toolgrove.pool.http.openapi.unfit import Unfit
from toolgrove.pool.http.operation import Body, Input, Place
from toolgrove.pool.http.parameter_style import PathStyle, Style

_ARGUMENT = re.compile(r"[^A-Za-z0-9_.-]")
_PATH_STYLES: dict[str, PathStyle] = {"simple": "simple", "label": "label", "matrix": "matrix"}


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
    told = document.followed(operation.get("requestBody"))
    argument = _free(whole, "body", "request") if isinstance(told, Mapping) else ""
    found = read_body(argument, document, told, schemas) if isinstance(told, Mapping) else None
    if found is not None:
        whole.body = found.body
        whole.properties[argument] = _told(found.schema, found.about)
        whole.required.extend([argument] if found.required else [])
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
        raise Unfit(f"parameter {wire!r} is in {place!r}, which is not known")
    style, path_style, explode = _styles(parameter, place)
    schema = parameter.get("schema", {})
    content = parameter.get("content")
    if isinstance(content, Mapping) and len(content) == 1:
        [(media, inside)] = content.items()
        style = "json" if JSON_MEDIA.fullmatch(media) else "spread" if place == "querystring" else "repeat"
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
    if place in ("query", "querystring"):
        return query_style(f"parameter {parameter['name']!r}", parameter, place), "simple", False
    told = parameter.get("style", "simple")
    if told not in (_PATH_STYLES if place == "path" else ("simple",)):
        raise Unfit(f"parameter {parameter['name']!r} has the style {told!r}, which cannot be sent in a {place}")
    return "repeat", _PATH_STYLES[told], parameter.get("explode") is True


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
