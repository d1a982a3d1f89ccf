"""From an operation and its arguments to the request that goes out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any
from urllib.parse import quote, urlencode

from toolgrove.config.http_tool import overrides_method
from toolgrove.errors import Forbidden, InvalidArgument, UpstreamFailed
from toolgrove.pool.http.body import encoded, sound
from toolgrove.pool.http.operation import HttpOperation
from toolgrove.pool.http.parameter_style import header_text, json_text, pairs_of, path_text
from toolgrove.pool.http.url import Origin
from toolgrove.types import Arguments

Fill = Callable[[str, str], str]
"""Fills the references of a template; the second argument is the field that it stands in."""
_HEADER_VALUE = re.compile(r"[\x20-\x7e\t]*")
_SECRET_VALUE = re.compile(r"[\x20-\x7e\t\x80-\xff]*")
_DEFAULTS = {
    "accept": "application/json, text/*;q=0.9, */*;q=0.5",
    "accept-encoding": "gzip, deflate",
    "user-agent": "toolgrove",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpRequest:
    """What is sent; its repr shows neither headers nor content, which may hold secrets."""

    method: str
    origin: Origin
    target: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    content: bytes = field(repr=False)


def build_request(operation: HttpOperation, arguments: Arguments, fill: Fill) -> HttpRequest:
    """Put every argument in its place; nothing of them can reach the host, the method or a guarded header."""
    placed = _Placed(operation, arguments)
    target = _target(operation, placed, lambda reference: quote(fill(reference, f"{operation.entry}.url"), safe=""))
    headers = dict(_DEFAULTS)
    headers |= {name: value for name, value in placed.headers.items() if value}
    if placed.content is not None:
        headers["content-type"] = placed.content_type
    headers |= dict(_configured(operation, fill))
    return HttpRequest(
        method=operation.method,
        origin=operation.url.origin,
        target=target,
        headers=headers,
        content=placed.content or b"",
    )


def preview(operation: HttpOperation, arguments: Arguments) -> dict[str, str]:
    """What a person is shown of a request before it is built: no secret is read, its name stands in its place."""
    origin = operation.url.origin
    target = _target(operation, _Placed(operation, arguments), _named)
    return {"method": operation.method, "url": f"{origin.scheme}://{origin.authority}{target}"}


def _target(operation: HttpOperation, placed: _Placed, fill: Callable[[str], str]) -> str:
    path, query = operation.url.render(placed.path, fill)
    query = "&".join(filter(None, (query, urlencode(placed.query, quote_via=quote))))
    return f"{path}?{query}" if query else path


def _named(reference: str) -> str:
    scheme, _, name = reference.removeprefix("${").removesuffix("}").partition(":")
    return f"[secret {PurePath(name).name or scheme}]"


class _Placed:
    """The arguments, sorted by the place they go to."""

    def __init__(self, operation: HttpOperation, arguments: Arguments) -> None:
        self.path: dict[str, Any] = {}
        self.query: list[tuple[str, str]] = []
        self.headers: dict[str, str] = {}
        self.content: bytes | None = None
        self.content_type = "application/json"
        self._fields: tuple[str, ...] = ()
        body = operation.body
        rest = dict(arguments)
        for name in operation.url.slots if operation.inputs is None else ():
            self.path[name] = rest.pop(name, None)
        for one in operation.inputs or ():
            value = rest.pop(one.argument, None)
            if one.place == "path":
                how = one.path_style
                self.path[one.wire] = path_text(one.wire, value, one.argument, how, explode=one.explode)
            elif value is not None and one.place == "header":
                text = header_text(value, one.argument, explode=one.explode)
                self.headers[one.wire.lower()] = _header(text, one.argument)
            elif value is not None:
                self.query.extend(sound(pairs_of(one.wire, value, one.argument, one.style), one.argument))
        if body is not None and body.argument in rest:
            value = rest.pop(body.argument)
            self._fields = tuple(value) if body.encoding in ("form", "multipart") and isinstance(value, dict) else ()
            self.content, self.content_type = encoded(value, body)
        self._place_rest(operation, rest)

    def _place_rest(self, operation: HttpOperation, rest: dict[str, Any]) -> None:
        for name in (*rest, *self._fields, *(name for name, _ in self.query)):
            if overrides_method(name) or (operation.rest == "nowhere" and name in rest):
                raise Forbidden(
                    f"Argument {name!r} is not part of {operation.name}: the method and the headers of an HTTP tool "
                    "are fixed. Call the tool that is made for this; do not retry.",
                    reason="http_policy",
                )
        if operation.rest == "query":
            for name, value in rest.items():
                self.query.extend(sound(pairs_of(name, value, name), name))
        elif operation.rest == "body" and (rest or operation.method in ("POST", "PUT", "PATCH")):
            self.content = json_text(rest, "").encode()


def _header(text: str, argument: str) -> str:
    if _HEADER_VALUE.fullmatch(text) is None:
        raise InvalidArgument(
            f"Argument {argument!r} goes into a header, which carries printable ASCII only: no line break, no other "
            "control character.",
            reason="header_argument",
            path=argument,
        )
    return text.strip()


def _configured(operation: HttpOperation, fill: Fill) -> Iterator[tuple[str, str]]:
    for name, template in operation.headers.items():
        where = f"{operation.entry}.headers.{name}"
        value = fill(template, where).strip()
        if _SECRET_VALUE.fullmatch(value) is None:
            raise UpstreamFailed(
                f"{operation.name} is not set up correctly: {where} holds a character that a header cannot carry. "
                "Tell the operator; do not retry.",
                reason="configuration",
            )
        yield name.lower(), value
