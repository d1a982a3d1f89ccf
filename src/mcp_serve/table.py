"""The table of tools that an endpoint serves."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

Json = dict[str, Any]
_IN_HEADERS = '"x-mcp-header"'


class Described(Protocol):
    """What every way to describe a tool tells, the SDK's and others."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str | None: ...

    @property
    def input_schema(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class ToolEntry:
    """One row: the tool as `tools/list` shows it, and the text that `resources/read` gives about it.

    `wire` is the definition exactly as clients get it, where the SDK's own type could not hold all of it. A tool that
    `may_speak` can ask its client, or log to it, before it answers.
    """

    tool: Described
    wire: Json | None = None
    documentation: str | None = None
    may_speak: bool = True

    @cached_property
    def header_schema(self) -> Json | None:
        """The input schema if it wants arguments in headers too; the SDK searches it at every call for those."""
        schema = dict(self.tool.input_schema)
        return schema if _IN_HEADERS in json.dumps(schema, default=str) else None

    @cached_property
    def legacy_wire(self) -> Json | None:
        """The definition for clients of the older era: they take no output schema but that of an object."""
        wire = self.wire
        if wire is None or "outputSchema" not in wire or wire["outputSchema"].get("type") == "object":
            return wire
        return {key: value for key, value in wire.items() if key != "outputSchema"}


class ToolTable(Protocol):
    """The tools to serve, by name; may change at any time."""

    def entries(self) -> Mapping[str, ToolEntry]:
        """All of them, in the order in which they are listed."""
        ...

    def entry(self, name: str) -> ToolEntry | None:
        """One of them, or None if there is no such tool."""
        ...
