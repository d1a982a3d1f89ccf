"""Payload types: what a payload may hold, and which names a self-payload node keeps to itself."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolgrove.errors import GuardedProperty, PayloadMismatch, UnknownType
from toolgrove.notation.json_schema import compiled
from toolgrove.tree.node import Payload

Kind = Literal["external", "self"]
GUARDED = frozenset(("nodeid", "children", "parent", "payloadtype"))
# Letters of other scripts that look like the Latin ones in the guarded names.
_LOOKALIKES = str.maketrans(
    "\u0430\u0441\u0501\u0435\u043d\u04bb\u0456\u04cf\u043e\u0440\u0442\u0443\u03b1\u03b5\u03b9\u03bf\u03c1\u03c4\u03bd\u0131",
    "acdehhiloptyaeioptni",
)


def is_guarded(name: str) -> bool:
    """Whether a name is, or passes for, one of the structural properties of a node."""
    visible = "".join(char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char)[0] != "C")
    plain = visible.strip().casefold().translate(_LOOKALIKES)
    if plain.startswith("__") and plain.endswith("__"):
        return True
    return any(part.strip() in GUARDED for part in plain.split("."))


@dataclass(frozen=True, kw_only=True)
class PayloadType:
    """A registered type: what payloads of it must look like."""

    name: str
    kind: Kind = "external"
    schema: Mapping[str, Any] | None = None
    closed: bool = False
    _validator: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        schema = dict(self.schema or {})
        if self.closed:
            schema["additionalProperties"] = False
        validator = compiled(schema) if schema else None
        object.__setattr__(self, "_validator", validator)

    def check(self, payload: Payload, written: Mapping[str, Any], node_id: str | None = None) -> None:
        """Refuse a payload that does not fit, or a write to a guarded name."""
        if self.kind == "self":
            for name in written:
                if is_guarded(name):
                    raise GuardedProperty(name=name, payload_type=self.name, node_id=node_id)
        if self._validator is not None and not self._validator.is_valid(payload):
            error = next(self._validator.iter_errors(payload))
            path = ".".join(str(part) for part in error.instance_path)
            raise PayloadMismatch(payload_type=self.name, path=path, problem=error.message, node_id=node_id)


class PayloadTypes:
    """The registered types; while there are none, any name is an open external type."""

    def __init__(self, types: Mapping[str, PayloadType] | None = None, *, allow_unknown: bool = False) -> None:
        self.registered = {"Root": PayloadType(name="Root"), **(types or {})}
        self.open = allow_unknown or not types

    def check(self, type: str, payload: Payload, written: Mapping[str, Any], node_id: str | None = None) -> None:
        """Refuse a payload that its type does not allow."""
        known = self.registered.get(type)
        if known is not None:
            known.check(payload, written, node_id)
        elif not self.open:
            raise UnknownType(name=type, known=list(self.registered))
