"""Which credentials a document asks for, and the line of the project file that gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolgrove.config import HttpToolConfig
from toolgrove.pool.http.openapi.document import BadReference, OpenApiDocument


def missing(entry: str, config: HttpToolConfig, document: OpenApiDocument, operations: Iterable[Any]) -> str:
    """What the operator should add so that calls are let in; empty where nothing is asked for, or all is there.

    One way in is enough: of alternatives, one that is set up, or else the first that can be.
    """
    asked = [document.whole.get("security"), *(operation.get("security") for operation in operations)]
    ways = [way for one in asked if isinstance(one, list) for way in one if isinstance(way, Mapping)]
    if not ways or any(not way for way in ways):  # nothing is asked for, or calls may come without
        return ""
    schemes = _schemes(document)
    lines = []
    for way in ways:
        wanted = [_line(entry, name, schemes[name]) for name in way if name in schemes]
        if all(_is_given(line, config) for line in wanted):
            return ""
        lines += [line for line in wanted if not _is_given(line, config)]
    secret = _secret(entry)
    told = next((line for line in lines if line[1]), None)
    if told is None:
        return f"{entry}: the document asks for credentials that cannot be set here; calls may be refused."
    header, value = told
    use = f'{entry}.headers: {{{header}: "{value}"}}' if header else f"{entry}.url: …?{value}"
    scope = f'secrets: {{{secret}: {{tools: ["{entry.partition(".")[2]}_*"]}}}}'
    return f"The document asks for credentials. Add {use} and {scope}."


def _schemes(document: OpenApiDocument) -> dict[str, Mapping[str, Any]]:
    components = document.whole.get("components")
    found = components.get("securitySchemes") if isinstance(components, Mapping) else None
    schemes: dict[str, Mapping[str, Any]] = {}
    for name, scheme in found.items() if isinstance(found, Mapping) else ():
        try:
            scheme = document.followed(scheme)
        except BadReference:
            continue
        if isinstance(scheme, Mapping):
            schemes[name] = scheme
    return schemes


def _line(entry: str, name: str, scheme: Mapping[str, Any]) -> tuple[str, str]:
    """A header and its value; without a header, a parameter of the URL; both empty if neither will do."""
    reference = f"${{env:{_secret(entry)}}}"
    kind, place = scheme.get("type"), scheme.get("in")
    if kind == "apiKey" and isinstance(scheme.get("name"), str):
        key = str(scheme["name"])
        return {"header": (key, reference), "query": ("", f"{key}={reference}")}.get(
            str(place), ("Cookie", f"{key}={reference}")
        )
    if kind == "http":
        word = str(scheme.get("scheme", "bearer")).capitalize()
        return "Authorization", f"{word} {reference}"
    if kind in ("oauth2", "openIdConnect"):
        return "Authorization", f"Bearer {reference}"
    return "", ""


def _is_given(line: tuple[str, str], config: HttpToolConfig) -> bool:
    header, value = line
    if header:
        return header.casefold() in {name.casefold() for name in config.headers}
    key = value.partition("=")[0]
    return bool(key) and re.search(rf"[?&]{re.escape(key)}=", config.url or "") is not None


def _secret(entry: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", entry.partition(".")[2].upper()).strip("_") + "_TOKEN"
