"""Objects of the API in general: what a request carries, what we answer, and what a failure says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

ErrorCode = Literal[
    "invalid_argument", "not_found", "forbidden", "conflict", "rate_limited", "internal", "unauthenticated"
]
CAMEL = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, defer_build=True)


class Body(BaseModel):
    """An object that a request carries; its keys are camelCase, and there are no others."""

    model_config = CAMEL


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An object that we answer; its keys are camelCase, and there are no others."""

    __pydantic_config__ = CAMEL

    def to_json(self) -> dict[str, Any]:
        """The object as the API and the command line write it."""
        kind: Any = type(self)
        written: dict[str, Any] = _writer(kind).dump_python(self, by_alias=True)
        return written


@cache
def _writer(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


class ErrorFacts(BaseModel):
    """What went wrong, and what to do next; there may be further facts."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    code: ErrorCode
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure(Answer):
    """What every refusal and every failure answers, here and in a tool's result."""

    error: ErrorFacts
