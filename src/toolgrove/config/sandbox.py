"""What a sandboxed server may see and reach."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from toolgrove.config.fields import Location
from toolgrove.config.section import Section


class SandboxConfig(Section):
    """What a stdio server that runs under bubblewrap may see and reach."""

    network: bool = Field(default=True, description="Whether it reaches the network.")
    paths: tuple[Location, ...] = Field(
        default=(), description="Files and folders that it may read besides the system's and its own program."
    )


def _spelt_out(given: Any) -> Any:
    return ({} if given else None) if isinstance(given, bool) else given


Sandbox = Annotated[SandboxConfig | None, BeforeValidator(_spelt_out, json_schema_input_type=bool | SandboxConfig)]
"""`true`, or what it may see and reach; None without a sandbox."""
