"""The documentation as the console shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from toolgrove.web.schemas.json_object import Answer


@dataclass(frozen=True, kw_only=True, slots=True)
class ManualEntry(Answer):
    """One page, as a table of contents lists it."""

    name: Annotated[str, Field(description="Such as gateway.")]
    title: str
    part: Annotated[str, Field(description="The part of the documentation that it belongs to.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class ManualContents(Answer):
    """All pages of this version, in reading order."""

    items: list[ManualEntry]


@dataclass(frozen=True, kw_only=True, slots=True)
class ManualPage(Answer):
    """One page of the documentation."""

    name: str
    title: str
    text: Annotated[str, Field(description="Markdown.")]
