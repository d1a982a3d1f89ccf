"""A URL template: the operator fixes scheme, host and the shape of the path; arguments only fill gaps in it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from toolgrove.errors import InvalidArgument
from toolgrove.pool.http.parameter_style import Encoded, path_part, text_of

Kind = Literal["literal", "slot", "reference"]
_HEAD = re.compile(r"(https?)://([^/?#]*)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?:\[([^\]]*)\]|([^:]*))(?::(.*))?")
_TOKEN = re.compile(r"(\$\{[^{}]*\})|\{([^{}]*)\}")
_LITERAL = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?\[\]-]|%[0-9A-Fa-f]{2})*")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*\.?")
_NUMERIC = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\.?\Z")
_PORT = re.compile(r"[0-9]{1,5}")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class BadUrl(ValueError):
    """A URL that no request goes to; the message is for the operator."""


class Piece(NamedTuple):
    """A stretch of a template: itself, a gap for an argument, or a reference to a secret."""

    kind: Kind
    text: str


Pieces = tuple[Piece, ...]
Fill = Callable[[str], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where requests go; an IPv6 host stands without its brackets."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port as the Host header writes them, without a default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, kw_only=True, slots=True)
class UrlTemplate:
    """A URL with gaps in its path and query; a gap in the path is one segment or a part of one."""

    origin: Origin
    path: tuple[Pieces, ...]
    query: Pieces

    @property
    def slots(self) -> frozenset[str]:
        """The names of the arguments that fill its gaps."""
        pieces = [*(piece for segment in self.path for piece in segment), *self.query]
        return frozenset(piece.text for piece in pieces if piece.kind == "slot")

    @property
    def text(self) -> str:
        """The template as people write it."""
        segments = "".join("/" + "".join(map(_written, segment)) for segment in self.path)
        query = "".join(map(_written, self.query))
        return f"{self.origin.scheme}://{self.origin.authority}{segments}" + (f"?{query}" if query else "")

    def render(self, values: Mapping[str, Any], fill: Fill) -> tuple[str, str]:
        """The path and the query, with every value encoded so that the path keeps its segments.

        What `fill` makes of a reference stands there as it is.
        """
        path = "".join("/" + "".join(_segment(segment, values, fill)) for segment in self.path)
        return path or "/", "".join(_encoded(piece, values, fill) for piece in self.query)

    def below(self, path: str) -> UrlTemplate:
        """The template of a path under this one; it comes from a document, so it holds no references."""
        if not path.startswith("/"):
            raise BadUrl(f"the path {path!r} does not begin with '/'")
        segments, query = _split(_pieces(path, references=False))
        if query:
            raise BadUrl(f"the path {path!r} holds a '?'")
        stem = self.path[:-1] if self.path and not self.path[-1] else self.path
        return UrlTemplate(origin=self.origin, path=(*stem, *segments), query=self.query)


def parse_template(text: str) -> UrlTemplate:
    """Split a tool's url into its fixed parts and its gaps; BadUrl says what the operator has to change."""
    origin, rest = split_origin(text)
    path, query = _split(_pieces(rest, references=True))
    return UrlTemplate(origin=origin, path=path, query=query)


def split_origin(text: str) -> tuple[Origin, str]:
    """The origin of an absolute URL, and what follows it."""
    head = _HEAD.match(text)
    if head is None:
        raise BadUrl("it has to begin with https:// or http://")
    scheme, authority = head[1].lower(), head[2]
    if "@" in authority:
        raise BadUrl("it names a user before the host: credentials belong in headers, as ${env:NAME}")
    if "{" in authority or "$" in authority:
        raise BadUrl("its host must be fixed: no {argument} and no ${reference} in it")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise BadUrl(f"{authority!r} is not a host with an optional port")
    host = _named(parts[2].lower()) if parts[1] is None else _bracketed(parts[1])
    return Origin(scheme=scheme, host=host, port=_port(parts[3], scheme)), text[head.end() :]


