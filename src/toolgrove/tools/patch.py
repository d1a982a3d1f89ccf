"""What a patch makes of a node's payload: properties set and removed by the paths that read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolgrove.errors import SchemaMismatch
from toolgrove.notation.json_value import copied, identical
from toolgrove.tools.context import ToolContext
from toolgrove.tree.node import Node, Payload
from toolgrove.tree.property_path import MISSING, finder
from toolgrove.tree.property_write import drop, fitting, put, top_key
from toolgrove.types import Arguments


class Patch:
    """Values by path, and paths to remove; what is removed goes first."""

    def __init__(self, values: Payload, remove: Sequence[str] = ()) -> None:
        self.values = {path: fitting(path, value) for path, value in values.items()}
        self.remove = tuple(remove)

    @classmethod
    def read(cls, context: ToolContext, arguments: Arguments) -> Patch:
        """The patch of a call, within what one may hold."""
        values, remove = arguments.get("patch", {}), arguments.get("remove", ())
        if "patch" not in arguments and "remove" not in arguments:
            raise SchemaMismatch(path="patch", problem="is missing, and so is 'remove'", hint="Send one of them.")
        context.limits.check("patch", len(values) + len(remove), context.limits.patch)
        return cls(values, remove)

    def applied(self, context: ToolContext, node: Node) -> Payload | None:
        """The node's payload with the patch in it; None where that changes nothing."""
        payload = dict(node.payload)
        written: dict[str, Any] = {}
        for path in self.remove:
            written |= {path: None, top_key(payload, path): None}
            drop(payload, path)
        for path, value in self.values.items():
            written |= {path: None, top_key(payload, path): None}
            put(payload, path, copied(value))
        context.types.check(node.type, payload, written, node.id)
        return None if identical(payload, node.payload) else payload

    def shown(self, payload: Payload) -> Payload:
        """What a payload has now at the paths that were set."""
        found = {path: finder(path)(payload) for path in self.values}
        return {path: copied(value) for path, value in found.items() if value is not MISSING}

    def removed(self, payload: Payload) -> list[str]:
        """The paths to remove that a payload has something at."""
        return [path for path in self.remove if finder(path)(payload) is not MISSING]
