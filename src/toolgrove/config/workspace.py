"""The tree workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from toolgrove.config.section import Section
from toolgrove.tree.payload_type import PayloadType, PayloadTypes
from toolgrove.tree.rules import Ruleset, read_ruleset
from toolgrove.tree.workspace import Limits
from toolgrove.types import Concurrency


class PayloadTypeConfig(Section):
    """A registered payload type."""

    kind: Literal["external", "self"] = "external"
    payload_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    closed: bool = False


class LimitsConfig(Section):
    """How much one call may cover; what is not named keeps its default."""

    node_ids: int = Field(default=Limits().node_ids, ge=1)
    patch: int = Field(default=Limits().patch, ge=1)
    update_nodes: int = Field(default=Limits().update_nodes, ge=1)
    import_nodes: int = Field(default=Limits().import_nodes, ge=1)
    copy_nodes: int = Field(default=Limits().copy_nodes, ge=1)
    expand_nodes: int = Field(default=Limits().expand_nodes, ge=1)
    view_nodes: int = Field(default=Limits().view_nodes, ge=1)
    tags: int = Field(default=Limits().tags, ge=1)
    bookmarks: int = Field(default=Limits().bookmarks, ge=1)
    snapshots: int = Field(default=Limits().snapshots, ge=1)
    history: int = Field(default=Limits().history, ge=1)

    def limits(self) -> Limits:
        """The same for the tree."""
        return Limits(**self.model_dump())


class WorkspaceConfig(Section):
    """The tree workspace."""

    store: Literal["memory"] = "memory"
    concurrency: Concurrency = "tree"
    read_only: bool = False
    payload_types: dict[str, PayloadTypeConfig] = {}
    allow_unknown_types: bool = False
    rulesets: dict[str, list[dict[str, Any]]] = {}
    limits: LimitsConfig = LimitsConfig()
    audit_log: Path | None = None

    @model_validator(mode="after")
    def _compiles(self) -> Self:
        self.types()
        self.rules()
        return self

    def types(self) -> PayloadTypes:
        """The payload types, compiled."""
        types = {
            name: PayloadType(name=name, kind=one.kind, schema=one.payload_schema, closed=one.closed)
            for name, one in self.payload_types.items()
        }
        return PayloadTypes(types, allow_unknown=self.allow_unknown_types)

    def rules(self) -> dict[str, Ruleset]:
        """The rulesets, compiled."""
        return {name: read_ruleset(name, rules) for name, rules in self.rulesets.items()}
