"""The section of an HTTP tool, and which headers an agent may never choose."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from toolgrove.config.fields import Document
from toolgrove.config.own_names import OwnNames
from toolgrove.config.reference import Filled
from toolgrove.config.toolsets import check_no_set

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONNECTION = ("host", "connection", "keep-alive", "te", "trailer", "upgrade", "expect")
_FRAMING = ("content-length", "transfer-encoding", "accept-encoding")
_OURS = frozenset((*_CONNECTION, *_FRAMING))
_IDENTITY = frozenset(("authorization", "cookie", "set-cookie", "forwarded", "x-real-ip"))
_ROUTE = frozenset(("x-original-url", "x-rewrite-url", "accept", "content-type"))
_OVERRIDES = frozenset(("x-http-method-override", "x-http-method", "x-method-override", "-method"))


CHANGING = frozenset(("PUT", "PATCH", "DELETE"))
"""Methods that no word of the operator turns into reading."""


def overrides_method(name: str) -> bool:
    """Whether servers take a header or parameter of this name for the method that is really meant."""
    return name.casefold().replace("_", "-") in _OVERRIDES


def may_be_argument(name: str) -> bool:
    """Whether an agent may choose the value of this header: none of the connection, the identity or the route."""
    name = name.casefold()
    return _TOKEN.fullmatch(name) is not None and not (
        name in _OURS | _IDENTITY | _ROUTE
        or overrides_method(name)
        or name.startswith(("proxy-", "sec-", "x-forwarded-"))
    )


class HttpToolConfig(OwnNames):
    """One HTTP call as a tool, or every operation of an OpenAPI document."""

    description: str = Field(default="", description="What the tool does; models read it.")
    method: str = Field(
        default="GET", description="GET and HEAD read; any other changes something and needs an approval."
    )
    reads: bool | tuple[str, ...] = Field(
        default=False,
        description="Whether this call only reads though it is no GET, such as a search by POST: readers may have it, "
        "and no approval is needed. With `openapi`: patterns of such operations. PUT, PATCH and DELETE never read.",
    )
    url: str | None = Field(default=None, description="{x} is one encoded path segment; other inputs: query or body.")
    headers: dict[str, Filled] = Field(default_factory=dict, repr=False, description="Sent with every request.")
    input_schema: dict[str, Any] = Field(
        default_factory=lambda: {"type": "object", "properties": {}}, description="The JSON Schema of the inputs."
    )
    output_schema: dict[str, Any] | None = Field(default=None, description="The schema of the answer's body.")
    openapi: Document | None = Field(
        default=None,
        description="An OpenAPI or Swagger document instead, a file or a URL: every operation is "
        "`<name>_<operationId>`. What a document from a URL says is pinned: a change waits until you accept it.",
    )
    refresh: float = Field(
        default=3600.0,
        ge=0,
        description="Seconds after which a document from a URL is fetched again; 0: only at the start.",
    )
    tags: tuple[str, ...] | None = Field(
        default=None, description="Patterns of tags; only operations that have one of them are taken over."
    )
    allow_private: bool = Field(default=False, description="Whether the host may have a private address.")
    timeout: float = Field(default=30.0, gt=0, description="Seconds that one call may take.")
    max_bytes: int = Field(default=1_000_000, ge=1, description="The largest answer that is read.")

    @field_validator("method")
    @classmethod
    def _is_method(cls, method: str) -> str:
        if _TOKEN.fullmatch(method) is None or method.upper() in ("CONNECT", "TRACE"):
            raise ValueError(f"{method!r} is not a method such as GET or POST")
        return method.upper()

    @field_validator("headers")
    @classmethod
    def _are_sendable(cls, headers: dict[str, str]) -> dict[str, str]:
        if len({name.casefold() for name in headers}) < len(headers):
            raise ValueError("one header stands here twice, in different letter case")
        for name, value in headers.items():
            if overrides_method(name):
                raise ValueError(f"{name} changes the method behind the policy's back: write it as method")
            if _TOKEN.fullmatch(name) is None or name.casefold() in _OURS or name.casefold().startswith("proxy-"):
                raise ValueError(
                    f"{name!r} is not a header that can be set: it is illegal, or belongs to the connection"
                )
            if not value.isprintable():
                raise ValueError(f"{name} holds a line break or another control character")
        return headers

    @model_validator(mode="after")
    def _has_target(self) -> Self:
        if self.url is None and self.openapi is None:
            raise ValueError("name a url, or an openapi document")
        if self.url is not None and not re.match(r"https?://[^/?#@{}$\\\s]+(?:[/?]|\Z)", self.url, re.IGNORECASE):
            raise ValueError(
                "url has to begin with https://host or http://host: no user, no {x} and no ${…} in the host"
            )
        if isinstance(self.openapi, str) and not re.fullmatch(
            r"https?://[^/?#@{}$\\\s]+[^{}$#\\\s]*", self.openapi, re.I
        ):
            raise ValueError("openapi has to be a file, or a plain URL: no user, no {x}, no ${…} and no #")
        if isinstance(self.openapi, Path) and self.url is None and self.headers:
            raise ValueError("headers go to the host that url names, not to one that a document chooses: add url")
        if self.input_schema.get("type") != "object":
            raise ValueError("inputSchema has to have type: object")
        self._check_reads()
        self._check_names()
        if self.openapi is None:
            known = self.input_schema.get("properties", {})
            for name in re.findall(r"(?<!\$)\{([^{}]*)\}", self.url or ""):
                if name not in known:
                    raise ValueError(f"url has {{{name}}}, which inputSchema.properties does not name")
        return self

    def _check_names(self) -> None:
        check_no_set("tags", self.tags or ())
        keys = ("prefix", "rename", "include", "exclude", "tags", "refresh")
        told = [key for key in keys if key in self.model_fields_set]
        if self.openapi is None and told:
            raise ValueError(
                f"{told[0]} is about the operations of an openapi document; a single call has its key's name"
            )

    def _check_reads(self) -> None:
        if self.openapi is not None and self.reads is True:
            raise ValueError('reads names operations beside openapi, such as reads: ["search*"]')
        if self.openapi is None and not isinstance(self.reads, bool):
            raise ValueError("reads is true or false here; patterns are for entries with openapi")
        if self.openapi is None and self.reads is True and self.method in CHANGING:
            raise ValueError(f"a {self.method} never only reads; leave reads out")
