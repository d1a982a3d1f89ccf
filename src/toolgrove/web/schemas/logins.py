"""Logins to MCP servers, made in a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from toolgrove.web.schemas.json_object import Answer


@dataclass(frozen=True, kw_only=True, slots=True)
class LoginQuestion(Answer):
    """Where a person agrees to a login."""

    address: Annotated[str, Field(description="To be opened in the browser that asked, within ten minutes.")]
