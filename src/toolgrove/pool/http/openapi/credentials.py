"""Which credentials a document asks for, and the lines of the project file that give them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolgrove.config import HttpToolConfig
from toolgrove.pool.http.openapi.document import BadReference, OpenApiDocument
from toolgrove.pool.http.url import split_origin

_COMPUTED = frozenset(("digest", "dpop", "hoba", "mutual", "negotiate", "scram-sha-1", "scram-sha-256", "vapid"))
"""Schemes of HTTP that compute something for each request: no fixed header will do."""


@dataclass(frozen=True, slots=True)
class _Credential:
    """One thing to set: a header, or a parameter of the URL where `header` is empty; `{}` is the secret's place."""

    scheme: str
    header: str
    value: str

    def is_given(self, config: HttpToolConfig) -> bool:
        if self.header:
            return self.header.casefold() in {name.casefold() for name in config.headers}
        return re.search(rf"[?&]{re.escape(self.value.partition('=')[0])}=", config.url or "") is not None


def missing(
    name: str, config: HttpToolConfig, document: OpenApiDocument, operations: Iterable[Mapping[str, Any]], base: str
) -> str:
    """What the operator should add so that calls are let in; empty where nothing is asked for, or all is there.

    `base` is where calls go; it is part of the advice where the entry has to name it before headers are sent.
    """
    schemes = _schemes(document)
    needed: dict[str, _Credential] = {}
    cannot = False
    for operation in operations:
        ways = _ways(operation.get("security", document.whole.get("security")), schemes)
        settable = [[one for one in way if one is not None] for way in ways if None not in way]
        if not ways or any(all(one.is_given(config) for one in way) for way in settable):
            continue
        cannot = cannot or not settable
        for one in settable[0] if settable else ():
            if not one.is_given(config):
                needed.setdefault(one.header or one.value, one)
    if needed:
        return _advice(name, config, document, list(needed.values()), base)
    entry = f"httpTools.{name}"
    return (
        f"{entry}: the document asks for credentials that cannot be set here; calls may be refused." if cannot else ""
    )


def _ways(security: Any, schemes: Mapping[str, _Credential | None]) -> list[list[_Credential | None]]:
    """The ways in, of which one is enough; none if calls may come without."""
    told = [way for way in security if isinstance(way, Mapping)] if isinstance(security, list) else []
    return [] if not all(told) else [[schemes[each] for each in way if each in schemes] for way in told]


def _schemes(document: OpenApiDocument) -> dict[str, _Credential | None]:
    components = document.whole.get("components")
    found = components.get("securitySchemes") if isinstance(components, Mapping) else None
    schemes: dict[str, _Credential | None] = {}
    for name, scheme in found.items() if isinstance(found, Mapping) else ():
        try:
            scheme = document.followed(scheme)
        except BadReference:
            continue
        if isinstance(scheme, Mapping):
            schemes[name] = _credential(name, scheme)
    return schemes


def _credential(name: str, scheme: Mapping[str, Any]) -> _Credential | None:
    kind, key, place = scheme.get("type"), scheme.get("name"), scheme.get("in")
    if kind == "apiKey" and isinstance(key, str):
        if place == "header":
            return _Credential(name, key, "{}")
        return _Credential(name, "" if place == "query" else "Cookie", f"{key}={{}}")
    if kind in ("oauth2", "openIdConnect"):
        return _Credential(name, "Authorization", "Bearer {}")
    word = str(scheme.get("scheme", "bearer")).lower()
    if kind == "http" and word not in _COMPUTED:
        return _Credential(name, "Authorization", f"{word.capitalize()} {{}}")
    return None


def _advice(name: str, config: HttpToolConfig, document: OpenApiDocument, needed: list[_Credential], base: str) -> str:
    """The lines to add, ready to be copied."""
    entry = f"httpTools.{name}"
    secrets = {one: _constant(name, one.scheme if len(needed) > 1 else "TOKEN") for one in needed}
    filled = {one: one.value.format(f"${{env:{secret}}}") for one, secret in secrets.items()}
    headers = ", ".join(f'{one.header}: "{value}"' for one, value in filled.items() if one.header)
    query = "&".join(value for one, value in filled.items() if not one.header)
    lines = []
    if query or (config.url is None and not _is_at_home(document, base)):
        url = f"{base}{'&' if '?' in base else '?'}{query}" if query else base
        lines.append(f'{entry}.url: "{url}"')
    if headers:
        lines.append(f"{entry}.headers: {{{headers}}}")
    scopes = ", ".join(f'{secret}: {{tools: ["{name}_*"]}}' for secret in secrets.values())
    advice = f"The document asks for credentials. Add {', '.join(lines)} and secrets: {{{scopes}}}."
    basic = next((secrets[one] for one in needed if one.value.startswith("Basic ")), None)
    return f"{advice} {basic} is user:password in base64." if basic else advice


def _is_at_home(document: OpenApiDocument, base: str) -> bool:
    """Whether calls go where the document came from: only there are headers sent without a `url`."""
    return bool(document.home) and split_origin(base)[0] == split_origin(document.home)[0]


def _constant(*words: str) -> str:
    return "_".join(re.sub(r"[^A-Z0-9]+", "_", word.upper()).strip("_") for word in words)
