"""What the audit log keeps of a call besides that it was made: its arguments, its result, both or neither."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from toolgrove.config.section import Section

Recorded = Literal["full", "arguments", "none"]


class RecordConfig(Section):
    """What is recorded of calls, by tool."""

    default: Recorded | None = Field(
        default=None, description="For tools that no pattern names; absent, what the project says, or `full`."
    )
    tools: dict[str, Recorded] = Field(
        default_factory=dict,
        description="By patterns of tool names; an exact name comes first, then the first that fits.",
    )

    def of(self, *names: str) -> Recorded | None:
        """What is recorded of calls of a tool with these names; None where this says nothing about it."""
        if not self.tools:
            return self.default
        exact = (self.tools[name] for name in names if name in self.tools)
        named = (kept for name in names for pattern, kept in self.tools.items() if fnmatchcase(name, pattern))
        return next(exact, None) or next(named, self.default)


def _spelt_out(given: Any) -> Any:
    return {"default": given} if isinstance(given, str) else given


Record = Annotated[RecordConfig, BeforeValidator(_spelt_out, json_schema_input_type=Recorded | RecordConfig)]
"""`full`, `arguments` or `none`, or what is recorded tool by tool."""
