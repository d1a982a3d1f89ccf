"""The parameters and the body of an operation as the arguments of a tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgrove.config.http_tool import may_be_argument, overrides_method
from toolgrove.pool.http.openapi.document import OpenApiDocument
from toolgrove.pool.http.openapi.schema import Schemas
from toolgrove.pool.http.operation import Body, Input, Place
from toolgrove.pool.http.parameter_style import Style

_ARGUMENT = re.compile(r"[^A-Za-z0-9_.-]")
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json")
_FORM = "application/x-www-form-urlencoded"
_STYLES: dict[str, Style] = {"spaceDelimited": "space", "pipeDelimited": "pipe", "deepObject": "deep"}


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
    _add_body(whole, document.followed(operation.get("requestBody")), schemas)
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
    if place not in ("path", "query", "header"):
        raise Unfit(f"parameter {wire!r} stands in {place!r}, which is not known")
    content = parameter.get("content")
    if isinstance(content, Mapping) and len(content) == 1:
        [(media, inside)] = content.items()
        style: Style = "json" if _JSON.fullmatch(media) else "repeat"
        schema = inside.get("schema", {}) if isinstance(inside, Mapping) else {}
    else:
        style, schema = _style(parameter), parameter.get("schema", {})
    argument = _free(whole, wire, place)
    whole.properties[argument] = _told(schemas.take(schema), parameter)
    whole.inputs.append(Input(argument=argument, wire=wire, place=_place(place), style=style))
    if required:
        whole.required.append(argument)


def _place(text: str) -> Place:
    return "path" if text == "path" else "query" if text == "query" else "header"


def _style(parameter: Mapping[str, Any]) -> Style:
    style = _STYLES.get(str(parameter.get("style")), "spread")
    if style in ("space", "pipe") and parameter.get("explode") is True:
        return "spread"
    if style == "spread" and parameter.get("explode") is False:
        return "comma"
    return style


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


def _add_body(whole: Signature, body: Any, schemas: Schemas) -> None:
    if not isinstance(body, Mapping):
        return
    content = body.get("content")
    media = {str(name).partition(";")[0].strip().lower(): one for name, one in dict(content or {}).items()}
    chosen = next((name for name in media if _JSON.fullmatch(name)), _FORM if _FORM in media else None)
    if chosen is None:
        if body.get("required") is True:
            raise Unfit(f"its body is {', '.join(sorted(media)) or 'of no type'}; only JSON and forms can be sent")
        return
    inside = media[chosen]
    argument = _free(whole, "body", "request")
    schema = schemas.take(inside.get("schema", {}) if isinstance(inside, Mapping) else {})
    whole.properties[argument] = _told(schema, body)
    whole.body = Body(argument=argument, content_type=chosen, encoding="form" if chosen == _FORM else "json")
    if body.get("required") is True:
        whole.required.append(argument)
