"""Swagger 2.0 in the words of OpenAPI 3.0, so that everything behind this reads one language."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Json = dict[str, Any]
Follow = Callable[[Any], Any]
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_ABOUT = ("name", "in", "description", "required", "allowEmptyValue", "collectionFormat")
_STYLES: Mapping[str, Json] = {
    "csv": {"explode": False},
    "multi": {"style": "form", "explode": True},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
    "tsv": {"style": "tabDelimited"},
}
_JSON = ["application/json"]


def upgraded(whole: Mapping[str, Any], follow: Follow, scheme: str) -> Json:
    """The document as OpenAPI 3.0; `follow` leads from a `$ref` to what it names in the document as it was.

    Definitions stay where they are, so references to them lead where they led. `scheme` is how the document was
    fetched, and how calls go out if it does not say.
    """
    paths = whole.get("paths")
    new = {
        path: _path_item(follow(item), whole, follow)
        for path, item in (paths.items() if isinstance(paths, Mapping) else ())
    }
    schemes = whole.get("securityDefinitions")
    components = {"securitySchemes": {name: _scheme(one) for name, one in _items(schemes)}}
    kept = {key: value for key, value in whole.items() if key not in ("swagger", "parameters", "responses")}
    return {**kept, "openapi": "3.0.3", "servers": [_server(whole, scheme)], "paths": new, "components": components}


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, Mapping) else ()


def _server(whole: Mapping[str, Any], scheme: str) -> Json:
    """Where no host is named, a path: it belongs to the place that the document came from."""
    base, host, schemes = whole.get("basePath") or "/", whole.get("host"), whole.get("schemes")
    if not isinstance(host, str):
        return {"url": str(base)}
    if isinstance(schemes, list) and schemes:
        scheme = "https" if "https" in schemes else str(schemes[0])
    return {"url": f"{scheme}://{host}{str(base).rstrip('/')}"}


def _path_item(item: Any, whole: Mapping[str, Any], follow: Follow) -> Json:
    if not isinstance(item, Mapping):
        return {}
    shared = [follow(one) for one in item.get("parameters") or []]
    return {
        method: _operation(item[method], shared, whole, follow)
        for method in _METHODS
        if isinstance(item.get(method), Mapping)
    }


def _operation(operation: Mapping[str, Any], shared: list[Any], whole: Mapping[str, Any], follow: Follow) -> Json:
    own = [follow(one) for one in operation.get("parameters") or []]
    found = {(one.get("in"), one.get("name")): one for one in (*shared, *own) if isinstance(one, Mapping)}
    consumes = operation.get("consumes") or whole.get("consumes") or _JSON
    produces = operation.get("produces") or whole.get("produces") or _JSON
    new: Json = {key: value for key, value in operation.items() if key not in ("consumes", "produces")}
    new["parameters"] = [_parameter(one) for one in found.values() if one.get("in") not in ("body", "formData")]
    body = _body([one for one in found.values() if one.get("in") in ("body", "formData")], list(consumes))
    if body is not None:
        new["requestBody"] = body
    new["responses"] = {str(code): _response(follow(one), list(produces)) for code, one in _items(new.get("responses"))}
    return new


def _parameter(old: Mapping[str, Any]) -> Json:
    new = {key: old[key] for key in ("name", "in", "description", "required") if key in old}
    return {**new, **_list_style(old), "schema": _schema(old)}


def _list_style(old: Mapping[str, Any]) -> Json:
    told = str(old.get("collectionFormat", "csv"))
    return dict(_STYLES.get(told, {"style": told})) if old.get("type") == "array" else {}


def _schema(old: Mapping[str, Any]) -> Json:
    if old.get("type") == "file":
        return {"type": "string", "format": "binary"}
    return {key: value for key, value in old.items() if key not in _ABOUT}


def _body(parameters: list[Mapping[str, Any]], consumes: list[str]) -> Json | None:
    if not parameters:
        return None
    [first, *_] = parameters
    if first.get("in") == "body":
        content = {str(media): {"schema": first.get("schema", {})} for media in consumes}
        return {
            "description": first.get("description", ""),
            "required": first.get("required") is True,
            "content": content,
        }
    properties = {str(one.get("name")): {**_schema(one), **_said(one)} for one in parameters}
    required = [str(one.get("name")) for one in parameters if one.get("required") is True]
    has_file = any(one.get("type") == "file" for one in parameters)
    media = (
        "multipart/form-data"
        if has_file or consumes == ["multipart/form-data"]
        else "application/x-www-form-urlencoded"
    )
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    encoding = {str(one.get("name")): style for one in parameters if (style := _list_style(one))}
    return {"required": bool(required), "content": {media: {"schema": schema, "encoding": encoding}}}


def _said(parameter: Mapping[str, Any]) -> Json:
    return {"description": parameter["description"]} if "description" in parameter else {}


def _response(old: Any, produces: list[str]) -> Any:
    if not isinstance(old, Mapping) or "schema" not in old:
        return old
    kept = {key: value for key, value in old.items() if key != "schema"}
    return {**kept, "content": {str(media): {"schema": old["schema"]} for media in produces}}


def _scheme(old: Any) -> Any:
    if isinstance(old, Mapping) and old.get("type") == "basic":
        return {**old, "type": "http", "scheme": "basic"}
    return old
