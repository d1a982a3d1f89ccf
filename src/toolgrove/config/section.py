"""A part of the file, and how it tells of keys that it does not know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, LiteralString, Self, get_args

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

from toolgrove.errors import closest

_STANDARD = frozenset(get_args(ErrorType))


class Section(BaseModel):
    """A part of the file: camelCase there, snake_case accepted, unknown keys refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        defer_build=True,  # one validator for the whole file instead of one more for every part of it
    )

    @classmethod
    def keys(cls) -> dict[str, str]:
        """The keys of this part as the file writes them, by either spelling."""
        spelled = {name: field.alias or name for name, field in cls.model_fields.items()}
        return spelled | {alias: alias for alias in spelled.values()}

    @classmethod
    def absent(cls) -> Self:
        """The section where the file has none; its defaults are ours, and a validator for them alone takes long."""
        return cls.model_construct()

    @model_validator(mode="wrap")
    @classmethod
    def _suggests(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(given)
        except ValidationError as error:
            lines = [_retold(cls, line) for line in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(error.title, lines, hide_input=True) from None


def unknown_key(loc: tuple[int | str, ...], key: str, known: Iterable[str]) -> InitErrorDetails:
    """The problem of an unknown key, with the one that may have been meant."""
    known = sorted(set(known))
    near = closest(key, known)
    hint = f"did you mean {near!r}?" if near else f"known keys: {', '.join(known)}"
    return _own("unknown_key", loc, f"unknown key; {hint}")


def _retold(section: type[Section], line: Any) -> InitErrorDetails:
    # Without the input: the error is kept and shown, and must hold no secret.
    if line["type"] == "extra_forbidden" and len(line["loc"]) == 1:
        return unknown_key(line["loc"], str(line["loc"][0]), section.keys().values())
    if line["type"] not in _STANDARD:
        return _own(line["type"], line["loc"], line["msg"])
    return InitErrorDetails(type=line["type"], loc=line["loc"], input=None, ctx=line.get("ctx", {}))


def _own(kind: LiteralString, loc: tuple[int | str, ...], told: str) -> InitErrorDetails:
    return InitErrorDetails(type=PydanticCustomError(kind, "{told}", {"told": told}), loc=loc, input=None)
