"""An OpenAPI document: read within bounds, its own references followed, no others."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from toolgrove.notation import json_pointer, strict_json
from toolgrove.pool.http.openapi.swagger import upgraded
from toolgrove.pool.offer import Unavailable

MAX_BYTES = 16 * 1024 * 1024
MAX_NODES = 2_000_000
MAX_DEPTH = 200
_MAX_CHAIN = 20
_VERSION = re.compile(r"3\.[012](?:\.|\Z)")
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C is many times faster


class _Loader(_SafeLoader):  # type: ignore[misc]
    """YAML's safe loader, in which a date is text, as in JSON."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the library looks it up on the class
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in _SafeLoader.yaml_implicit_resolvers.items()
    }


class BadReference(ValueError):
    """A `$ref` that leads out of the document, nowhere, or in circles."""


class OpenApiDocument:
    """The document as plain JSON, and a way to follow its references; `home` is the URL that it came from, if any."""

    def __init__(self, whole: Mapping[str, Any], home: str = "") -> None:
        self.whole = whole
        self.home = home
        self.nullable = str(whole.get("openapi", "")).startswith("3.0")

    def followed(self, node: Any) -> Any:
        """The node itself, or what its `$ref` leads to in the end."""
        for _ in range(_MAX_CHAIN):
            if not isinstance(node, Mapping) or not isinstance(node.get("$ref"), str):
                return node
            node = self.at(node["$ref"])
        raise BadReference("a $ref leads in circles")

    def at(self, reference: str) -> Any:
        """What a reference inside of the document points at."""
        if not reference.startswith("#/"):
            raise BadReference(
                f"it refers to {reference[:80]!r}, outside of the document: join the parts into one file first"
            )
        node = json_pointer.at(self.whole, reference[1:])
        if node is json_pointer.NOWHERE:
            raise BadReference(f"it refers to {reference[:80]!r}, which the document does not hold")
        return node


def read(path: Path) -> bytes:
    """The bytes of a file; what is wrong with it is fit for the receipt."""
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for indefinitely
            raise Unavailable("the OpenAPI document is not a regular file")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unavailable(f"the OpenAPI document cannot be read ({error.strerror})") from None


def load(path: Path) -> OpenApiDocument:
    """Read a file in JSON or YAML."""
    return parse(read(path))


def parse(data: bytes, home: str = "") -> OpenApiDocument:
    """What the bytes say, in JSON or YAML; Swagger 2.0 is read as OpenAPI."""
    if len(data) > MAX_BYTES:
        raise Unavailable(f"the OpenAPI document is larger than {MAX_BYTES >> 20} MiB")
    try:
        whole = _Plain().value(_parsed(data.decode("utf-8-sig")), MAX_DEPTH)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise Unavailable(f"the OpenAPI document is neither valid JSON nor valid YAML{_place(error)}") from None
    if isinstance(whole, dict) and str(whole.get("swagger", "")) == "2.0":
        try:
            whole = upgraded(whole, OpenApiDocument(whole).followed, scheme=home.partition("://")[0] or "https")
        except (BadReference, AttributeError, TypeError) as error:
            problem = str(error) if isinstance(error, BadReference) else "it does not follow Swagger 2.0"
            raise Unavailable(f"the Swagger document cannot be used: {problem}") from None
    if not isinstance(whole, dict) or not _VERSION.match(str(whole.get("openapi", ""))):
        raise Unavailable("the document does not say openapi: 3.0, 3.1 or 3.2, nor swagger: 2.0")
    return OpenApiDocument(whole, home)


def _parsed(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return strict_json.decode(text)
        except json.JSONDecodeError:
            pass  # YAML, too, may begin with a brace
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" (line {mark.line + 1})" if mark is not None else f" ({error})" if isinstance(error, _NotPlain) else ""


class _NotPlain(ValueError):
    """What YAML can say and JSON cannot, or more than we read."""


class _Plain:
    """Makes plain JSON of what was parsed; counts, because a few YAML aliases can stand for billions of nodes."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def value(self, value: Any, room: int) -> Any:
        """The value with text keys and without aliases."""
        self._left -= 1
        if self._left < 0 or not room:
            raise _NotPlain("it is too large or too deep")
        if isinstance(value, dict):
            return {_key(key): self.value(item, room - 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, room - 1) for item in value]
        if isinstance(value, str):
            return value.replace("\r\n", "\n")
        if value is None or isinstance(value, bool | int | float):
            return value
        raise _NotPlain(f"it holds a {type(value).__name__}")


def _key(key: Any) -> str:
    """Status codes are often written as numbers."""
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, str | int):
        return str(key)
    raise _NotPlain("a key is not text")
