"""A tool that is an HTTP call."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from toolgrove.config.section import Section


class HttpToolConfig(Section):
    """One HTTP call as a tool, or every operation of an OpenAPI document."""

    description: str = ""
    method: str = "GET"
    url: str | None = None
    headers: dict[str, str] = {}
    input_schema: dict[str, Any] = {"type": "object", "properties": {}}
    output_schema: dict[str, Any] | None = None
    openapi: Path | None = None
    allow_private: bool = False
    timeout: float = Field(default=30.0, gt=0, description="Seconds that one call may take.")
    max_bytes: int = Field(default=1_000_000, ge=1, description="The largest answer that is read.")

    @model_validator(mode="after")
    def _has_target(self) -> Self:
        if self.url is None and self.openapi is None:
            raise ValueError("name a url, or an openapi document")
        return self
