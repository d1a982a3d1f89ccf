"""An OpenAPI document: read within bounds, its own references followed, no others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from toolgrove.notation import json_pointer, stranger_document
from toolgrove.pool.http.openapi.swagger import upgraded
from toolgrove.pool.offer import Unavailable

MAX_BYTES = 16 * 1024 * 1024
MAX_NODES = 2_000_000
MAX_DEPTH = 200
MAX_SECONDS = 20.0
"""Of one thread's processor time, beside the loop."""
_MAX_CHAIN = 20
_VERSION = re.compile(r"3\.[012](?:\.|\Z)")


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
        whole = stranger_document.read(data.decode("utf-8-sig"), nodes=MAX_NODES, depth=MAX_DEPTH, seconds=MAX_SECONDS)
    except (ValueError, yaml.YAMLError) as error:
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


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    told = isinstance(error, stranger_document.NotPlain)
    return f" (line {mark.line + 1})" if mark is not None else f" ({error})" if told else ""
