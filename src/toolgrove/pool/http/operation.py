"""One HTTP call as configuration or a document describe it, before any argument."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolgrove.notation.json_value import canonical
from toolgrove.pool.http.parameter_style import PathStyle, Style
from toolgrove.pool.http.url import UrlTemplate
from toolgrove.types import Annotations, Schema

SAFE_METHODS = frozenset(("GET", "HEAD"))
_REPEATABLE = frozenset(("GET", "HEAD", "PUT", "DELETE"))
_IN_QUERY = frozenset(("GET", "HEAD", "DELETE"))
Place = Literal["path", "query", "header"]
Encoding = Literal["json", "form", "multipart", "text", "file"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """An argument that stands for one parameter of the request; `wire` is the name it has there.

    `style` says how lists and objects are written in a query, `path_style` in a path; `explode` belongs to the latter
    and to headers.
    """

    argument: str
    wire: str
    place: Place
    style: Style = "repeat"
    path_style: PathStyle = "simple"
    explode: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Body:
    """The argument that is the whole body."""

    argument: str
    content_type: str
    encoding: Encoding = "json"
    files: tuple[str, ...] = ()
    """The properties that are files."""
    styles: tuple[tuple[str, Style], ...] = ()
    """How lists and objects in a form are written, where the document says so."""
    types: tuple[tuple[str, str], ...] = ()
    """The media types of parts, where the document says so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpOperation:
    """A method, a URL and where the arguments go.

    `entry` names it in the configuration. Without `inputs` and `body`, arguments that the URL does not take go to
    the query or into a JSON object, by the method. `answer` is the schema of the answer's body, where it is known.
    `reads` is the operator's word that it changes nothing, `reads_if` the line with which it could be given. `also`
    are names that it would have without the operator's word, `formerly` an older spelling of its name.
    """

    name: str
    own_name: str
    entry: str
    method: str
    url: UrlTemplate
    description: str
    input_schema: Schema
    answer: Schema | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[Input, ...] | None = None
    body: Body | None = None
    allow_private: bool = False
    reads: bool = False
    reads_if: str = ""
    also: tuple[str, ...] = ()
    formerly: str = ""

    @property
    def known_as(self) -> tuple[str, ...]:
        """All names by which a secret may be meant for it."""
        return tuple(name for name in (self.name, *self.also, self.formerly) if name)

    @property
    def mutates(self) -> bool:
        """Whether it may change something: every method but GET and HEAD, unless the operator says that it reads."""
        return self.method not in SAFE_METHODS and not self.reads

    @property
    def approval(self) -> str | None:
        """The rule by which each call needs one."""
        return f"HTTP {self.method}" if self.mutates else None

    @property
    def rest(self) -> Literal["query", "body", "nowhere"]:
        """Where arguments go that nothing else names."""
        if self.inputs is not None:
            return "nowhere"
        return "query" if self.method in _IN_QUERY else "body"

    @property
    def annotations(self) -> Annotations:
        """What it does to the world, by its method and the operator; nothing says whether a POST destroys something."""
        return Annotations(
            readonly=not self.mutates,
            destructive=None if self.mutates and self.method == "POST" else self.mutates,
            idempotent=not self.mutates or self.method in _REPEATABLE,
            requires_approval=self.mutates,
            open_world=True,
        )

    @property
    def output_schema(self) -> dict[str, Any]:
        """The result: a status beside a body, and what else there is to say."""
        properties: dict[str, Any] = {
            "status": {"type": "integer", "description": "The HTTP status."},
            "body": self.answer or {"description": "The JSON value or the text of the answer; null if it has none."},
            "contentType": {"type": "string", "description": "Of an answer that is not JSON."},
            "bytes": {"type": "integer", "description": "The size of a binary answer; its data is left out."},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        }
        schema: dict[str, Any] = {"type": "object", "properties": properties, "required": ["status", "body"]}
        if self.answer and "$defs" in self.answer:  # references begin at the root of the whole schema
            properties["body"] = {key: value for key, value in self.answer.items() if key != "$defs"}
            schema["$defs"] = self.answer["$defs"]
        return schema

    def definition(self) -> str:
        """The hash of all that decides what a call does."""
        told = [self.name, self.description, self.input_schema, self.answer, dict(self.headers), self.reads]
        route = [self.entry, self.method, repr(self.url), repr(self.inputs), repr(self.body), self.allow_private]
        return hashlib.sha256(canonical([*told, *route]).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """An operation that is no tool, and why: it cannot be one, or the operator left it out."""

    name: str
    own_name: str
    reason: str
    also: tuple[str, ...] = ()
    formerly: str = ""
    is_left_out: bool = False
