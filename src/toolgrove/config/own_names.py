"""What the tools of a source are called here, and which of them there are: keys of a server and of an OpenAPI entry."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from toolgrove.config.fields import Name
from toolgrove.config.section import Section
from toolgrove.config.toolsets import check_no_set

_PREFIX = r"^[A-Za-z0-9_-]{0,48}$"


class OwnNames(Section):
    """The names of a source's tools."""

    prefix: Annotated[str, Field(pattern=_PREFIX)] | None = Field(
        default=None,
        description="The prefix of its tools' names: `<prefix>_<tool>`. Absent: the entry's own name. "
        'With `""`: no prefix.',
    )
    rename: dict[str, Name] = Field(
        default_factory=dict, description="Full names for single tools, by their own names: `{delete: remove_ticket}`."
    )
    include: tuple[str, ...] | None = Field(
        default=None,
        description="Patterns of its own tool names; only these are taken over. Absent: all. Beside `openapi` also "
        "`tag:orders`, `/orders/*` and `GET /orders/*`.",
    )
    exclude: tuple[str, ...] = Field(
        default=(), description="Patterns of its own tool names that are left out; beats `include`."
    )

    @field_validator("rename")
    @classmethod
    def _told_apart(cls, rename: dict[str, str]) -> dict[str, str]:
        seen: dict[str, str] = {}
        for own, final in rename.items():
            if final in seen:
                raise ValueError(f"{seen[final]!r} and {own!r} would both be {final!r}; give each a name of its own")
            seen[final] = own
        return rename

    @field_validator("include", "exclude")
    @classmethod
    def _no_sets(cls, patterns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        check_no_set("own names", patterns or ())
        return patterns