def _bracketed(text: str) -> str:
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise BadUrl(f"[{text}] is not an IPv6 address") from None
    if address.scope_id is not None:
        raise BadUrl(f"[{text}] names an interface, which only link-local addresses have")
    return str(address)


def _named(host: str) -> str:
    if not host.isascii():
        raise BadUrl(f"the host {host!r} is not ASCII: write it as xn--…")
    if _HOST.fullmatch(host) is None:
        raise BadUrl(f"{host!r} is not a host name")
    if _NUMERIC.match(host.removesuffix(".").rpartition(".")[2]):
        try:
            return str(IPv4Address(host))
        except AddressValueError:
            raise BadUrl(f"the host {host!r} is a number that is no plain IPv4 address such as 192.0.2.1") from None
    return host


def _port(text: str | None, scheme: str) -> int:
    if text is None:
        return _DEFAULT_PORTS[scheme]
    if _PORT.fullmatch(text) is None or not 0 < int(text) < 65536:
        raise BadUrl(f"{text!r} is not a port from 1 to 65535")
    return int(text)


def _pieces(text: str, *, references: bool) -> Iterator[Piece]:
    if "#" in text:
        raise BadUrl("it has a fragment ('#'), which a server never sees: leave it out, or write %23")
    at = 0
    for token in _TOKEN.finditer(text):
        yield from _literal(text[at : token.start()])
        if token[1] is None:
            yield Piece("slot", token[2])
        elif references:
            yield Piece("reference", token[1])
        else:
            raise BadUrl(f"{token[1]} stands in a document, where it is no reference")
        at = token.end()
    yield from _literal(text[at:])


def _literal(text: str) -> Iterator[Piece]:
    if _LITERAL.fullmatch(text) is None:
        at = _LITERAL.match(text)
        wrong = text[at.end() if at else 0]
        raise BadUrl(f"the character {wrong!r} is not allowed in it: percent-encode it")
    if text:
        yield Piece("literal", text)


def _split(pieces: Iterable[Piece]) -> tuple[tuple[Pieces, ...], Pieces]:
    """Segments before the first '?', the rest after it; what is a gap or a reference is never looked into."""
    segments: list[list[Piece]] = []
    queue = deque(pieces)
    while queue:
        piece = queue.popleft()
        path, mark, rest = piece.text.partition("?") if piece.kind == "literal" else ("", "", "")
        first, *others = path.split("/")
        if piece.kind != "literal" or first:
            if not segments:
                raise BadUrl(f"{piece.text!r} has to be separated from the host by '/'")
            segments[-1].append(piece if piece.kind != "literal" else Piece("literal", first))
        segments.extend([Piece("literal", part)] if part else [] for part in others)
        if mark:
            queue.appendleft(Piece("literal", rest))
            break
    if any(_is_dots("".join(piece.text for piece in segment)) for segment in segments):
        raise BadUrl("its path holds '.' or '..': write the path that is meant")
    return tuple(map(tuple, segments)), tuple(piece for piece in queue if piece.text)


def _written(piece: Piece) -> str:
    return f"{{{piece.text}}}" if piece.kind == "slot" else piece.text


def _segment(pieces: Pieces, values: Mapping[str, Any], fill: Fill) -> str:
    text = "".join(_encoded(piece, values, fill) for piece in pieces)
    gaps = [piece.text for piece in pieces if piece.kind == "slot"]
    if gaps and (not text or any(map(_is_dots, re.split(r"[/\\]", unquote(unquote(text)))))):
        raise InvalidArgument(
            f"Argument {gaps[0]!r} is one part of a path: it cannot be empty, '.' or '..', nor climb with '../'.",
            reason="path_argument",
            path=gaps[0],
        )
    return text


def _is_dots(text: str) -> bool:
    return unquote(text) in (".", "..")


def _encoded(piece: Piece, values: Mapping[str, Any], fill: Fill) -> str:
    if piece.kind == "literal":
        return piece.text
    if piece.kind == "reference":
        return fill(piece.text)
    value = values.get(piece.text)
    if isinstance(value, Encoded):
        return value
    return path_part(text_of(value, piece.text), piece.text)
