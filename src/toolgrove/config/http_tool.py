"""A tool that is an HTTP call."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from toolgrove.config.location import Location
from toolgrove.config.section import Section


class HttpToolConfig(Section):
    """One HTTP call as a tool, or every operation of an OpenAPI document."""

    description: str = Field(default="", description="What the tool does; models read it.")
    method: str = Field(default="GET", description="GET and HEAD run; any other needs an approval.")
    url: str | None = Field(
        default=None, description="The address; `{x}` is one encoded path segment, other inputs are query or body."
    )
    headers: dict[str, str] = Field(default_factory=dict, repr=False, description="Sent with every request.")
    input_schema: dict[str, Any] = Field(
        default_factory=lambda: {"type": "object", "properties": {}}, description="The JSON Schema of the inputs."
    )
    output_schema: dict[str, Any] | None = Field(default=None, description="The JSON Schema of the answer's body.")
    openapi: Location | None = Field(
        default=None, description="An OpenAPI document instead: every operation is `<name>_<operationId>`."
    )
    allow_private: bool = Field(default=False, description="Whether the host may have a private address.")
    timeout: float = Field(default=30.0, gt=0, description="Seconds that one call may take.")
    max_bytes: int = Field(default=1_000_000, ge=1, description="The largest answer that is read.")

    @model_validator(mode="after")
    def _has_target(self) -> Self:
        if self.url is None and self.openapi is None:
            raise ValueError("name a url, or an openapi document")
        return self
